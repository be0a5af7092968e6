// A talk button for other people's pages:
//
//   <script type="module" src="https://voice.example.org/embed.js"></script>
//   <antiphon-talk secret-url="/voice-secret"></antiphon-talk>
//
// `secret-url` is an address of the page's own back end that answers POST with {"value": "ek_…"}, a client secret; it is
// asked anew for each conversation. Further attributes: `server` (where this file came from, if it is left out), `label`,
// `transport` (auto, webrtc, websocket), `transcript` (show what is said). The element tells what happens by the events
// `antiphon-state` and `antiphon-transcript`, and has `start()`, `stop()` and `interrupt()`.
import { Conversation, STATES } from "./conversation.js";
import { html, svg } from "./dom.js";
import { TranscriptView } from "./transcript_view.js";

const STYLE = `
  :host { display: inline-block; font: 15px/1.45 system-ui, sans-serif; --accent: var(--antiphon-accent, #0a6b57); color-scheme: light dark; }
  button { display: inline-flex; align-items: center; gap: 10px; border: 0; border-radius: 999px; padding: 11px 20px; font: inherit; font-weight: 600; color: var(--antiphon-ink, #fff); background: var(--accent); cursor: pointer; }
  button:hover { filter: brightness(1.08); }
  button:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
  .on, [aria-pressed="true"] .off { display: none; }
  [aria-pressed="true"] .on { display: inline; }
  .state { margin-left: 12px; opacity: 0.75; font-size: 14px; }
  .problem { margin: 8px 0 0; font-size: 14px; max-width: 26em; }
  .problem:empty { display: none; }
  ol { list-style: none; margin: 12px 0 0; padding: 0; max-width: 30em; max-height: 16em; overflow-y: auto; }
  ol:empty { display: none; }
  .entry { padding: 4px 0; overflow-wrap: anywhere; }
  .who { font-size: 12px; opacity: 0.65; }
  .entry del { opacity: 0.6; }
  .why { font-size: 12px; opacity: 0.65; }
`;

class AntiphonTalk extends HTMLElement {
  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet]; // a page's policy against inline styles does not concern it
    this.label = html("span");
    this.button = html("button", { type: "button", "aria-pressed": "false" }, icon(), this.label);
    this.status = html("span", { class: "state", role: "status" });
    this.problem = html("p", { class: "problem", role: "alert" });
    this.list = html("ol", { "aria-label": "Transcript", tabindex: "0" });
    root.append(this.button, this.status, this.problem, this.list);
    this.view = new TranscriptView(this.list, this.list);
    this.conversation = new Conversation({
      server: new URL("../", import.meta.url),
      secret: () => this.secret(),
      model: "",
      transport: "auto",
      voice: "",
      instructions: "",
      eagerness: "auto",
      device: "",
    });
    this.conversation.addEventListener("change", (event) => this.changed(/** @type {CustomEvent<string>} */ (event).detail));
    this.button.addEventListener("click", () => (this.conversation.isOn ? this.stop() : void this.start()));
  }

  connectedCallback() {
    this.changed("state");
  }

  disconnectedCallback() {
    this.stop();
  }

  async start() {
    const { wishes } = this.conversation;
    const server = this.getAttribute("server");
    if (server) wishes.server = new URL(server.endsWith("/") ? server : `${server}/`, location.href);
    const transport = this.getAttribute("transport");
    if (transport === "webrtc" || transport === "websocket") wishes.transport = transport;
    wishes.model = this.getAttribute("model") ?? "";
    await this.conversation.start();
  }

  stop() {
    if (this.conversation.isOn) this.conversation.stop();
  }

  interrupt() {
    this.conversation.interrupt();
  }

  /** A secret of the page's own back end. @returns {Promise<string>} empty where the server wants none */
  async secret() {
    const address = this.getAttribute("secret-url");
    if (!address) return "";
    const response = await fetch(address, { method: "POST" });
    if (!response.ok) throw new Error(`${address} answered ${response.status}`);
    const { value } = await response.json();
    if (typeof value !== "string" || !value) throw new Error(`${address} answered without a "value"`);
    return value;
  }

  /** @param {string} what */
  changed(what) {
    const { state, problem, isOn, transcript } = this.conversation;
    if (what === "state") {
      this.button.setAttribute("aria-pressed", String(isOn));
      this.label.textContent = isOn ? "End" : (this.getAttribute("label") ?? "Talk to us");
      this.status.textContent = STATES[state];
      this.problem.textContent = problem ? `${problem.title}. ${problem.remedy}` : "";
      this.dispatchEvent(new CustomEvent("antiphon-state", { detail: { state, problem }, bubbles: true, composed: true }));
    } else if (what === "transcript") {
      if (this.hasAttribute("transcript")) this.view.show(transcript.entries);
      const detail = { entries: transcript.entries.map((entry) => ({ ...entry })) };
      this.dispatchEvent(new CustomEvent("antiphon-transcript", { detail, bubbles: true, composed: true }));
    }
  }
}

function icon() {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round" },
    svg("rect", { class: "off", x: 9, y: 3, width: 6, height: 11, rx: 3, fill: "currentColor", stroke: "none" }),
    svg("path", { class: "off", d: "M5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3" }),
    svg("rect", { class: "on", x: 6, y: 6, width: 12, height: 12, rx: 2, fill: "currentColor", stroke: "none" }),
  );
}

customElements.define("antiphon-talk", AntiphonTalk);
