import assert from "node:assert/strict";
import { test } from "node:test";
import {
  again,
  allowed,
  due,
  dueAt,
  isCsrf,
  mode,
  nextDue,
  onTheWay,
  settled,
  snapshots,
  unsent,
  verdict,
  type Answer,
  type Snapshot,
} from "./queue.ts";

const NOW = Date.parse("2026-03-02T18:30:00Z");
const OWNER = { userId: "100001", userName: "Robin", sectionId: "40104", sectionName: "Scouts" };

function chosen(patrolId: string, points: number) {
  return { sectionId: "40104", patrolId, patrolName: `Patrol ${patrolId}`, points };
}

function snapshot(change: Partial<Snapshot> = {}): Snapshot {
  const updates = [{ patrolId: "1", patrolName: "Eagles", points: 5 }];
  return { ...OWNER, id: 1, idempotencyKey: "key", updates, createdAt: NOW, status: "waiting", attempts: 0, ...change };
}

function answered(status: number, body: unknown = undefined, retryAfter: string | null = null): Answer {
  return { status, body, retryAfter };
}

test("a submit makes one snapshot with one fresh key, without patrols that get nothing", () => {
  const made = snapshots([chosen("1", 5), chosen("2", 0), chosen("3", -1)], OWNER, () => "key", NOW);
  assert.equal(made.length, 1);
  assert.deepEqual(
    made[0]!.updates.map((one) => one.points),
    [5, -1],
  );
  assert.equal(made[0]!.idempotencyKey, "key");
});

test("more patrols than one request takes become several requests, each with its own key", () => {
  let keys = 0;
  const many = Array.from({ length: 101 }, (_, index) => chosen(String(index), 1));
  const made = snapshots(many, OWNER, () => String(++keys), NOW);
  assert.deepEqual(
    made.map((one) => [one.idempotencyKey, one.updates.length]),
    [
      ["1", 50],
      ["2", 50],
      ["3", 1],
    ],
  );
});

test("nothing chosen makes no snapshot", () => {
  assert.deepEqual(
    snapshots([chosen("1", 0)], OWNER, () => "key", NOW),
    [],
  );
});

test("points are whole and within the server's limits", () => {
  assert.deepEqual([2.9, -2.9, 5000, -5000, NaN, Infinity].map(allowed), [2, -2, 1000, -1000, 0, 0]);
});

test("only the server's own yes counts as taken", () => {
  assert.equal(verdict(answered(200, { success: true }), NOW).kind, "taken");
  assert.equal(verdict(answered(202, { success: true }), NOW).kind, "taken");
  for (const body of [undefined, {}, { success: false }, "<html>", null])
    assert.equal(verdict(answered(200, body), NOW).kind, "later");
  assert.equal(verdict(answered(204, { success: true }), NOW).kind, "later");
  assert.equal(verdict(answered(302), NOW).kind, "later");
});

test("what the server says about points that wait is passed on", () => {
  const body = { success: true, pending: { count: 1, message: "At 20:15." } };
  assert.deepEqual(verdict(answered(202, body), NOW), { kind: "taken", message: "At 20:15." });
});

test("the first time at which one of the patrols is tried again is passed on", () => {
  const retry = (...times: unknown[]) => ({ success: true, patrols: times.map((retryAfter) => ({ retryAfter })) });
  const said = verdict(answered(202, retry("2026-03-02T19:00:00Z", undefined, "2026-03-02T18:40:00Z")), NOW);
  assert.deepEqual(said, { kind: "taken", retryAt: Date.parse("2026-03-02T18:40:00Z") });
  for (const body of [retry(), retry(null), retry("soon"), { success: true, patrols: "none" }])
    assert.deepEqual(verdict(answered(202, body), NOW), { kind: "taken" });
});

test("no answer, 429 and 5xx mean later", () => {
  for (const answer of ["unreachable" as const, ...[429, 500, 502, 503, 504].map((status) => answered(status))]) {
    assert.equal(verdict(answer, NOW).kind, "later");
  }
});

test("Retry-After is understood in seconds and as a date, and is never in the past nor beyond a day", () => {
  const wait = (text: string) => verdict(answered(429, {}, text), NOW);
  assert.deepEqual(wait("90"), { kind: "later", reason: "The server is busy.", notBefore: NOW + 90_000 });
  assert.equal(
    "notBefore" in wait("Mon, 02 Mar 2026 18:31:00 GMT") && wait("Mon, 02 Mar 2026 18:31:00 GMT").kind,
    "later",
  );
  assert.equal((wait("Mon, 02 Mar 2026 18:31:00 GMT") as { notBefore: number }).notBefore, NOW + 60_000);
  assert.equal((wait("9999999") as { notBefore: number }).notBefore, NOW + 86_400_000);
  for (const nonsense of ["", "0", "-5", "soon", "Mon, 02 Mar 2020 18:31:00 GMT"])
    assert.ok(!("notBefore" in wait(nonsense)), nonsense);
});

test("401 asks to sign in; every other 4xx is a refusal with the server's sentence", () => {
  assert.deepEqual(verdict(answered(401), NOW), { kind: "sign-in" });
  assert.deepEqual(verdict(answered(403, { error: "sign_in_again" }), NOW), { kind: "sign-in" });
  for (const status of [400, 403, 404, 409, 413, 422]) {
    assert.deepEqual(verdict(answered(status, { message: "No." }), NOW), { kind: "rejected", reason: "No." });
  }
  assert.deepEqual(verdict(answered(418, undefined), NOW), {
    kind: "rejected",
    reason: "The server refused it (418).",
  });
});

test("a refused CSRF token is not the fault of the points", () => {
  const refused = answered(403, { error: "csrf_invalid", message: "No." });
  assert.ok(isCsrf(refused));
  assert.equal(verdict(refused, NOW).kind, "later");
});

test("key and updates never change, whatever the answer", () => {
  const before = snapshot();
  for (const said of [
    verdict("unreachable", NOW),
    verdict(answered(401), NOW),
    verdict(answered(400), NOW),
    verdict(answered(503, {}, "9"), NOW),
  ]) {
    const after = settled(before, said, NOW)!;
    assert.equal(after.idempotencyKey, before.idempotencyKey);
    assert.deepEqual(after.updates, before.updates);
    assert.equal(again(after, NOW).idempotencyKey, before.idempotencyKey);
  }
  assert.equal(settled(before, { kind: "taken" }, NOW), null);
});

test("refused points wait for a person, not for the clock", () => {
  const refused = settled(snapshot(), { kind: "rejected", reason: "No." }, NOW)!;
  assert.deepEqual(due([refused], NOW + 1e9, true), []);
  assert.equal(nextDue([refused]), null);
  assert.deepEqual(due([again(refused, NOW)], NOW, false).length, 1);
});

test("pauses grow from two seconds to a minute", () => {
  const pauses = [1, 2, 3, 6, 50].map((attempts) => dueAt(snapshot({ attempts, triedAt: NOW }), false) - NOW);
  assert.deepEqual(pauses, [2_000, 4_000, 8_000, 60_000, 60_000]);
});

test("a person skips our own pause but never what the server asked for", () => {
  const paused = snapshot({ attempts: 9, triedAt: NOW });
  assert.deepEqual(due([paused], NOW, false), []);
  assert.equal(due([paused], NOW, true).length, 1);
  const asked = snapshot({ notBefore: NOW + 1000 });
  assert.deepEqual(due([asked], NOW, true), []);
  assert.equal(due([asked], NOW + 1000, true).length, 1);
});

test("the server's wish holds for one wait only", () => {
  const asked = settled(snapshot(), { kind: "later", reason: "Busy.", notBefore: NOW + 1000 }, NOW)!;
  assert.ok(!("notBefore" in settled(asked, { kind: "later", reason: "No connection." }, NOW)!));
});

test("what is due goes out oldest first", () => {
  assert.deepEqual(
    due([snapshot({ id: 3 }), snapshot({ id: 1 })], NOW, false).map((one) => one.id),
    [1, 3],
  );
});

test("every update that is not at the server is counted, and refused ones are not on their way", () => {
  const outbox = [snapshot(), snapshot({ id: 2, status: "rejected" })];
  assert.equal(unsent(outbox), 2);
  assert.equal(onTheWay(outbox, "40104", "1"), 5);
  assert.equal(onTheWay(outbox, "other", "1"), 0);
});

test("what was tapped just now is interactive at its first try, and the backlog is background", () => {
  assert.equal(mode(snapshot(), NOW + 10_000), "interactive");
  assert.equal(mode(snapshot(), NOW + 100_000), "background");
  assert.equal(mode(snapshot({ attempts: 1, triedAt: NOW }), NOW + 1_000), "background");
});

test("what a person tries again is interactive once more", () => {
  const old = snapshot({ status: "rejected", attempts: 3, createdAt: NOW - 1_000_000 });
  assert.equal(mode(again(old, NOW), NOW + 1_000), "interactive");
});
