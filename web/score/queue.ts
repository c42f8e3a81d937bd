/**
 * The rules of the client outbox: what a snapshot is, what an answer means for it, and when it may be sent again.
 * Pure: no storage, no network, no clock, no chance; times are milliseconds and passed in, keys are passed in.
 */

/** Points that a leader is still choosing. */
export interface Working {
  readonly sectionId: string;
  readonly patrolId: string;
  readonly patrolName: string;
  readonly points: number;
}

/** Whose points they are and where they go. */
export interface Owner {
  readonly userId: string;
  readonly userName: string;
  readonly sectionId: string;
  readonly sectionName: string;
}

/** Points that were submitted. Key and updates never change, so a repeated request is the same request. */
export interface Snapshot extends Owner {
  readonly id: number;
  readonly idempotencyKey: string;
  readonly updates: readonly { readonly patrolId: string; readonly patrolName: string; readonly points: number }[];
  readonly createdAt: number;
  readonly status: "waiting" | "rejected";
  readonly attempts: number;
  readonly triedAt?: number;
  /** When a person asked for it once more. */
  readonly askedAt?: number;
  /** The server asked not to be called before this. */
  readonly notBefore?: number;
  readonly reason?: string;
}

/** An answer, or `unreachable` when none came (sent or not: nobody knows). */
export type Answer =
  { readonly status: number; readonly retryAfter: string | null; readonly body: unknown } | "unreachable";

export type Verdict =
  | { readonly kind: "taken"; readonly message?: string; readonly retryAt?: number }
  | { readonly kind: "later"; readonly reason: string; readonly notBefore?: number }
  | { readonly kind: "sign-in" }
  | { readonly kind: "rejected"; readonly reason: string };

export const MOST_POINTS = 1000;
export const MOST_UPDATES = 50;
const FIRST_PAUSE = 2_000;
const LONGEST_PAUSE = 60_000;
const LONGEST_WAIT = 86_400_000;
const FRESH = 60_000;

/** `interactive`: a leader waits for it. `background`: the server may wait a moment for what others send. */
export type Mode = "interactive" | "background";

/** Whole points within what the server takes; what is no number is 0. */
export function allowed(points: number): number {
  if (!Number.isFinite(points)) return 0;
  return Math.max(-MOST_POINTS, Math.min(MOST_POINTS, Math.trunc(points))) + 0;
}

/** The snapshots of what was chosen: patrols with no points left out, no request larger than the server takes. */
export function snapshots(
  working: readonly Working[],
  owner: Owner,
  newKey: () => string,
  now: number,
): Omit<Snapshot, "id">[] {
  const updates = working
    .filter((one) => one.points !== 0)
    .map(({ patrolId, patrolName, points }) => ({ patrolId, patrolName, points }));
  const made: Omit<Snapshot, "id">[] = [];
  for (let from = 0; from < updates.length; from += MOST_UPDATES) {
    const part = updates.slice(from, from + MOST_UPDATES);
    made.push({ ...owner, idempotencyKey: newKey(), updates: part, createdAt: now, status: "waiting", attempts: 0 });
  }
  return made;
}

/** Somebody waits for the first try of what was tapped just now, whoever makes it. All else is the backlog. */
export function mode(snapshot: Snapshot, now: number): Mode {
  const tapped = snapshot.askedAt ?? snapshot.createdAt;
  return snapshot.attempts === 0 && now - tapped < FRESH ? "interactive" : "background";
}

/** What an answer to a submission means. Only the server's own words count as taken: a hotspot's page does not. */
export function verdict(answer: Answer, now: number): Verdict {
  if (answer === "unreachable") return { kind: "later", reason: "There is no connection yet." };
  const { status } = answer;
  if ((status === 200 || status === 202) && field(answer.body, "success") === true) return taken(answer.body);
  if (status === 401) return { kind: "sign-in" };
  if (status === 429) return later("The server is busy.", answer.retryAfter, now);
  if (status >= 500) return later("The server has a problem.", answer.retryAfter, now);
  if (status === 403 && field(answer.body, "error") === "sign_in_again") return { kind: "sign-in" };
  if (status === 403 && isCsrf(answer)) return later("The server did not recognise this page.", null, now);
  if (status >= 400) return { kind: "rejected", reason: said(answer.body) ?? `The server refused it (${status}).` };
  return later("Something other than the server answered. Is this network asking you to log in?", null, now);
}

/** Whether the answer asks for a fresh CSRF token. */
export function isCsrf(answer: Answer): boolean {
  if (answer === "unreachable" || answer.status !== 403) return false;
  return ["csrf_invalid", "csrf_required"].includes(String(field(answer.body, "error")));
}

/** The sentence for people in an answer, if there is one. */
export function said(body: unknown): string | undefined {
  const message = field(body, "message");
  return typeof message === "string" && message !== "" ? message : undefined;
}

/** The snapshot after an answer; null once the server has it. Its key and its updates stay as they are. */
export function settled(snapshot: Snapshot, verdict: Verdict, now: number): Snapshot | null {
  const { notBefore: _, reason: __, ...rest } = snapshot;
  const tried = { ...rest, attempts: snapshot.attempts + 1, triedAt: now };
  switch (verdict.kind) {
    case "taken":
      return null;
    case "sign-in":
      return { ...tried, reason: "You have to sign in first." };
    case "rejected":
      return { ...tried, status: "rejected", reason: verdict.reason };
    case "later":
      return { ...tried, ...(verdict.notBefore && { notBefore: verdict.notBefore }), reason: verdict.reason };
  }
}

/** The same snapshot, to be tried once more because a person asked. */
export function again(snapshot: Snapshot, now: number): Snapshot {
  const { reason: _, triedAt: __, ...rest } = snapshot;
  return { ...rest, status: "waiting", attempts: 0, askedAt: now };
}

/** When it may go out. A person or the returning network (`eager`) skips our own pause, never the server's wish. */
export function dueAt(snapshot: Snapshot, eager: boolean): number {
  const asked = snapshot.notBefore ?? 0;
  if (eager || snapshot.triedAt === undefined) return asked;
  return Math.max(asked, snapshot.triedAt + pause(snapshot.attempts));
}

/** What may be sent now, oldest first. */
export function due(outbox: readonly Snapshot[], now: number, eager: boolean): Snapshot[] {
  return outbox.filter((one) => one.status === "waiting" && dueAt(one, eager) <= now).sort((a, b) => a.id - b.id);
}

/** When to try next by oneself; null when nothing waits. */
export function nextDue(outbox: readonly Snapshot[]): number | null {
  const times = outbox.filter((one) => one.status === "waiting").map((one) => dueAt(one, false));
  return times.length === 0 ? null : Math.min(...times);
}

/** How many points-for-a-patrol have not reached the server. */
export function unsent(outbox: readonly Snapshot[]): number {
  return outbox.reduce((sum, one) => sum + one.updates.length, 0);
}

/** What is on its way to one patrol from this device. Refused points are not on their way. */
export function onTheWay(outbox: readonly Snapshot[], sectionId: string, patrolId: string): number {
  return outbox
    .filter((one) => one.status === "waiting" && one.sectionId === sectionId)
    .flatMap((one) => one.updates)
    .reduce((sum, one) => sum + (one.patrolId === patrolId ? one.points : 0), 0);
}

function taken(body: unknown): Verdict {
  const message = said(field(body, "pending"));
  const retryAt = nextTry(body);
  return { kind: "taken", ...(message && { message }), ...(retryAt && { retryAt }) };
}

/** When the server tries the first of the patrols that wait again, as far as it says. */
function nextTry(body: unknown): number | undefined {
  const patrols = field(body, "patrols");
  if (!Array.isArray(patrols)) return undefined;
  const times = patrols.map((one) => Date.parse(String(field(one, "retryAfter")))).filter((time) => time > 0);
  return times.length === 0 ? undefined : Math.min(...times);
}

function later(reason: string, retryAfter: string | null, now: number): Verdict {
  const wait = waitFor(retryAfter, now);
  return wait === undefined ? { kind: "later", reason } : { kind: "later", reason, notBefore: now + wait };
}

function waitFor(retryAfter: string | null, now: number): number | undefined {
  if (retryAfter === null || retryAfter.trim() === "") return undefined;
  const seconds = Number(retryAfter);
  const wait = Number.isNaN(seconds) ? Date.parse(retryAfter) - now : seconds * 1000;
  return wait > 0 ? Math.min(wait, LONGEST_WAIT) : undefined;
}

function pause(attempts: number): number {
  return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.max(0, attempts - 1));
}

function field(body: unknown, name: string): unknown {
  return typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
}
