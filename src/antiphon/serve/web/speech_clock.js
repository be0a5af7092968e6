// Where in the page's own time a sample of the microphone lies, and how long after it something was heard.
// Units: seconds of one AudioContext; positions in ms since the connection began. Pure.

const KEPT_S = 90;
const STEP_S = 0.02;
const ONSET_SILENCE_S = 0.12; // silence before a sound that makes it a beginning

/** Positions of what was sent, by when it was captured. */
export class SentClock {
  constructor() {
    /** @type {{position: number, time: number}[]} */
    this.marks = []; // (ms up to here, captured by then)
    this.position = 0;
  }

  /** @param {number} ms of sound @param {number} end */
  sent(ms, end) {
    this.position += ms;
    this.marks.push({ position: this.position, time: end });
    if (this.marks.length > KEPT_S / STEP_S) this.marks.shift();
  }

  /** When the sample at this position was captured. @param {number} position @returns {number | null} null: too long ago, or not yet */
  timeOf(position) {
    const mark = this.marks.find((one) => one.position >= position);
    if (!mark || position < this.marks[0].position - 20) return null;
    return mark.time - (mark.position - position) / 1000;
  }
}

/** Levels of 10 ms each, where no positions are known: over WebRTC. */
export class LevelClock {
  /** @param {number} floor below this nothing counts as sound */
  constructor(floor = 0.006) {
    this.floor = floor;
    /** @type {{end: number, level: number}[]} */
    this.frames = [];
    this.quiet = 0.001; // how loud the room is
  }

  /** @param {number} level @param {number} end */
  take(level, end) {
    this.quiet = level < this.quiet ? 0.9 * this.quiet + 0.1 * level : Math.min(this.quiet * 1.001, 0.02);
    this.frames.push({ level, end });
    if (this.frames.length > KEPT_S * 100) this.frames.shift();
  }

  get threshold() {
    return Math.max(this.floor, this.quiet * 4);
  }

  /** When the last sound before `by` ended. @param {number} by @returns {number | null} */
  lastSound(by) {
    return this.frames.findLast((frame) => frame.end <= by && frame.level > this.threshold)?.end ?? null;
  }

  /** When the first sound after a silence began, `from` on. @param {number} from @returns {number | null} */
  onset(from) {
    let quietSince = -Infinity;
    for (let at = 0; at < this.frames.length; at++) {
      const frame = this.frames[at];
      if (frame.level <= this.threshold) continue;
      const before = at ? this.frames[at - 1].end : frame.end;
      if (frame.end >= from && frame.end - quietSince > ONSET_SILENCE_S) return before;
      quietSince = frame.end;
    }
    return null;
  }
}

const ANOTHER_PAUSE_S = 0.1;

/** When a voice ended, by events that say how long ago that was: the quickest of them is the nearest. */
export class ToldEnd {
  constructor() {
    /** @type {number | null} */
    this.end = null;
  }

  forget() {
    this.end = null;
  }

  /** @param {number} now @param {number} ago ms */
  take(now, ago) {
    const end = now - ago / 1000;
    this.end = this.end === null || end > this.end + ANOTHER_PAUSE_S ? end : Math.min(this.end, end);
  }
}
