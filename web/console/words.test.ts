import assert from "node:assert/strict";
import { test } from "node:test";
import { between, bytes, milliseconds, opening, percent, perSecond, pretty, scope, short, span } from "./words.ts";

test("large counts are short", () => {
  assert.deepEqual([0, 9999, 12_345, 250_000, 4_500_000].map(short), ["0", "9,999", "12.3k", "250k", "4.5M"]);
});

test("spans have two units at most, and none is negative", () => {
  assert.deepEqual([-3, 0.4, 8, 60, 185, 7800, 356_400].map(span), ["0 s", "0 s", "8 s", "1 min", "3 min 5 s", "2 h 10 min", "4 d 3 h"]);
});

test("rates, shares, sizes and latencies have the digits that help", () => {
  assert.deepEqual([0, 0.25, 3.42, 1234].map(perSecond), ["0/s", "0.25/s", "3.4/s", "1,234/s"]);
  assert.deepEqual([0, 0.0001, 0.05, 1].map(percent), ["0 %", "< 0.1 %", "5.0 %", "100 %"]);
  assert.deepEqual([12, 1500, 25_000_000].map(bytes), ["12 B", "1.5 kB", "25 MB"]);
  assert.deepEqual([3.2, 1500, 30_000].map(milliseconds), ["3 ms", "1.5 s", "30 s"]);
});

test("a stretch of time names its day once", () => {
  assert.equal(between("2026-03-02T12:00:10", "2026-03-02T12:00:50"), "2 Mar, 12:00");
  assert.equal(between("2026-03-02T12:00:00", "2026-03-02T18:05:00"), "2 Mar, 12:00 to 18:05");
  assert.equal(between("2026-03-02T12:00:00", "2026-03-12T18:05:00"), "2 Mar, 12:00 to 12 Mar, 18:05");
});

test("a gate says whose it is and when it opens", () => {
  assert.deepEqual(["*", "tenant:a:b", "principal:7"].map(scope), ["the whole channel", "tenant a:b", "principal 7"]);
  const now = Date.parse("2026-03-02T18:00:00Z");
  assert.equal(opening(null, now), "until somebody opens it");
  assert.equal(opening("2026-03-02T18:00:07.2Z", now), "opens in 8 s");
  assert.equal(opening("2026-03-02T17:59:00Z", now), "opening…");
});

test("a payload is laid out only where that changes nothing in it", () => {
  assert.equal(pretty('{"a":1}', false), '{\n  "a": 1\n}');
  assert.equal(pretty('{"a":12345678901234567890}', false), '{"a":12345678901234567890}');
  assert.equal(pretty('{"a":', true), '{"a":');
});
