import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, clock, counted, figure, signed } from "./words.ts";

const NOW = new Date(2026, 2, 2, 18, 30).getTime();

test("numbers are said with a real minus", () => {
  assert.deepEqual([signed(5), signed(-1), figure(-3), figure(7)], ["+5", "−1", "−3", "7"]);
});

test("one is singular", () => {
  assert.deepEqual([counted(1, "point"), counted(2, "point")], ["1 point", "2 points"]);
});

test("ages are rounded down, and a time to come is now", () => {
  const ages = [-5, 59, 60, 3599, 3600, 86400 * 2].map((seconds) => ago(NOW - seconds * 1000, NOW));
  assert.deepEqual(ages, ["just now", "just now", "1 minute ago", "59 minutes ago", "1 hour ago", "2 days ago"]);
});

test("a time on another day says which", () => {
  assert.ok(!clock(NOW, NOW).includes("Mar"));
  assert.ok(clock(NOW + 86_400_000, NOW).includes("3"));
});
