/** Entries of a channel by state and tenant, page by page; the dead ones can be sent round again or removed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, counted } from "../../shared/words.ts";
import { discarding, redriving } from "../dead.tsx";
import { useAsk } from "../dialog.tsx";
import { entriesPlace, type Place } from "../place.ts";
import { read, Refused } from "../server.ts";
import { STATES, type Line, type Lines, type Overview } from "../wire.ts";
import { span } from "../words.ts";

const NAMES = { dead: "Dead", pending: "Waiting", claimed: "On the way", delivered: "Delivered" };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function Entries({ place, overview }: { place: Place; overview: Overview | undefined }) {
  const channels = overview?.channels.map(({ stats }) => stats.channel) ?? [];
  // chosen once: the list must not change under somebody's hands because another channel got worse
  const first = useRef<string | undefined>(undefined);
  first.current ??= worst(overview);
  const channel = place.query.get("channel") ?? first.current ?? "";
  const state = place.query.get("state") ?? "dead";
  const tenant = place.query.get("tenant") ?? undefined;
  const go = (changed: { channel?: string; state?: string; tenant?: string }): void => {
    const next = { channel, state, tenant, ...changed };
    location.hash = entriesPlace(next.channel, next.state, next.tenant || undefined);
  };
  const search = (event: Event): void => {
    event.preventDefault();
    const wanted = String(new FormData(event.currentTarget as HTMLFormElement).get("tenant")).trim();
    if (UUID.test(wanted)) location.hash = `#/entry/${wanted.toLowerCase()}`;
    else go({ tenant: wanted });
  };
  return (
    <section aria-labelledby="entries">
      <h2 id="entries">Entries</h2>
      <div class="filters">
        <label>
          Channel
          <select value={channel} onChange={(event) => go({ channel: event.currentTarget.value })}>
            {(channels.includes(channel) ? channels : [channel, ...channels]).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          State
          <select value={state} onChange={(event) => go({ state: event.currentTarget.value })}>
            {STATES.map((name) => (
              <option key={name} value={name}>
                {NAMES[name]}
              </option>
            ))}
          </select>
        </label>
        <form onSubmit={search} role="search">
          <label>
            Tenant, or an entry's id
            <input name="tenant" type="search" maxLength={255} defaultValue={tenant ?? ""} key={tenant} />
          </label>
          <button type="submit">Find</button>
        </form>
      </div>
      {channel && <List key={`${channel} ${state} ${tenant}`} channel={channel} state={state} tenant={tenant} />}
    </section>
  );
}

/** The channel that needs somebody first. */
function worst(overview: Overview | undefined): string | undefined {
  const stats = overview?.channels.map((channel) => channel.stats) ?? [];
  return [...stats].sort((a, b) => b.dead_count - a.dead_count || b.pending_count - a.pending_count)[0]?.channel;
}

interface Asked {
  readonly channel: string;
  readonly state: string;
  readonly tenant: string | undefined;
}

function List({ channel, state, tenant }: Asked) {
  const [lines, setLines] = useState<readonly Line[] | undefined>();
  const [next, setNext] = useState<string | null>(null);
  const [refused, setRefused] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [words, setWords] = useState("");
  const ask = useAsk();
  const load = async (after: string | null): Promise<void> => {
    const query = new URLSearchParams({ channel, state, limit: "50" });
    if (tenant !== undefined) query.set("tenant", tenant);
    if (after !== null) query.set("after", after);
    try {
      const page = await read<Lines>(`entries?${query.toString()}`);
      setLines((before) => [...(after === null ? [] : (before ?? [])), ...page.entries]);
      setNext(page.next);
      setRefused("");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.message);
    }
  };
  useEffect(() => void load(null), []);
  const changed = (): void => {
    setChosen(new Set());
    void load(null);
  };
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!lines) return <p class="soft">One moment…</p>;
  const shown = lines.filter((line) => matches(line, words));
  const ids = shown.map((line) => line.id).filter((id) => chosen.has(id));
  const toggle = (id: string): void => {
    const changedSet = new Set(chosen);
    if (!changedSet.delete(id)) changedSet.add(id);
    setChosen(changedSet);
  };
  return (
    <>
      <div class="tools">
        <label class="narrow">
          Narrow what is listed
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        <button type="button" class="quiet" onClick={changed}>
          Refresh
        </button>
        {state === "dead" && lines.length > 0 && (
          <div class="buttons">
            <button type="button" disabled={!ids.length} onClick={() => ask(discarding(channel, ids, changed))}>
              {ids.length ? `Discard ${ids.length}…` : "Discard…"}
            </button>
            <button type="button" disabled={!ids.length} onClick={() => void redriving(channel, ids, changed).then(ask)}>
              {ids.length ? `Redrive ${ids.length}…` : "Redrive…"}
            </button>
            <button type="button" class="main" onClick={() => void redriving(channel, undefined, changed).then(ask)}>
              Redrive all…
            </button>
          </div>
        )}
      </div>
      {shown.length === 0 && <p class="soft">{lines.length ? "Nothing of what is listed fits." : "There is none."}</p>}
      <ul class="rows">
        {shown.map((line) => (
          <Row key={line.id} line={line} chosen={chosen.has(line.id)} {...(state === "dead" && { toggle })} />
        ))}
      </ul>
      {next !== null && (
        <button type="button" onClick={() => void load(next)}>
          Show more
        </button>
      )}
    </>
  );
}

function matches(line: Line, words: string): boolean {
  const { id, tenant_id, event_type, key, group_key, dlq_reason, last_error_code, last_error_message } = line;
  const text = [id, tenant_id, event_type, key, group_key, dlq_reason, last_error_code, last_error_message]
    .join(" ")
    .toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function Row({ line, chosen, toggle }: { line: Line; chosen: boolean; toggle?: (id: string) => void }) {
  const error = [line.last_error_code, line.last_error_message].filter(Boolean).join(": ");
  return (
    <li class="card row entry">
      {toggle && (
        <input
          type="checkbox"
          checked={chosen}
          onChange={() => toggle(line.id)}
          aria-label={`Choose ${line.event_type} ${line.id.slice(-6)}`}
        />
      )}
      <div class="row-main">
        <a class="entry-name" href={`#/entry/${line.id}`}>
          {line.event_type} <span class="mono soft">…{line.id.slice(-6)}</span>
        </a>
        <p class="soft">
          {line.tenant_id || "no tenant"}
          {line.group_key !== null && ` · group ${line.group_key}`} · {counted(line.attempt_count, "attempt")}
        </p>
        {error && <p class="error break">{error}</p>}
      </div>
      <p class="row-side">
        {line.dlq_reason && <span class="tag bad">{line.dlq_reason}</span>}
        <span class="soft">{when(line)}</span>
      </p>
    </li>
  );
}

function when(line: Line): string {
  const now = Date.now();
  if (line.failed_at) return `died ${ago(Date.parse(line.failed_at), now)}`;
  if (line.delivered_at) return `delivered ${ago(Date.parse(line.delivered_at), now)}`;
  if (line.claimed_by) return `with ${line.claimed_by}`;
  const due = line.next_attempt_at ? (Date.parse(line.next_attempt_at) - now) / 1000 : 0;
  return due > 1 ? `due in ${span(due)}` : `put ${ago(Date.parse(line.created_at), now)}`;
}
