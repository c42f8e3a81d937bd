/** Sends what waits in the client outbox. The page and the service worker run the same code. */
import { due, mode, settled, verdict, type Snapshot, type Verdict } from "./queue.ts";
import { attempt, Refused, session } from "./server.ts";
import { outbox, settle } from "./store.ts";

export interface Sent {
  /** Snapshots that the server took. */
  readonly taken: number;
  /** Snapshots that the server refused. They stay here, to be looked at. */
  readonly rejected: number;
  /** What the server said about points that it took and has not applied yet. */
  readonly message?: string;
  /** When the server tries them next, if it says so. */
  readonly retryAt?: number;
  /** Why the rest is still here. */
  readonly stopped?: "sign-in" | "later";
}

const NOTHING: Sent = { taken: 0, rejected: 0 };

/** Everyone who shows or sends the outbox hears of a change here. */
export const CHANGES = "client-outbox";

/** Tell everyone that something changed. */
export function announce(what: "chosen" | "sent"): void {
  const channel = new BroadcastChannel(CHANGES);
  channel.postMessage(what);
  channel.close();
}

/**
 * Send everything that is due, one after the other. One sender at a time over all tabs and the service worker; where a browser
 * has no locks, the idempotency keys alone keep points from counting twice. `eager` skips our own pauses.
 */
export function send(eager: boolean): Promise<Sent> {
  if (!("locks" in navigator)) return sendDue(eager);
  return navigator.locks.request(CHANGES, () => sendDue(eager)) as Promise<Sent>;
}

async function sendDue(eager: boolean): Promise<Sent> {
  const ready = due(await outbox(), Date.now(), eager);
  if (ready.length === 0) return NOTHING;
  const user = await signedIn();
  if (typeof user !== "string") return heldUp(ready, user);
  await heldUp(
    ready.filter((one) => one.userId !== user),
    { kind: "sign-in" },
  );
  let sent = NOTHING;
  for (const snapshot of ready.filter((one) => one.userId === user)) {
    const said = await sendOne(snapshot);
    if (said.kind === "taken") {
      const { kind: _, ...told } = said;
      sent = { ...sent, taken: sent.taken + 1, ...told };
    }
    if (said.kind === "rejected") sent = { ...sent, rejected: sent.rejected + 1 };
    if (said.kind === "sign-in" || said.kind === "later") return { ...sent, stopped: said.kind };
  }
  return sent;
}

/** The user's id; else what that means for the points. Nobody's points are sent in another's name. */
async function signedIn(): Promise<string | Verdict> {
  try {
    const { authenticated, user } = await session();
    return authenticated && user ? user.osmUserId : { kind: "sign-in" };
  } catch (error) {
    if (error instanceof Refused) return verdict("unreachable", Date.now());
    throw error;
  }
}

/** None of these can go out now; each has its pause before it is tried again. */
async function heldUp(ready: readonly Snapshot[], why: Verdict): Promise<Sent> {
  for (const { id } of ready) await settle(id, (now) => settled(now, why, Date.now()));
  if (ready.length > 0) announce("sent");
  return { ...NOTHING, stopped: why.kind === "sign-in" ? "sign-in" : "later" };
}

async function sendOne(snapshot: Snapshot): Promise<Verdict> {
  const body = { updates: snapshot.updates.map(({ patrolId, points }) => ({ patrolId, points })) };
  const path = `/api/admin/sections/${encodeURIComponent(snapshot.sectionId)}/scores`;
  const headers = { "X-Idempotency-Key": snapshot.idempotencyKey, "X-Sync-Mode": mode(snapshot, Date.now()) };
  const said = verdict(await attempt("POST", path, body, headers, snapshot.userId), Date.now());
  await settle(snapshot.id, (now) => settled(now, said, Date.now()));
  announce("sent");
  return said;
}
