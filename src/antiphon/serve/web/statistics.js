// Latencies in -> the figures that are shown of them. Units: whatever goes in. Pure.

/**
 * The smallest value that at least this share of all values do not exceed; of few values a high share is the largest.
 * @param {readonly number[]} values
 * @param {number} share above 0, 1 at most
 * @returns {number | null} null of nothing
 */
export function percentile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/**
 * @param {readonly number[]} values
 * @returns {{count: number, p50: number | null, p95: number | null}}
 */
export function summary(values) {
  return { count: values.length, p50: percentile(values, 0.5), p95: percentile(values, 0.95) };
}

/**
 * Round steps from 0 to beyond `end`, `most` of them at most.
 * @param {number} end
 * @param {number} most
 * @returns {number[]}
 */
export function ticks(end, most) {
  const steps = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 60000];
  const step = steps.find((one) => end / one <= most) ?? end;
  const found = [];
  for (let at = 0; at <= end + 1e-9; at += step) found.push(at);
  return found;
}
