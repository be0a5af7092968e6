// The status page: asks the server every two seconds how it does, and shows what it says.
import { byId, html, svg } from "./dom.js";
import { summary, ticks } from "./statistics.js";

const EVERY_MS = 2000;
const HEIGHT = 240;
const LEFT = 60;
const WINDOW_S = 900;

/** @type {Record<string, string>} */
const FATES = { kept: "speak", dropped: "net", retracted: "judge", stopped: "notice" };
/** @type {Record<string, string>} */
const OUTCOMES = { heard: "speak", interrupted: "notice", retracted: "judge", failed: "judge", unanswered: "net" };
let key = "";
/** @type {ReturnType<typeof setTimeout> | undefined} */
let next = undefined;

async function ask() {
  clearTimeout(next);
  /** @type {Record<string, string>} */
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  try {
    const response = await fetch("status.json", { headers });
    if (response.status === 401) {
      condition("failed", key ? "Wrong key" : "A key is needed");
      byId("key-form").hidden = false;
      return;
    }
    show(await response.json());
  } catch {
    condition("failed", "The server cannot be reached; asking again…");
  }
  next = setTimeout(() => void ask(), EVERY_MS);
}

/** @param {string} state @param {string} words */
function condition(state, words) {
  byId("chip").dataset.state = state;
  if (byId("condition").textContent !== words) byId("condition").textContent = words;
}

/** @param {any} status */
function show(status) {
  condition(status.condition === "ready" ? "listening" : "connecting", `${status.condition} · ${status.models.join(" · ")} · ${status.version}`);
  const { sessions, turns } = status;
  const answered = turns.recent.map((/** @type {any} */ turn) => turn.voice_to_voice_ms).filter((/** @type {any} */ ms) => ms !== null);
  const { p50, p95, count } = summary(answered);
  byId("tiles").replaceChildren(
    tile("Conversations", `${sessions.open} / ${sessions.capacity}`),
    tile("P50", p50 === null ? "–" : `${Math.round(p50)} ms`),
    tile("P95", p95 === null ? "–" : `${Math.round(p95)} ms`),
    tile("Turns", String(total(turns.outcomes))),
    tile("Begun", String(sessions.begun)),
    tile("Turned away", String(total(sessions.refused))),
    tile("Up", lasted(status.now_s - status.since_s)),
  );
  byId("latency").replaceChildren(chart(turns.recent, status.now_s));
  byId("latency-note").textContent = count
    ? `The latest ${count} answered turns; the line is the median of ten.`
    : "Nobody has been answered yet.";
  byId("sessions").replaceChildren(
    sessions.now.length
      ? table(
          ["Conversation", "Model", "Lasts", "Turns", "Phase", "Unsent"],
          sessions.now.map((/** @type {any} */ one) => [one.id, one.model || "–", lasted(one.age_s), one.turns, one.phase, one.waiting_events]),
        )
      : html("p", { class: "note" }, "Nobody is here."),
  );
  byId("drafts").replaceChildren(...split("Drafts", status.drafts, FATES), ...split("Turns", turns.outcomes, OUTCOMES));
  showPlan(status);
}

/** @param {any} status */
function showPlan(status) {
  const open = new Set([...document.querySelectorAll("details[open]")].map((one) => one.getAttribute("data-stage")));
  const { plan, engines } = status;
  if (!plan) {
    byId("plan").replaceChildren(table(["Role", "Engine"], engines.map((/** @type {any} */ one) => [one.role, one.name])));
    return;
  }
  const body = plan.stages.map((/** @type {any} */ stage) => {
    const why = html(
      "details",
      { "data-stage": stage.stage },
      html("summary", {}, "why"),
      html("ul", {}, ...stage.reasons.map((/** @type {any} */ one) => html("li", {}, `${one.choice} ${one.value}: ${one.text}`))),
    );
    why.open = open.has(stage.stage);
    const cores = stage.cores.length ? stage.cores.join(", ") : "any";
    return [stage.stage.replaceAll("_", " "), stage.engine, stage.model || "–", stage.device, stage.threads, cores, `${stage.width} × ${stage.batch}`, why];
  });
  byId("plan").replaceChildren(table(["Stage", "Engine", "Model", "Device", "Threads", "Cores", "Calls × together", ""], body));
  byId("warnings").replaceChildren(...plan.warnings.map((/** @type {string} */ text) => html("li", {}, text)));
}

/** @param {string} what @param {string} value */
function tile(what, value) {
  return html("div", { class: "tile figure" }, html("span", { class: "what" }, what), html("span", { class: "value" }, value));
}

/** @param {string[]} heads @param {(string | number | Node)[][]} lines */
function table(heads, lines) {
  const cells = (/** @type {(string | number | Node)[]} */ line) =>
    line.map((cell, place) => html("td", place === 0 ? { class: "code" } : {}, cell instanceof Node ? cell : String(cell)));
  return html(
    "table",
    {},
    html("thead", {}, html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, ...lines.map((line) => html("tr", {}, ...cells(line)))),
  );
}

/** @param {string} title @param {Record<string, number>} counts @param {Record<string, string>} colours */
function split(title, counts, colours) {
  const bar = html("div", { class: "split", "aria-hidden": "true" });
  const legend = html("div", { class: "legend" }, html("strong", {}, `${title} ${total(counts)}`));
  for (const [name, count] of Object.entries(counts)) {
    const piece = html("span", { class: `bar-${colours[name] ?? "net"}` });
    piece.style.setProperty("--part", String(count));
    bar.append(piece);
    legend.append(html("span", {}, html("i", { class: `bar-${colours[name] ?? "net"}` }), `${name} ${count}`));
  }
  return [bar, legend];
}

/** @param {any[]} recent @param {number} now */
function chart(recent, now) {
  const width = Math.max(280, byId("latency").clientWidth);
  const turns = recent.filter((turn) => turn.voice_to_voice_ms !== null && turn.at_s > now - WINDOW_S);
  const top = Math.max(500, ...turns.map((turn) => turn.voice_to_voice_ms)) * 1.1;
  const first = Math.min(now - 60, ...turns.map((turn) => turn.at_s));
  const x = (/** @type {number} */ at) => LEFT + ((at - first) / Math.max(1, now - first)) * (width - LEFT - 8);
  const y = (/** @type {number} */ ms) => HEIGHT - (ms / top) * (HEIGHT - 10);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT + 24}`,
    height: HEIGHT + 24,
    role: "img",
    "aria-label": `Latency of ${turns.length} turns in the last ${lasted(now - first)}`,
  });
  for (const ms of ticks(top, 5)) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: width, y1: y(ms), y2: y(ms) }));
    picture.append(svg("text", { x: 0, y: y(ms) + 4 }, `${ms} ms`));
  }
  const running = turns.map((turn, at) => {
    const { p50 } = summary(turns.slice(Math.max(0, at - 9), at + 1).map((one) => one.voice_to_voice_ms));
    return `${x(turn.at_s).toFixed(1)},${y(p50 ?? 0).toFixed(1)}`;
  });
  picture.append(svg("polyline", { class: "running", points: running.join(" ") }));
  for (const turn of turns) {
    const dot = svg("circle", { class: `turn${["retracted", "failed"].includes(turn.outcome) ? " other" : ""}`, cx: x(turn.at_s), cy: y(turn.voice_to_voice_ms), r: 4 });
    dot.append(svg("title", {}, `${Math.round(turn.voice_to_voice_ms)} ms, ${turn.outcome}`));
    picture.append(dot);
  }
  picture.append(svg("text", { x: LEFT, y: HEIGHT + 18 }, `${lasted(now - first)} ago`));
  picture.append(svg("text", { x: width, y: HEIGHT + 18, "text-anchor": "end" }, "now"));
  return picture;
}

/** @param {Record<string, number>} counts */
function total(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** @param {number} seconds */
function lasted(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

byId("key-form", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("key", HTMLInputElement);
  key = field.value.trim();
  field.value = "";
  byId("key-form").hidden = true;
  void ask();
});

void ask();
