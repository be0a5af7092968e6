// What the server and the page know of a turn's silence -> one record of each turn, and the parts its silence fell into.
// Units: ms after the caller's last speech sample. Pure: no clock, no document.

/**
 * @typedef {{silence: number, probability: number, wait: number, pause: number, risk: number, evidence: string[]}} Opinion
 * @typedef {{stage: string, start: number, end: number}} Span
 * @typedef {{
 *   id: string, number: number, opinions: Opinion[], stages: Record<string, number>, spans: Span[],
 *   server: number | null, page: number | null, responseItem: string | null, outcome: string
 * }} Turn
 * @typedef {{name: string, label: string, start: number, end: number}} Part
 */

export const MOST_TURNS = 200;
const MOST_OPINIONS = 16;

/** Every turn of a conversation, the oldest first; the oldest go when there are too many. */
export class Turns {
  constructor() {
    /** @type {Turn[]} */
    this.all = [];
    /** @type {Map<number, Opinion[]>} */
    this.pending = new Map(); // of a turn whose stages are not told yet, by its number
  }

  /** A new connection numbers its turns anew. */
  reconnected() {
    this.pending.clear();
  }

  /**
   * One of the server's events.
   * @param {any} event
   * @returns {Turn | null} the turn that changed
   */
  take(event) {
    if (event.type === "antiphon.turn.end_judged") {
      const opinions = this.pending.get(event.turn) ?? [];
      if (opinions.length < MOST_OPINIONS) opinions.push(readOpinion(event));
      this.pending.set(event.turn, opinions);
      return null;
    }
    if (event.type === "antiphon.turn.timeline") return this.measured(event);
    if (event.type === "response.done") return this.finished(event.response);
    return null;
  }

  /** @param {any} event @returns {Turn} */
  measured(event) {
    const opinions = this.pending.get(event.turn) ?? [];
    this.pending.delete(event.turn);
    const turn = {
      id: String(event.event_id), // a turn that was answered twice has two
      number: (this.all.at(-1)?.number ?? 0) + 1,
      opinions: lastPause(opinions),
      stages: { ...event.stages },
      spans: event.spans.map((/** @type {any} */ span) => ({
        stage: span.stage,
        start: span.start_ms,
        end: span.end_ms,
      })),
      server: event.stages["antiphon.reply.first_sound"] ?? null,
      page: null,
      responseItem: event.response_item_id,
      outcome: "",
    };
    this.all.push(turn);
    if (this.all.length > MOST_TURNS) this.all.shift();
    return turn;
  }

  /**
   * The page has played the first audible sample of an item, so long after the caller's last speech sample.
   * @param {string} item
   * @param {number} latency
   * @returns {Turn | null}
   */
  sounded(item, latency) {
    const turn = this.all.findLast((one) => one.responseItem === item && one.page === null);
    if (turn) turn.page = latency;
    return turn ?? null;
  }

  /** @param {any} response @returns {Turn | null} */
  finished(response) {
    const items = (response.output ?? []).map((/** @type {any} */ item) => item.id);
    const turn = this.all.findLast((one) => one.responseItem !== null && items.includes(one.responseItem));
    if (turn) turn.outcome = response.status;
    return turn ?? null;
  }

  /** What a listener waited, in the page where that is known, else by the server's stamps. @returns {number[]} */
  latencies() {
    return this.all.map(latencyOf).filter((/** @type {number | null} */ ms) => ms !== null);
  }
}

/** @param {Turn} turn @returns {number | null} */
export function latencyOf(turn) {
  const found = turn.page ?? turn.server;
  return found !== null && found >= 0 ? found : null;
}

/** @param {any} event @returns {Opinion} */
export function readOpinion(event) {
  return {
    silence: event.silence_ms,
    probability: event.probability,
    wait: event.wait_ms,
    pause: event.pause_ms,
    risk: event.cut_in_risk,
    evidence: event.evidence,
  };
}

/**
 * A hesitation before the end had opinions of its own: those since the silence last began are this pause's.
 * @param {Opinion[]} opinions
 */
function lastPause(opinions) {
  let start = 0;
  for (let at = 1; at < opinions.length; at++) {
    const isNew = opinions[at].evidence.length <= opinions[at - 1].evidence.length;
    if (isNew || opinions[at].silence < opinions[at - 1].silence) start = at;
  }
  return opinions.slice(start);
}

/**
 * How sure the server was that the turn was over, at moments of the silence: each opinion is a step, and between them
 * silence itself makes it surer, for a pause inside a turn would have ended by then with 1 - exp(-silence / pause).
 * @param {Opinion[]} opinions
 * @param {number} end
 * @param {number} step
 * @returns {{at: number, sure: number}[]}
 */
export function certainty(opinions, end, step = 10) {
  const points = [];
  for (let index = 0; index < opinions.length; index++) {
    const from = opinions[index].silence;
    const to = Math.min(end, opinions[index + 1]?.silence ?? end);
    for (let at = from; at < to; at += step) points.push({ at, sure: sureAt(opinions[index], at) });
    if (to >= from) points.push({ at: to, sure: sureAt(opinions[index], to) });
  }
  return points;
}

/** @param {Opinion} opinion @param {number} silence @returns {number} */
function sureAt(opinion, silence) {
  return 1 - (1 - opinion.probability) * Math.exp(-silence / opinion.pause);
}

const CHAIN = [
  ["notice", "noticing the pause", "antiphon.pause.noticed"],
  ["hear", "recognising the words", "antiphon.transcribed"],
  ["think", "writing the reply", "antiphon.reply.chunk_ready"],
  ["speak", "voicing it", "antiphon.reply.voiced"],
  ["judge", "waiting to be sure", "antiphon.turn.confirmed"],
  ["play", "handing it over", "antiphon.reply.first_sound"],
];

/**
 * What the silence was spent on, one after the other; the parts add up to the whole. A stage that was over before the
 * one before it takes no time: drafts run ahead.
 * @param {Turn} turn
 * @returns {Part[]}
 */
export function parts(turn) {
  const ends = /** @type {[string, string, number][]} */ (
    CHAIN.filter(([, , mark]) => turn.stages[mark] !== undefined).map(([name, label, mark]) => [
      name,
      label,
      turn.stages[mark],
    ])
  );
  const whole = latencyOf(turn);
  if (turn.page !== null && turn.server !== null) ends.push(["net", "network and playback", turn.page]);
  ends.sort((one, other) => one[2] - other[2]);
  const found = [];
  let at = 0;
  for (const [name, label, mark] of ends) {
    const end = Math.min(Math.max(mark, at), whole ?? mark);
    if (end > at) found.push({ name, label, start: at, end });
    at = Math.max(at, end);
  }
  return joined(found.flatMap((part) => (part.name === "think" ? heardFirst(turn, part) : [part])));
}

/**
 * A reply that is written only once the words were heard again waited for the hearing, not for the language model.
 * @param {Turn} turn
 * @param {Part} part
 * @returns {Part[]}
 */
function heardFirst(turn, part) {
  const within = turn.spans.filter((span) => span.end > part.start && span.start < part.end);
  const begun = Math.min(part.end, ...within.filter((span) => span.stage === "chat").map((span) => Math.max(part.start, span.start)));
  const heard = within
    .filter((span) => span.stage === "speech_to_text" && span.start < begun)
    .reduce((sum, span) => sum + Math.min(span.end, begun) - Math.max(span.start, part.start), 0);
  if (begun >= part.end || heard * 2 < begun - part.start) return [part];
  const [name, label] = CHAIN[1];
  return [{ name, label, start: part.start, end: begun }, { ...part, start: begun }].filter(({ start, end }) => end > start);
}

/** Neighbours of one name as one. @param {Part[]} chain @returns {Part[]} */
function joined(chain) {
  /** @type {Part[]} */
  const found = [];
  for (const part of chain) {
    const last = found.at(-1);
    if (last?.name === part.name) last.end = part.end;
    else found.push({ ...part });
  }
  return found;
}

const ROWS = [
  ["notice", "Voice detection", "antiphon.vad"],
  ["hear", "Speech recognition", "speech_to_text"],
  ["judge", "Turn end", "antiphon.turn_end"],
  ["judge", "Tone of voice", "antiphon.prosody"],
  ["think", "Language model", "chat"],
  ["act", "Tool", "execute_tool"],
  ["speak", "Voice", "text_to_speech"],
];

/**
 * The rows of a turn's waterfall: when each engine worked within the silence, the network last.
 * @param {Turn} turn
 * @returns {{name: string, label: string, bars: {start: number, end: number}[], total: number}[]}
 */
export function rows(turn) {
  const end = latencyOf(turn) ?? Math.max(0, ...Object.values(turn.stages));
  const found = [];
  for (const [name, label, stage] of ROWS) {
    const bars = turn.spans
      .filter((span) => span.stage === stage && span.end > 0 && span.start < end)
      .map((span) => ({ start: Math.max(0, span.start), end: Math.min(end, span.end) }));
    if (bars.length) found.push({ name, label, bars, total: bars.reduce((sum, bar) => sum + bar.end - bar.start, 0) });
  }
  if (turn.server !== null && turn.page !== null && turn.page > turn.server) {
    const bar = { start: turn.server, end: turn.page };
    found.push({ name: "net", label: "Network, playback", bars: [bar], total: bar.end - bar.start });
  }
  return found;
}
