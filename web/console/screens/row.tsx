/** One entry as lists and searches show it. */
import type { ComponentChildren } from "preact";
import { ago, counted } from "../../shared/words.ts";
import type { Line } from "../wire.ts";
import { span } from "../words.ts";

export const NAMES = { dead: "Dead", pending: "Waiting", claimed: "On the way", delivered: "Delivered" };
const TONES = { dead: "bad", pending: "calm", claimed: "calm", delivered: "good" };

interface Given {
  readonly line: Line;
  /** Stands before it: a box to choose it. */
  readonly children?: ComponentChildren;
  /** A search shows what a list of one channel and state need not repeat. */
  readonly found?: readonly string[];
}

export function Row({ line, children, found }: Given) {
  const error = [line.last_error_code, line.last_error_message].filter(Boolean).join(": ");
  return (
    <li class="card row entry">
      {children}
      <div class="row-main">
        <a class="entry-name" href={`#/entry/${line.id}`}>
          {line.event_type} <span class="mono soft">…{line.id.slice(-6)}</span>
        </a>
        <p class="soft break">
          {found && `${line.channel} · `}
          <Name name="tenant" value={line.tenant_id || null} found={found} none="no tenant" />
          <Name name="group" value={line.group_key} found={found} />
          <Name name="key" value={line.key} found={found} />
          {` · ${counted(line.attempt_count, "attempt")}`}
        </p>
        {error && line.state !== "delivered" && <p class="error break">{error}</p>}
      </div>
      <p class="row-side">
        {found ? (
          <span class={`tag ${TONES[line.state]}`}>{NAMES[line.state]}</span>
        ) : (
          line.dlq_reason && <span class="tag bad">{line.dlq_reason}</span>
        )}
        <span class="soft">{when(line)}</span>
      </p>
    </li>
  );
}

interface Named {
  readonly name: string;
  readonly value: string | null;
  readonly found: readonly string[] | undefined;
  readonly none?: string;
}

/** A tenant stands alone, a group and a key with their names; marked where the search was for it. */
function Name({ name, value, found, none }: Named) {
  if (value === null) return <>{none}</>;
  return (
    <>
      {name === "tenant" ? "" : ` · ${name} `}
      {found?.includes(name) ? <mark>{value}</mark> : value}
    </>
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
