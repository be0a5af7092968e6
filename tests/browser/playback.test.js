// The loudspeaker's audio thread, block by block, with a clock of ours: when an item begins, runs dry, ends, is broken off.
import assert from "node:assert/strict";
import { test } from "node:test";

const RATE = 24000;
const BLOCK = 120; // 5 ms
const PIECE = 480; // 20 ms, as the server sends them

globalThis.sampleRate = RATE;
globalThis.currentFrame = 0;
globalThis.AudioWorkletProcessor = class {
  port = { onmessage: null, postMessage: (told) => this.told.push(told) };
  told = [];
};
let Playback;
globalThis.registerProcessor = (_name, made) => {
  Playback = made;
};
await import("../../src/antiphon/serve/web/playback-worklet.js");

class Ear {
  constructor() {
    this.player = new Playback();
    this.heard = [];
  }

  push(item, level = 0.5, count = 1) {
    for (let at = 0; at < count; at++) this.player.take({ kind: "push", item, pcm: new Int16Array(PIECE).fill(level * 32767) });
  }

  end(item) {
    this.player.take({ kind: "end", item });
  }

  /** Let so many ms pass; how many of them sounded. */
  wait(ms) {
    let sounding = 0;
    for (let at = 0; at < ms; at += 5) {
      const output = new Float32Array(BLOCK);
      this.player.process([], [[output]]);
      globalThis.currentFrame += BLOCK;
      this.heard.push(...output);
      sounding += output.filter((value) => value > 0.1).length / (RATE / 1000);
    }
    return sounding;
  }

  kinds() {
    return this.player.told.splice(0).map(({ kind }) => kind).filter((kind) => kind !== "level");
  }
}

/** An item of so many pieces, each in its time, but for a pause before the last. */
function item(ear, name, pieces, pause = 0) {
  for (let at = 0; at < pieces; at++) {
    if (pause && at === pieces - 1) ear.wait(pause);
    ear.push(name);
    ear.wait(20);
  }
  ear.end(name);
  ear.wait(300);
}

test("a piece that is late leaves a gap, once; an end that comes behind the last sound leaves none", () => {
  const ear = new Ear();
  item(ear, "one", 5);
  assert.deepEqual(ear.kinds(), ["heard", "finished"]);
  ear.push("two");
  ear.wait(200);
  ear.end("two");
  assert.deepEqual([ear.kinds(), ear.player.gaps], [["heard", "finished"], 0]);
  item(ear, "three", 5, 60);
  assert.deepEqual([ear.kinds(), ear.player.gaps], [["heard", "gap", "finished"], 1]);
});

test("the lead grows with a gap and shrinks again after items without any", () => {
  const ear = new Ear();
  const lead = (name) => {
    ear.push(name);
    let ms = 0;
    while (!ear.wait(5)) ms += 5;
    ear.end(name);
    ear.wait(100);
    return ms;
  };
  const first = lead("a");
  item(ear, "late", 4, 80);
  const grown = lead("b");
  assert.ok(grown > first, `${grown} ms after ${first}`);
  for (const name of ["c", "d"]) lead(name);
  assert.equal(lead("e"), first);
});

test("what is broken off is not played, whatever still comes of it, and what had sounded is told", () => {
  const ear = new Ear();
  ear.push("one", 0.5, 10);
  ear.wait(115);
  ear.player.take({ kind: "flush" });
  const { kind, item: name, seconds, hasRest } = ear.player.told.at(-1);
  assert.deepEqual([kind, name, hasRest], ["stopped", "one", true]);
  assert.ok(Math.abs(seconds - 0.1) < 0.006, `${seconds} s`);
  ear.push("one", 0.5, 5);
  ear.end("one");
  assert.ok(ear.wait(200) < 6); // it fades
  ear.push("two");
  assert.ok(ear.wait(60) > 15);
  ear.kinds();
  ear.end("two");
  ear.player.take({ kind: "flush" });
  assert.deepEqual(ear.kinds(), ["finished"]); // nothing is left to be broken off
});

test("what was broken off before it sounded was not heard at all", () => {
  const ear = new Ear();
  ear.push("one");
  ear.player.take({ kind: "flush" });
  assert.deepEqual(
    ear.player.told.map(({ kind, seconds, hasRest }) => [kind, seconds, hasRest]),
    [["stopped", 0, true]],
  );
});
