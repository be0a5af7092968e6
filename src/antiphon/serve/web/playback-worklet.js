// The loudspeaker, in the audio thread: 16-bit samples at 24 kHz, each piece with its item's name, in -> sound out, and
// word of how much of which item has sounded. What waits is bounded by what the server sends ahead.
import { Resampler } from "./resampler.js";

const RATE = 24000;
const AUDIBLE = 0.004; // of full scale; softer is breath and dither
const REPORT_S = 0.05;
const FADE = 128; // samples from full to nothing when the sound is broken off, so that nothing clicks
// An item begins so long after its first piece has come, for the server sends what is due and nothing ahead: what comes
// later than that leaves a gap. One step more after each gap, one less after so many items without any.
const LEADS_S = [0.012, 0.025, 0.05, 0.1, 0.2];
const CALM = 3;

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    /** @type {{item: string, samples: Float32Array, at: number}[]} */
    this.queue = [];
    this.item = "";
    this.played = 0; // samples of the item, at the context's rate
    this.isHeard = false; // something audible of it
    this.isRunning = false;
    this.since = 0; // when the first piece came that waits
    this.ended = ""; // the item of which no more will come
    this.newest = ""; // the item of which something came last
    this.dropped = ""; // the item that was broken off: what still comes of it is not played
    this.gaps = 0;
    this.step = 0; // among the leads
    this.calm = 0; // items since the last gap or step
    this.hadGap = false; // the present item
    this.energy = 0;
    this.counted = 0;
    this.fade = 0; // samples of fading that are left
    this.tail = new Float32Array(0);
    this.resampler = new Resampler(RATE, sampleRate);
    this.port.onmessage = ({ data }) => this.take(data);
  }

  /** @param {any} message */
  take(message) {
    if (message.kind === "line") {
      message.port.onmessage = (/** @type {MessageEvent} */ { data }) => this.take(data);
    } else if (message.kind === "push") {
      if (message.item === this.dropped) return;
      const pcm = new Float32Array(message.pcm.length);
      for (let at = 0; at < pcm.length; at++) pcm[at] = message.pcm[at] / 32768;
      if (message.item !== this.newest) this.resampler = new Resampler(RATE, sampleRate);
      this.newest = message.item;
      const samples = this.resampler.push(pcm);
      if (!this.queue.length) this.since = currentFrame;
      if (message.item === this.item && !this.isRunning && !this.queue.length) this.gap();
      this.queue.push({ item: message.item, samples, at: 0 });
    } else if (message.kind === "end") {
      this.ended = message.item;
      if (message.item === this.item && !this.isRunning && !this.queue.length) this.finish();
    } else if (message.kind === "flush") {
      this.flush();
    }
  }

  flush() {
    const next = this.queue[0];
    this.tail = this.isRunning && next ? next.samples.slice(next.at, next.at + FADE) : new Float32Array(0);
    this.fade = this.tail.length;
    if (this.newest) {
      const seconds = this.newest === this.item ? this.played / sampleRate : 0;
      this.port.postMessage({ kind: "stopped", item: this.newest, seconds, hasRest: this.queue.length > 0 });
      this.dropped = this.newest;
    }
    this.queue = [];
    this.isRunning = false;
    this.item = this.newest = "";
  }

  /** @param {Float32Array[][]} _inputs @param {Float32Array[][]} outputs */
  process(_inputs, outputs) {
    const output = outputs[0][0];
    if (!this.isRunning && this.queue.length) {
      this.isRunning = currentFrame - this.since >= LEADS_S[this.step] * sampleRate || this.queue[0].item === this.ended;
    }
    let at = 0;
    if (this.fade) {
      for (; at < output.length && this.fade; at++, this.fade--) {
        output[at] = (this.tail[this.tail.length - this.fade] * this.fade) / this.tail.length;
      }
    }
    while (this.isRunning && at < output.length) {
      const piece = this.queue[0];
      if (!piece) {
        this.runDry();
        break;
      }
      if (piece.item !== this.item) this.begin(piece.item);
      const count = Math.min(output.length - at, piece.samples.length - piece.at);
      for (let index = 0; index < count; index++) {
        const value = piece.samples[piece.at + index];
        output[at + index] = value;
        this.energy += value * value;
        if (!this.isHeard && Math.abs(value) > AUDIBLE) this.hear(at + index);
      }
      at += count;
      piece.at += count;
      this.played += count;
      if (piece.at === piece.samples.length) this.queue.shift();
    }
    for (const channel of outputs[0].slice(1)) channel.set(output);
    this.report(output.length);
    return true;
  }

  /** @param {string} item */
  begin(item) {
    this.item = item;
    this.played = 0;
    this.isHeard = this.hadGap = false;
  }

  /** @param {number} offset in the present block */
  hear(offset) {
    this.isHeard = true;
    this.port.postMessage({ kind: "heard", item: this.item, time: (currentFrame + offset) / sampleRate });
  }

  /** All that has come has sounded: the item is over, or what follows is late, which shows when it comes. */
  runDry() {
    this.isRunning = false;
    if (this.item === this.ended) this.finish();
  }

  gap() {
    this.gaps += 1;
    this.step = Math.min(this.step + 1, LEADS_S.length - 1);
    this.calm = 0;
    this.hadGap = true;
    this.port.postMessage({ kind: "gap", item: this.item, gaps: this.gaps });
  }

  finish() {
    this.port.postMessage({ kind: "finished", item: this.item, seconds: this.played / sampleRate });
    if (!this.hadGap && ++this.calm >= CALM) {
      this.step = Math.max(0, this.step - 1);
      this.calm = 0;
    }
    if (this.newest === this.item) this.newest = "";
    this.item = "";
  }

  /** @param {number} count */
  report(count) {
    this.counted += count;
    if (this.counted < REPORT_S * sampleRate) return;
    const level = Math.sqrt(this.energy / this.counted);
    this.port.postMessage({ kind: "level", level, item: this.item, seconds: this.played / sampleRate });
    this.energy = 0;
    this.counted = 0;
  }
}

registerProcessor("antiphon-playback", Playback);
