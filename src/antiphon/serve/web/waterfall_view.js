// One turn -> a picture of its silence: how sure its end was, what the reply waited for, when each engine worked.
import { svg } from "./dom.js";
import { ticks } from "./statistics.js";
import { certainty, latencyOf, parts, rows } from "./turns.js";

const ROW = 24;
const BAR = 14;
const CURVE = 62;
const TOP = 8;
const LABELS = { wide: 132, narrow: 96 };
const FIGURES = 52;
const LEAST_FOR_TEXT = 26;

/**
 * @param {import("./turns.js").Turn} turn
 * @param {number} width px
 * @returns {SVGSVGElement}
 */
export function waterfall(turn, width) {
  const isNarrow = width < 420;
  const left = isNarrow ? LABELS.narrow : LABELS.wide;
  const whole = latencyOf(turn) ?? Math.max(1, ...Object.values(turn.stages));
  const marks = ticks(whole * 1.04, isNarrow ? 4 : 7);
  const end = Math.max(whole * 1.04, marks.at(-1) ?? 0);
  const inner = width - left - FIGURES;
  /** @param {number} ms */
  const x = (ms) => left + (ms / end) * inner;
  const found = rows(turn);
  const chain = parts(turn);
  const stackTop = TOP + CURVE + 16;
  const rowsTop = stackTop + ROW + 10;
  const bottom = rowsTop + found.length * ROW;
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${bottom + 26}`,
    height: bottom + 26,
    role: "img",
    "aria-label": inWords(turn, chain, whole),
  });
  picture.append(svg("rect", { class: "waiting", x: x(0), y: TOP, width: Math.max(0, x(whole) - x(0)), height: bottom - TOP }));
  for (const mark of marks) {
    picture.append(svg("line", { class: "grid", x1: x(mark), x2: x(mark), y1: TOP, y2: bottom }));
    picture.append(svg("text", { class: "mid", x: x(mark), y: bottom + 16 }, String(mark)));
  }
  picture.append(svg("text", { class: "end", x: width, y: bottom + 16 }, "ms"));
  picture.append(...curve(turn, x, whole));
  picture.append(svg("text", { class: "strong", x: 0, y: TOP + CURVE / 2 + 4 }, isNarrow ? "Turn over?" : "Is the turn over?"));
  const limit = turn.opinions[0];
  if (limit) picture.append(svg("text", { class: "end", x: width, y: TOP + 4 + curveY(1 - limit.risk) }, percent(1 - limit.risk)));
  picture.append(svg("text", { class: "strong", x: 0, y: stackTop + 15 }, "Waited for"));
  for (const part of chain) {
    const [from, to] = [x(part.start), x(part.end)];
    const bar = svg("rect", { class: `bar-${part.name}`, x: from, y: stackTop, width: Math.max(1, to - from - 1), height: ROW - 3 });
    bar.append(svg("title", {}, `${part.label}: ${Math.round(part.end - part.start)} ms`));
    picture.append(bar);
    if (to - from > LEAST_FOR_TEXT) {
      const text = String(Math.round(part.end - part.start));
      picture.append(svg("text", { class: "on", x: (from + to) / 2, y: stackTop + 15 }, text));
    }
  }
  picture.append(svg("text", { class: "end strong", x: width, y: stackTop + 15 }, `${Math.round(whole)}`));
  found.forEach((row, place) => {
    const y = rowsTop + place * ROW;
    picture.append(svg("text", { x: 0, y: y + 13 }, isNarrow ? (SHORT[row.label] ?? row.label) : row.label));
    for (const bar of row.bars) {
      const width = Math.max(2, x(bar.end) - x(bar.start));
      picture.append(svg("rect", { class: `bar-${row.name}`, x: x(bar.start), y: y + 2, width, height: BAR, rx: 2 }));
    }
    picture.append(svg("text", { class: "end", x: width, y: y + 13 }, String(Math.round(row.total))));
  });
  picture.append(svg("line", { class: "axis", x1: left, x2: left + inner, y1: bottom, y2: bottom }));
  for (const at of [0, whole]) picture.append(svg("line", { class: "now", x1: x(at), x2: x(at), y1: TOP, y2: bottom }));
  return picture;
}

/** @type {Record<string, string>} */
const SHORT = {
  "Voice detection": "Detection",
  "Speech recognition": "Recognition",
  "Language model": "Model",
  "Network, playback": "Network",
};

/** @param {number} sure */
function curveY(sure) {
  return (1 - sure) * (CURVE - 4);
}

/** @param {import("./turns.js").Turn} turn @param {(ms: number) => number} x @param {number} whole */
function curve(turn, x, whole) {
  const confirmed = Math.min(turn.stages["antiphon.turn.confirmed"] ?? whole, whole);
  const points = certainty(turn.opinions, confirmed);
  if (!points.length) return [svg("text", { class: "empty", x: x(0) + 8, y: TOP + CURVE / 2 + 4 }, "nobody had to judge")];
  const base = TOP + CURVE;
  const line = [{ at: 0, sure: 0 }, { at: points[0].at, sure: 0 }, ...points]; // nothing is known before the words are
  const path = line.map(({ at, sure }) => `${x(at).toFixed(1)},${(TOP + 4 + curveY(sure)).toFixed(1)}`);
  const limit = TOP + 4 + curveY(1 - turn.opinions[0].risk);
  const { at: last, sure } = points[points.length - 1];
  const y = TOP + 4 + curveY(sure);
  return [
    svg("line", { class: "limit", x1: x(0), x2: x(whole), y1: limit, y2: limit }),
    svg("polygon", { class: "under", points: [...path, `${x(whole)},${y}`, `${x(whole)},${base}`, `${x(0)},${base}`].join(" ") }),
    svg("line", { class: "decided", x1: x(last), x2: x(whole), y1: y, y2: y }),
    svg("polyline", { class: "curve", points: path.join(" ") }),
    ...turn.opinions
      .filter((opinion) => opinion.silence <= whole)
      .map((opinion) => {
        const sure = 1 - (1 - opinion.probability) * Math.exp(-opinion.silence / opinion.pause);
        const dot = svg("circle", { class: "opinion", cx: x(opinion.silence), cy: TOP + 4 + curveY(sure), r: 4 });
        dot.append(svg("title", {}, `${percent(opinion.probability)} by ${opinion.evidence.join(" and ")}`));
        return dot;
      }),
  ];
}

/** @param {number} share */
function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/**
 * @param {import("./turns.js").Turn} turn
 * @param {import("./turns.js").Part[]} chain
 * @param {number} whole
 */
function inWords(turn, chain, whole) {
  const each = chain.map((part) => `${Math.round(part.end - part.start)} ${part.label}`);
  return `Turn ${turn.number}: ${Math.round(whole)} milliseconds from the last word to the first sound: ${each.join(", ")}.`;
}
