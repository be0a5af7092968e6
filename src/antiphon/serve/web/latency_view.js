// Turns -> the running figures, the picture of one turn, and the list of all.
import { byId, html } from "./dom.js";
import { summary } from "./statistics.js";
import { latencyOf, parts } from "./turns.js";
import { waterfall } from "./waterfall_view.js";

const LISTED = 30;

export class LatencyView {
  /** @param {import("./turns.js").Turns} turns */
  constructor(turns) {
    this.turns = turns;
    this.chosen = ""; // by a click; empty: the latest
    this.chart = byId("chart");
    this.list = byId("history");
    new ResizeObserver(() => this.draw()).observe(this.chart);
  }

  show() {
    const { p50, p95, count } = summary(this.turns.latencies());
    const last = this.turns.all.at(-1);
    byId("last").textContent = figure(last ? latencyOf(last) : null);
    byId("p50").textContent = figure(p50);
    byId("p95").textContent = figure(p95);
    byId("count").textContent = String(count);
    byId("figures").classList.toggle("none", count === 0);
    this.draw();
    this.history();
  }

  draw() {
    const turn = this.turns.all.find((one) => one.id === this.chosen) ?? this.turns.all.at(-1);
    const width = this.chart.clientWidth;
    byId("waterfall").hidden = !turn;
    byId("before").hidden = Boolean(turn);
    if (!turn || width < 80) return;
    byId("waterfall-title").textContent = `Turn ${turn.number}: where the time went`;
    byId("beside").textContent = beside(turn);
    this.chart.replaceChildren(waterfall(turn, width));
  }

  history() {
    const turns = this.turns.all.slice(-LISTED).reverse();
    const longest = Math.max(1, ...turns.map((turn) => latencyOf(turn) ?? 0));
    byId("history-title").hidden = turns.length === 0;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.turn : undefined;
    this.list.replaceChildren(...turns.map((turn, place) => this.line(turn, longest, place === 0)));
    if (focused) this.list.querySelector(`[data-turn="${CSS.escape(focused)}"]`)?.closest("button")?.focus();
  }

  /** @param {import("./turns.js").Turn} turn @param {number} longest @param {boolean} isLatest */
  line(turn, longest, isLatest) {
    const whole = latencyOf(turn);
    const stack = html("span", { class: "stack" });
    stack.style.setProperty("--share", String((whole ?? 0) / longest));
    for (const part of parts(turn)) {
      const piece = html("span", { class: `bar-${part.name}`, title: part.label });
      piece.style.setProperty("--part", String(part.end - part.start));
      stack.append(piece);
    }
    const isChosen = this.chosen ? this.chosen === turn.id : isLatest;
    const figures = whole === null ? "no reply" : `${Math.round(whole)} ms`;
    const button = html(
      "button",
      { type: "button", "aria-pressed": String(isChosen), "data-turn": turn.id, "aria-label": `Turn ${turn.number}, ${figures}` },
      html("span", {}, String(turn.number)),
      stack,
      html("span", { class: "ms" }, figures),
    );
    button.addEventListener("click", () => {
      this.chosen = isLatest ? "" : turn.id;
      this.draw();
      this.history();
    });
    return html("li", {}, button);
  }
}

/** @param {number | null} ms */
function figure(ms) {
  return ms === null ? "–" : String(Math.round(ms));
}

/** What the page measured beside what the server says. @param {import("./turns.js").Turn} turn */
function beside(turn) {
  if (turn.page === null || turn.server === null) return turn.server === null ? "" : `By the server ${Math.round(turn.server)} ms`;
  const more = Math.round(turn.page - turn.server);
  return `Heard in this page after ${Math.round(turn.page)} ms, by the server ${Math.round(turn.server)} ms (${more < 0 ? "−" : "+"}${Math.abs(more)} ms)`;
}
