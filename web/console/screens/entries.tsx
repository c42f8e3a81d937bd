/** Entries of a channel by state, tenant and words, page by page; the dead ones can be sent round again or removed. */
import { useEffect, useRef, useState } from "preact/hooks";
import { discarding, redriving, type Choice } from "../dead.tsx";
import { useAsk } from "../dialog.tsx";
import { entriesPlace, queryOf, type Filters, type Place } from "../place.ts";
import { read, Refused } from "../server.ts";
import { STATES, type Dead, type Line, type Lines, type Overview } from "../wire.ts";
import { short } from "../words.ts";
import { useLoaded } from "./loaded.ts";
import { NAMES, Row } from "./row.tsx";

export function Entries({ place, overview }: { place: Place; overview: Overview | undefined }) {
  // chosen once: the list must not change under somebody's hands because another channel got worse
  const first = useRef<string | undefined>(undefined);
  first.current ??= worst(overview);
  const given = (name: string): string => place.query.get(name) ?? "";
  const filters: Filters = {
    channel: given("channel") || first.current || "",
    state: given("state") || "dead",
    tenant: given("tenant"),
    reason: given("state") in { "": 0, dead: 0 } ? given("reason") : "",
    words: given("words"),
  };
  const channels = overview?.channels.map(({ stats }) => stats.channel) ?? [];
  return (
    <section aria-labelledby="entries">
      <h2 id="entries">Entries</h2>
      <Choosing filters={filters} channels={channels} />
      {filters.channel && <List key={JSON.stringify(filters)} filters={filters} />}
    </section>
  );
}

/** The channel that needs somebody first. */
function worst(overview: Overview | undefined): string | undefined {
  const stats = overview?.channels.map((channel) => channel.stats) ?? [];
  return [...stats].sort((a, b) => b.dead_count - a.dead_count || b.pending_count - a.pending_count)[0]?.channel;
}

function Choosing({ filters, channels }: { filters: Filters; channels: readonly string[] }) {
  const { channel, state, tenant = "", words = "" } = filters;
  const go = (changed: Partial<Filters>): void => {
    location.hash = entriesPlace({ ...filters, ...changed });
  };
  const find = (event: Event): void => {
    event.preventDefault();
    const typed = new FormData(event.currentTarget as HTMLFormElement);
    go({ tenant: String(typed.get("tenant")).trim(), words: String(typed.get("words")).trim() });
  };
  return (
    <form class="filters" onSubmit={find} key={`${tenant} ${words}`}>
      <label>
        Channel
        <select value={channel} onChange={(event) => go({ channel: event.currentTarget.value, reason: "" })}>
          {(channels.includes(channel) ? channels : [channel, ...channels]).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        State
        <select value={state} onChange={(event) => go({ state: event.currentTarget.value, reason: "" })}>
          {STATES.map((name) => (
            <option key={name} value={name}>
              {NAMES[name]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Tenant
        <input name="tenant" maxLength={255} defaultValue={tenant} autocomplete="off" autocapitalize="off" />
      </label>
      <label>
        Words
        <input name="words" type="search" maxLength={255} defaultValue={words} placeholder="of error, type, key, id" autocomplete="off" />
      </label>
      <button type="submit">Apply</button>
    </form>
  );
}

interface Listed {
  readonly lines: readonly Line[] | undefined;
  readonly next: string | null;
  readonly refused: string;
  readonly load: (after: string | null) => Promise<void>;
}

function useList(filters: Filters): Listed {
  const [lines, setLines] = useState<readonly Line[] | undefined>();
  const [next, setNext] = useState<string | null>(null);
  const [refused, setRefused] = useState("");
  const load = async (after: string | null): Promise<void> => {
    try {
      const page = await read<Lines>(`entries?${queryOf({ ...filters, limit: "50", after: after ?? undefined })}`);
      setLines((before) => [...(after === null ? [] : (before ?? [])), ...page.entries]);
      setNext(page.next);
      setRefused("");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setRefused(error.message);
    }
  };
  useEffect(() => void load(null), []);
  return { lines, next, refused, load };
}

function List({ filters }: { filters: Filters }) {
  const { lines, next, refused, load } = useList(filters);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [looks, setLooks] = useState(0);
  const isDead = filters.state === "dead";
  const changed = (): void => {
    setChosen(new Set());
    setLooks(looks + 1);
    void load(null);
  };
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!lines) return <p class="soft">One moment…</p>;
  const toggle = (id: string): void => {
    const changedSet = new Set(chosen);
    if (!changedSet.delete(id)) changedSet.add(id);
    setChosen(changedSet);
  };
  const narrowed = Boolean(filters.tenant || filters.words);
  return (
    <>
      {isDead && <Causes key={looks} filters={filters} />}
      <div class="tools">
        {isDead && lines.length > 0 && (
          <label class="choose-all">
            <input
              type="checkbox"
              checked={chosen.size === lines.length}
              onChange={(event) => setChosen(new Set(event.currentTarget.checked ? lines.map((line) => line.id) : []))}
            />
            {chosen.size ? `${chosen.size} chosen` : "Choose all shown"}
          </label>
        )}
        <button type="button" class="quiet" onClick={changed}>
          Refresh
        </button>
        {isDead && lines.length > 0 && (
          <Acts filters={filters} lines={lines.filter((line) => chosen.has(line.id))} all={!narrowed} changed={changed} />
        )}
      </div>
      {lines.length === 0 && (
        <p class="soft">{next === null ? "There is none." : "None among those looked at so far; there are more to look at."}</p>
      )}
      <ul class="rows">
        {lines.map((line) => (
          <Row key={line.id} line={line}>
            {isDead && (
              <input
                type="checkbox"
                checked={chosen.has(line.id)}
                onChange={() => toggle(line.id)}
                aria-label={`Choose ${line.event_type} ${line.id.slice(-6)}`}
              />
            )}
          </Row>
        ))}
      </ul>
      {next !== null && (
        <button type="button" class="more" onClick={() => void load(next)}>
          {narrowed || filters.reason ? "Look further" : "Show more"}
        </button>
      )}
    </>
  );
}

interface Acting {
  readonly filters: Filters;
  readonly lines: readonly Line[];
  /** Whether the list is not narrowed by what the server cannot take back out of "all". */
  readonly all: boolean;
  readonly changed: () => void;
}

/** For those chosen; for all of the channel, or of one reason, when none is. */
function Acts({ filters: { channel, reason }, lines, all, changed }: Acting) {
  const ask = useAsk();
  if (lines.length === 0 && !all) return null;
  const choice: Choice = lines.length ? { channel, lines } : { channel, reason: reason || undefined };
  const many = lines.length || "all";
  return (
    <div class="buttons push">
      <button type="button" onClick={() => ask(discarding(choice, changed))}>
        Discard {many}…
      </button>
      <button type="button" class="main" onClick={() => ask(redriving(choice, changed))}>
        Redrive {many}…
      </button>
    </div>
  );
}

/** What the dead entries of the channel died of; one narrows the list to itself. */
function Causes({ filters }: { filters: Filters }) {
  const { value } = useLoaded<Dead>(`dead?${queryOf({ channel: filters.channel })}`);
  if (!value || value.causes.length === 0) return null;
  const counts = new Map<string, number>();
  for (const { reason, count } of value.causes) counts.set(reason, (counts.get(reason) ?? 0) + count);
  const link = (reason: string, name: string, count: number) => (
    <a
      key={name}
      class="chip"
      href={entriesPlace({ ...filters, reason })}
      aria-current={(filters.reason ?? "") === reason ? "true" : undefined}
    >
      {name} <b class="number">{short(count)}</b>
    </a>
  );
  return (
    <p class="chips" role="group" aria-label="What they died of">
      {link("", "all", value.count)}
      {[...counts].map(([reason, count]) => link(reason, reason, count))}
    </p>
  );
}
