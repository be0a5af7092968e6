// The microphone, in the audio thread: blocks at the context's rate in -> 20 ms of 16-bit samples at 24 kHz out, each
// with the context's time of its end, to the port that comes as the first message.
import { Resampler } from "./resampler.js";

const RATE = 24000;
const CHUNK = 480;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.delay = sampleRate === RATE ? 0 : Resampler.delay(sampleRate);
    this.chunk = new Int16Array(CHUNK);
    this.filled = 0;
    this.energy = 0;
    /** @type {MessagePort | null} */
    this.line = null;
    this.port.onmessage = ({ data }) => {
      this.line = data;
    };
  }

  /** @param {Float32Array[][]} inputs */
  process(inputs) {
    const channels = inputs[0];
    if (!channels.length) return true; // the device is gone; silence is the page's to send
    const block = channels.length === 1 ? channels[0] : mixed(channels);
    const samples = this.resampler.push(block);
    const blockEnd = (currentFrame + block.length) / sampleRate - this.delay;
    for (let at = 0; at < samples.length; at++) {
      const value = Math.max(-1, Math.min(1, samples[at]));
      this.chunk[this.filled++] = Math.round(value * 32767);
      this.energy += value * value;
      if (this.filled === CHUNK) this.hand(blockEnd - (samples.length - 1 - at) / RATE);
    }
    return true;
  }

  /** @param {number} end */
  hand(end) {
    const pcm = this.chunk;
    this.line?.postMessage({ pcm, end, level: Math.sqrt(this.energy / CHUNK) }, [pcm.buffer]);
    this.chunk = new Int16Array(CHUNK);
    this.filled = 0;
    this.energy = 0;
  }
}

/** @param {Float32Array[]} channels */
function mixed(channels) {
  const sum = channels[0].slice();
  for (const channel of channels.slice(1)) for (let at = 0; at < sum.length; at++) sum[at] += channel[at];
  return sum.map((value) => value / channels.length);
}

registerProcessor("antiphon-capture", Capture);
