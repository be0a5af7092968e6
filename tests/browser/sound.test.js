// Samples and moments: base64, resampling, where in time a position lies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64, toBase64 } from "../../src/antiphon/serve/web/bytes.js";
import { Resampler } from "../../src/antiphon/serve/web/resampler.js";
import { LevelClock, SentClock, ToldEnd } from "../../src/antiphon/serve/web/speech_clock.js";

test("samples come back from base64 as they were", () => {
  const pcm = Int16Array.from({ length: 30000 }, (_, at) => ((at * 7919) % 65536) - 32768);
  assert.deepEqual(fromBase64(toBase64(pcm)), pcm);
  assert.deepEqual(fromBase64(""), new Int16Array(0));
});

const tone = (rate, hz, count) => Float32Array.from({ length: count }, (_, at) => Math.sin((2 * Math.PI * hz * at) / rate));

function resampled(input, from, to, block) {
  const resampler = new Resampler(from, to);
  const found = [];
  for (let at = 0; at < input.length; at += block) found.push(...resampler.push(input.subarray(at, at + block)));
  return Float32Array.from(found);
}

for (const [from, to] of [[48000, 24000], [44100, 24000], [24000, 48000], [24000, 44100], [16000, 24000]]) {
  test(`${from} to ${to} Hz keeps a tone, in any blocks`, () => {
    const output = resampled(tone(from, 440, from), from, to, 128);
    assert.ok(Math.abs(output.length - to) < 64, `${output.length} samples of ${to}`);
    const delay = Resampler.delay(from) * to;
    let worst = 0;
    for (let at = 200; at < output.length - 200; at++) {
      worst = Math.max(worst, Math.abs(output[at] - Math.sin((2 * Math.PI * 440 * (at - delay)) / to)));
    }
    assert.ok(worst < 0.02, `off by ${worst}`);
    const small = resampled(tone(from, 440, 12800), from, to, 128);
    const large = resampled(tone(from, 440, 12800), from, to, 640);
    assert.ok(Math.abs(small.length - large.length) <= 1);
    assert.ok(small.every((value, at) => Math.abs(value - (large[at] ?? value)) < 1e-5));
  });
}

test("what the lower rate cannot hold does not come back as another tone", () => {
  const output = resampled(tone(48000, 16000, 48000), 48000, 24000, 128).subarray(200);
  assert.ok(Math.max(...output.map(Math.abs)) < 0.02);
});

test("equal rates copy", () => {
  const input = tone(24000, 440, 256);
  assert.deepEqual(new Resampler(24000, 24000).push(input), input);
});

test("a position is found between two marks, and none beyond what was sent", () => {
  const clock = new SentClock();
  for (let at = 1; at <= 5; at++) clock.sent(20, 10 + at * 0.02);
  assert.ok(Math.abs(clock.timeOf(50) - 10.05) < 1e-9);
  assert.equal(clock.timeOf(120), null);
});

test("levels say when speech ended and when a reply began", () => {
  const clock = new LevelClock();
  for (let at = 0; at < 400; at++) clock.take((at >= 50 && at < 150) || at >= 300 ? 0.1 : 0.0005, at / 100);
  assert.equal(clock.lastSound(2.5), 1.49);
  assert.equal(clock.onset(1.6), 2.99);
  assert.equal(clock.onset(3.5), null);
});

test("the quickest word of when a voice ended counts, and a later pause is another", () => {
  const told = new ToldEnd();
  assert.equal(told.end, null);
  told.take(10.32, 300);
  told.take(10.41, 400);
  assert.ok(Math.abs(told.end - 10.01) < 1e-9);
  told.take(11.25, 250);
  assert.ok(Math.abs(told.end - 11) < 1e-9);
});
