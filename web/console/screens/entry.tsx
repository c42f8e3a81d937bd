/** One entry: why it is where it is, its story, and what it carries. */
import { ago } from "../../shared/words.ts";
import { discarding, redriving } from "../dead.tsx";
import { useAsk } from "../dialog.tsx";
import { entriesPlace } from "../place.ts";
import type { Entry, Happening } from "../wire.ts";
import { bytes, pretty, span } from "../words.ts";
import { useLoaded } from "./loaded.ts";

export function EntryScreen({ id }: { id: string }) {
  const { value: entry, refused, load } = useLoaded<Entry>(`entries/${encodeURIComponent(id)}`, moves);
  const ask = useAsk();
  if (refused) return <p class="refused" role="alert">{refused}</p>;
  if (!entry) return <p class="soft">One moment…</p>;
  const { standing } = entry;
  const { channel, state } = standing;
  const back = entriesPlace({ channel, state });
  const leave = (): void => {
    location.hash = back;
  };
  const choice = { channel: standing.channel, lines: [{ ...standing, ...entry.contents }] };
  const tone = { dead: "bad", delivered: "good", pending: "calm", claimed: "calm" }[standing.state];
  return (
    <section aria-labelledby="entry">
      <p>
        <a href={back}>← {standing.channel}</a>
      </p>
      <div class="heading">
        <h2 id="entry" class="break">
          {standing.event_type}
        </h2>
        <span class={`tag ${tone}`}>{standing.state}</span>
        <div class="buttons push">
          {standing.state === "dead" && (
            <>
              <button type="button" onClick={() => ask(discarding(choice, leave))}>
                Discard…
              </button>
              <button type="button" class="main" onClick={() => ask(redriving(choice, load))}>
                Redrive…
              </button>
            </>
          )}
          <button type="button" class="quiet" onClick={load}>
            Refresh
          </button>
        </div>
      </div>
      <p class="sentence break">{entry.sentence}</p>
      <div class="side-by-side">
        <Story story={entry.story} now={Date.parse(standing.now)} />
        <Facts entry={entry} id={id} />
      </div>
      <Payload entry={entry} />
    </section>
  );
}

/** An entry that has ended stays as it is. */
function moves({ standing }: Entry): boolean {
  return standing.state === "pending" || standing.state === "claimed";
}

function Story({ story, now }: { story: readonly Happening[]; now: number }) {
  return (
    <section aria-labelledby="story">
      <h3 id="story">Story</h3>
      <ol class="story">
        {story.map(({ at, event, detail }) => (
          <li key={event + detail} class={`moment ${event}`}>
            <p class="break">{detail}</p>
            {at && (
              <p class="soft">
                <time dateTime={at}>{whenIs(at, now)}</time>
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

const CLOCK: Intl.DateTimeFormatOptions = {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
};

function whenIs(at: string, now: number): string {
  const then = Date.parse(at);
  const clock = new Date(then).toLocaleString("en-GB", CLOCK);
  return `${clock} · ${then > now ? `in ${span((then - now) / 1000)}` : ago(then, now)}`;
}

function Facts({ entry, id }: { entry: Entry; id: string }) {
  const { standing, contents } = entry;
  const facts: [string, string | number | null][] = [
    ["Id", id],
    ["Tenant", standing.tenant_id || null],
    ["Principal", standing.principal],
    ["Group", standing.group_key],
    ["Key", contents.key],
    ["Attempts", standing.attempt_count],
    ["Crashes", standing.crash_count || null],
    ["Priority", contents.priority || null],
    ["Last error", [standing.last_error_code, standing.last_error_message].filter(Boolean).join(": ") || null],
    ["Occurred", contents.occurred_at],
    ["Trace", contents.traceparent],
    ["Headers", contents.headers && JSON.stringify(contents.headers)],
  ];
  return (
    <section aria-labelledby="facts">
      <h3 id="facts">Facts</h3>
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="break">{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

function Payload({ entry }: { entry: Entry }) {
  const { payload, cut, payload_size_bytes } = entry.contents;
  return (
    <section aria-labelledby="payload">
      <h3 id="payload">
        Payload <span class="soft">{bytes(payload_size_bytes)}</span>
      </h3>
      {/* scrolls, so the keyboard must reach it */}
      <pre class="payload" tabIndex={0} aria-labelledby="payload">
        {pretty(payload, cut)}
      </pre>
      {cut && <p class="soft">Only the first {payload.length.toLocaleString("en-GB")} characters are shown.</p>}
    </section>
  );
}
