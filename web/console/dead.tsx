/** What can be done with dead entries, as questions. What it is about is looked up before anybody is asked. */
import { counted } from "../shared/words.ts";
import type { Question } from "./dialog.tsx";
import { queryOf } from "./place.ts";
import { act, read, Refused } from "./server.ts";
import type { Cause, Changed, Dead, Line } from "./wire.ts";
import { between, short } from "./words.ts";

/** Dead entries of a channel: these lines, or all that died of a reason, or simply all. */
export interface Choice {
  readonly channel: string;
  readonly lines?: readonly Line[];
  readonly reason?: string | undefined;
}

const SHOWN = 5;

/** Send them round again. */
export async function redriving(choice: Choice, done: () => void): Promise<Question> {
  const found = await look(choice);
  return {
    title: `Redrive ${amount(found)}?`,
    text: (
      <>
        <p>They go round again in {choice.channel}, attempts back to 0.</p>
        <Which found={found} />
      </>
    ),
    yes: "Redrive",
    fields: [
      { name: "spread", label: "Spread over seconds", kind: "number", value: "60", hint: "So that the destination is not flooded. 0: all at once." },
    ],
    act: async ({ spread }) => {
      const { count } = await act<Changed>("redrive", { ...asked(choice), spread_seconds: Number(spread) });
      done();
      return `${counted(count, "entry", "entries")} of ${choice.channel} will be tried again.`;
    },
  };
}

/** Remove them for good. What dies after the look stays; who discards all of them says of which channel. */
export async function discarding(choice: Choice, done: () => void): Promise<Question> {
  const { channel, lines } = choice;
  const found = await look(choice);
  return {
    title: `Discard ${amount(found)} for good?`,
    text: (
      <>
        <p>They are removed from {channel} with what they carry. This cannot be taken back.</p>
        <Which found={found} />
      </>
    ),
    yes: "Discard",
    danger: true,
    ...(!lines && { fields: [{ name: "sure", label: `Type ${channel} to say that you mean all of them` }] }),
    act: async ({ sure }) => {
      if (!lines && sure?.trim() !== channel) throw new Refused(0, `Type the channel's name, ${channel}; nothing was discarded.`);
      const count = await discard({ ...asked(choice), ...(!lines && { died_by: found.at }) });
      done();
      return `${counted(count, "entry", "entries")} of ${channel} removed.`;
    },
  };
}

/** Many take several calls: the server answers before the browser's patience ends. */
async function discard(wanted: object): Promise<number> {
  let total = 0;
  for (;;) {
    const { count, left } = await act<Changed>("discard", wanted);
    total += count;
    if (!left) return total;
  }
}

function asked({ channel, lines, reason }: Choice): object {
  return lines ? { channel, ids: lines.map((line) => line.id) } : { channel, everything: true, reason };
}

/** Raises Refused. */
async function look({ channel, lines, reason }: Choice): Promise<Dead> {
  if (!lines) return read<Dead>(`dead?${queryOf({ channel, reason })}`);
  const count = lines.length;
  return { at: "", count, counted_up_to: count + 1, causes: causesOf(lines), oldest: lines.slice(0, SHOWN) };
}

/** What lines died of, the most frequent first; they come with the oldest first. */
export function causesOf(lines: readonly Line[]): readonly Cause[] {
  const causes = new Map<string, Cause>();
  for (const { dlq_reason, last_error_code: error_code, failed_at } of lines) {
    const reason = dlq_reason ?? "";
    const at = failed_at ?? "";
    const known = causes.get(`${reason} ${error_code}`);
    causes.set(
      `${reason} ${error_code}`,
      known ? { ...known, count: known.count + 1, last_at: at } : { reason, error_code, count: 1, first_at: at, last_at: at },
    );
  }
  return [...causes.values()].sort((a, b) => b.count - a.count);
}

function amount({ count, counted_up_to }: Dead): string {
  return count >= counted_up_to ? `${short(count)} or more dead entries` : counted(count, "dead entry", "dead entries");
}

function Which({ found }: { found: Dead }) {
  const { causes, oldest, count } = found;
  return (
    <>
      <ul class="causes">
        {causes.map((cause) => (
          <li key={`${cause.reason} ${cause.error_code}`}>
            <b class="number">{short(cause.count)}</b> <CauseName cause={cause} />
            <span class="soft"> · {between(cause.first_at, cause.last_at)}</span>
          </li>
        ))}
      </ul>
      {count > 1 && oldest.length > 0 && (
        <details>
          <summary>{count > oldest.length ? `The oldest ${oldest.length}` : "All of them"}</summary>
          <ul class="causes">
            {oldest.map((line) => (
              <li key={line.id} class="break">
                {line.event_type} <span class="mono soft">…{line.id.slice(-6)}</span> <span class="soft">{line.tenant_id}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

export function CauseName({ cause: { reason, error_code } }: { cause: Pick<Cause, "reason" | "error_code"> }) {
  return (
    <>
      {reason}
      {error_code && <span class="soft"> · {error_code}</span>}
    </>
  );
}
