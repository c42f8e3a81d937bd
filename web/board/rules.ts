/** What the live board shows and when it asks again. Pure: times are milliseconds and passed in. */
import { colour, type BoardScores, type Colour } from "../shared/wire.ts";

export interface Bar {
  readonly id: string;
  readonly name: string;
  readonly shown: number;
  readonly pending: boolean;
  readonly colour: Colour;
  /** Length of the bar, 0 to 1; the best patrol has 1. */
  readonly share: number;
}

const SOONEST = 5_000;
const LATEST = 3_600_000;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 120_000;

/** One bar for each patrol, in the order of the server. Scores count with what is still pending. */
export function bars(scores: BoardScores): Bar[] {
  const shown = scores.patrols.map((patrol) => patrol.score + patrol.pendingDelta);
  const best = Math.max(1, ...shown);
  return scores.patrols.map((patrol, index) => ({
    id: String(patrol.id),
    name: patrol.name,
    shown: shown[index]!,
    pending: patrol.hasPending,
    colour: colour(scores.settings?.patrolColors?.[patrol.id]),
    share: Math.max(0, shown[index]!) / best,
  }));
}

/**
 * How long to wait before asking again: not before the server's answer expires, and a little later so that many screens do not
 * ask at once. Measured with the server's clock, since that of a TV may be wrong.
 */
export function pollDelay(expires: string, serverNow: number, chance: number): number {
  const left = Date.parse(expires) - serverNow;
  const wait = Number.isNaN(left) ? SOONEST : left;
  return Math.min(LATEST, Math.max(SOONEST, wait)) + chance * SOONEST;
}

/** How long to wait after this many failures in a row. A server that says how long is obeyed. */
export function pauseAfter(failures: number, retryAfter: number, chance: number): number {
  const own = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.max(0, failures - 1));
  return Math.max(own, retryAfter) * (1 + chance / 4);
}
