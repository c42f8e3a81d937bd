import assert from "node:assert/strict";
import { test } from "node:test";
import type { BoardScores } from "../shared/wire.ts";
import { bars, pauseAfter, pollDelay } from "./rules.ts";

const NOW = Date.parse("2026-03-02T18:30:00Z");

function scores(...patrols: [number, number][]): BoardScores {
  const named = patrols.map(([score, pendingDelta], index) => ({
    id: String(index),
    name: `P${index}`,
    score,
    pendingDelta,
    hasPending: pendingDelta !== 0,
  }));
  const settings = { patrolColors: { 0: "red", 1: "pink" } as unknown as Record<string, "red"> };
  return { patrols: named, cached_at: "", cache_expires_at: "", stale: false, settings };
}

test("a bar shows the score with what is pending, relative to the best", () => {
  const [first, second] = bars(scores([40, 10], [100, 0]));
  assert.deepEqual([first!.shown, first!.pending, first!.share, second!.share], [50, true, 0.5, 1]);
});

test("scores of zero and below have no length", () => {
  assert.deepEqual(
    bars(scores([0, 0], [-5, 0])).map((bar) => bar.share),
    [0, 0],
  );
});

test("a colour that nobody knows is none", () => {
  assert.deepEqual(
    bars(scores([1, 0], [1, 0])).map((bar) => bar.colour),
    ["red", ""],
  );
});

test("the server is not asked before its answer expires, by its own clock", () => {
  assert.equal(pollDelay("2026-03-02T18:35:00Z", NOW, 0), 300_000);
  assert.ok(pollDelay("2026-03-02T18:35:00Z", NOW, 0.9) > 300_000);
  for (const past of ["2026-03-02T18:00:00Z", "nonsense"]) assert.equal(pollDelay(past, NOW, 0), 5_000);
  assert.equal(pollDelay("2027-03-02T18:35:00Z", NOW, 0), 3_600_000);
});

test("pauses grow to two minutes, and a server that names a longer one is obeyed", () => {
  assert.deepEqual(
    [1, 2, 20].map((failures) => pauseAfter(failures, 0, 0)),
    [1_000, 2_000, 120_000],
  );
  assert.equal(pauseAfter(1, 600_000, 0), 600_000);
});
