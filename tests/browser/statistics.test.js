// What is shown of latencies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { percentile, summary, ticks } from "../../src/antiphon/serve/web/statistics.js";

test("of nothing there is no percentile", () => {
  assert.equal(percentile([], 0.5), null);
  assert.deepEqual(summary([]), { count: 0, p50: null, p95: null });
});

test("a percentile is one of the values, whatever their order", () => {
  assert.equal(percentile([30, 10, 20], 0.5), 20);
  assert.equal(percentile([40, 10, 30, 20], 0.5), 20);
  assert.deepEqual(summary([700]), { count: 1, p50: 700, p95: 700 });
});

test("of few values P95 is the largest, of many it is not", () => {
  const values = Array.from({ length: 100 }, (_, at) => at + 1);
  assert.equal(percentile(values, 0.95), 95);
  assert.equal(percentile(values.slice(0, 19), 0.95), 19);
});

test("ticks are round, begin at nothing and are few", () => {
  assert.deepEqual(ticks(780, 5), [0, 200, 400, 600]);
  for (const end of [1, 35, 120, 999, 4321, 70000]) {
    const found = ticks(end, 6);
    assert.equal(found[0], 0);
    assert.ok(found.length <= 7 && found.at(-1) <= end, `${end}: ${found}`);
  }
});
