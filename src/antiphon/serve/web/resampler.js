// Samples at one rate in -> at another, without a gap between calls. A windowed sinc of 32 taps; pure, no allocation but
// for what is returned. Used inside the audio worklets.

const HALF_TAPS = 16;
const PHASES = 256;

export class Resampler {
  /** @param {number} from Hz @param {number} to Hz */
  constructor(from, to) {
    this.step = from / to;
    this.isIdentity = from === to;
    this.position = 0; // of the next output sample, in input samples behind the history's centre
    this.history = new Float32Array(2 * HALF_TAPS);
    this.table = this.isIdentity ? new Float32Array(0) : kernel(Math.min(1, to / from));
  }

  /** By how many seconds what comes out is behind what went in. @param {number} from Hz */
  static delay(from) {
    return HALF_TAPS / from;
  }

  /** @param {Float32Array} input @returns {Float32Array} */
  push(input) {
    if (this.isIdentity) return input.slice();
    const all = new Float32Array(this.history.length + input.length);
    all.set(this.history);
    all.set(input, this.history.length);
    const room = Math.ceil((input.length + 1) / this.step) + 1;
    const output = new Float32Array(room);
    let count = 0;
    // Output at `position` needs the inputs floor(position) .. floor(position) + 2 * HALF_TAPS - 1 of `all`.
    while (Math.floor(this.position) + 2 * HALF_TAPS <= all.length - 1) {
      output[count++] = this.at(all, this.position);
      this.position += this.step;
    }
    this.position -= input.length;
    this.history = all.slice(all.length - 2 * HALF_TAPS);
    return output.subarray(0, count);
  }

  /** @param {Float32Array} all @param {number} position @returns {number} */
  at(all, position) {
    const whole = Math.floor(position);
    const phase = (position - whole) * PHASES;
    const row = Math.floor(phase);
    const between = phase - row;
    const width = 2 * HALF_TAPS;
    let sum = 0;
    for (let tap = 0; tap < width; tap++) {
      const low = this.table[row * width + tap];
      const high = this.table[(row + 1) * width + tap];
      sum += all[whole + 1 + tap] * (low + (high - low) * between);
    }
    return sum;
  }
}

/** @param {number} cutoff as a share of half the input's rate @returns {Float32Array} a row of taps for each phase */
function kernel(cutoff) {
  const width = 2 * HALF_TAPS;
  const table = new Float32Array((PHASES + 1) * width);
  const edge = cutoff * 0.94; // so that the slope ends before the alias begins
  for (let phase = 0; phase <= PHASES; phase++) {
    let sum = 0;
    for (let tap = 0; tap < width; tap++) {
      const x = tap - (HALF_TAPS - 1) - phase / PHASES;
      const window = Math.abs(x) >= HALF_TAPS ? 0 : 0.5 + 0.5 * Math.cos((Math.PI * x) / HALF_TAPS);
      const sinc = x === 0 ? edge : Math.sin(Math.PI * edge * x) / (Math.PI * x);
      table[phase * width + tap] = sinc * window;
      sum += sinc * window;
    }
    for (let tap = 0; tap < width; tap++) table[phase * width + tap] /= sum; // a constant stays what it is
  }
  return table;
}
