// The transcript -> a list that changes in place: only entries that changed are drawn again.
import { html } from "./dom.js";

const WHO = { user: "You", assistant: "Agent", tool: "Tool" };
const NEAR_END_PX = 120;

export class TranscriptView {
  /** @param {HTMLElement} list @param {HTMLElement} scroll */
  constructor(list, scroll) {
    this.list = list;
    this.scroll = scroll;
    /** @type {Map<string, {node: HTMLElement, drawn: string}>} */
    this.nodes = new Map();
  }

  /** @param {readonly import("./transcript.js").Entry[]} entries */
  show(entries) {
    const isAtEnd = this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < NEAR_END_PX;
    const kept = new Set(entries.map((entry) => entry.id));
    for (const [id, { node }] of this.nodes) {
      if (kept.has(id)) continue;
      node.remove();
      this.nodes.delete(id);
    }
    entries.forEach((entry, place) => {
      const drawn = JSON.stringify(entry);
      const known = this.nodes.get(entry.id);
      if (known?.drawn !== drawn) {
        const node = draw(entry);
        known?.node.replaceWith(node);
        this.nodes.set(entry.id, { node, drawn });
      }
      const node = this.nodes.get(entry.id)?.node;
      if (node && this.list.children[place] !== node) this.list.insertBefore(node, this.list.children[place] ?? null);
    });
    if (isAtEnd) this.scroll.scrollTop = this.scroll.scrollHeight;
  }
}

/** @param {import("./transcript.js").Entry} entry */
function draw(entry) {
  const isSaid = entry.text || entry.unheard;
  const said = html("div", { class: "said" }, ...(entry.kind === "tool" ? tool(entry) : speech(entry)));
  if (!isSaid && entry.kind === "user") said.append("…");
  const item = html("li", { class: `entry ${entry.kind} ${entry.state}` }, html("div", { class: "who" }, WHO[entry.kind]), said);
  const why = reason(entry);
  if (why) item.append(html("div", { class: "why" }, why));
  return item;
}

/** @param {import("./transcript.js").Entry} entry */
function speech(entry) {
  const shown = [entry.text];
  if (!entry.unheard) return shown;
  const gap = entry.text && !/\s$/.test(entry.text) && !/^\s/.test(entry.unheard) ? " " : "";
  return [...shown, gap, html("del", { title: "nobody heard this" }, entry.unheard.trim())];
}

/** @param {import("./transcript.js").Entry} entry */
function tool(entry) {
  const call = `${entry.name}(${shortened(entry.text)})`;
  const output = entry.state === "running" ? "running…" : entry.state === "failed" ? "broken off" : entry.output;
  return [call, html("span", { class: "output" }, `→ ${output}`)];
}

/** @param {string} text of a call's arguments, as JSON */
function shortened(text) {
  try {
    const values = Object.entries(JSON.parse(text || "{}"));
    return values.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
  } catch {
    return text;
  }
}

/** @param {import("./transcript.js").Entry} entry */
function reason(entry) {
  if (entry.kind === "user") return entry.state === "failed" ? "Not understood: recognition failed" : "";
  if (entry.state === "interrupted") return entry.unheard ? "Interrupted: the rest was never heard" : "Interrupted";
  if (entry.state === "retracted") return "Taken back unheard: you had not finished";
  return entry.kind === "assistant" && entry.state === "failed" ? "The reply failed" : "";
}
