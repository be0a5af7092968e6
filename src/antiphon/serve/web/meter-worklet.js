// Any sound, in the audio thread: blocks in -> the level of each 10 ms, with the context's time of its end. Over WebRTC
// the browser plays and sends by itself, and this is how the page knows when it did.

const FRAME_S = 0.01;

class Meter extends AudioWorkletProcessor {
  constructor() {
    super();
    this.energy = 0;
    this.count = 0;
  }

  /** @param {Float32Array[][]} inputs */
  process(inputs) {
    const block = inputs[0][0];
    const length = block ? block.length : 128;
    for (let at = 0; block && at < length; at++) this.energy += block[at] * block[at];
    this.count += length;
    if (this.count >= FRAME_S * sampleRate) {
      const level = Math.sqrt(this.energy / this.count);
      this.port.postMessage({ level, end: (currentFrame + length) / sampleRate });
      this.energy = 0;
      this.count = 0;
    }
    return true;
  }
}

registerProcessor("antiphon-meter", Meter);
