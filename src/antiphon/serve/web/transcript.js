// The server's events in -> what both sides said, in order, with what was never heard kept apart. Pure: no document.

/**
 * @typedef {{
 *   id: string, kind: "user" | "assistant" | "tool", text: string, unheard: string,
 *   state: "open" | "done" | "interrupted" | "retracted" | "failed" | "running", name: string, output: string, callId: string
 * }} Entry
 */

export const MOST_ENTRIES = 400;

/** Of one page; it survives connections. */
export class Transcript {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
  }

  /**
   * One of the server's events.
   * @param {any} event
   * @returns {boolean} whether anything is to be shown otherwise
   */
  take(event) {
    switch (event.type) {
      case "input_audio_buffer.speech_started":
        this.open(event.item_id, "user");
        return true;
      case "conversation.item.input_audio_transcription.delta":
        this.open(event.item_id, "user").text += event.delta;
        return true;
      case "conversation.item.input_audio_transcription.completed":
        return this.heard(event.item_id, event.transcript);
      case "conversation.item.input_audio_transcription.failed":
        this.close(event.item_id, "failed");
        return true;
      case "response.output_item.added":
        if (event.item.type !== "message") return false;
        this.open(event.item.id, "assistant");
        return true;
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        this.open(event.item_id, "assistant").text += event.delta;
        return true;
      case "response.done":
        return this.finished(event.response);
      case "antiphon.response.unheard":
        return this.unheard(event);
      case "conversation.item.added":
        return this.added(event.item);
      case "conversation.item.deleted":
        return this.deleted(event.item_id);
      default:
        return false;
    }
  }

  /** What a new connection is to be told, so that the agent knows what was said before. @returns {{role: string, text: string}[]} */
  spoken() {
    return this.entries
      .filter((entry) => entry.kind !== "tool" && entry.state !== "retracted" && entry.text.trim())
      .map((entry) => ({ role: entry.kind, text: entry.text.trim() }));
  }

  /** The connection is gone: nothing that was open will go on. */
  cut() {
    for (const entry of this.entries) {
      if (entry.state === "open") entry.state = entry.kind === "assistant" ? "interrupted" : "done";
      if (entry.state === "running") entry.state = "failed";
    }
    this.entries = this.entries.filter((entry) => entry.kind === "tool" || entry.text.trim() || entry.unheard);
  }

  /** @param {string} id @param {"user" | "assistant"} kind @returns {Entry} */
  open(id, kind) {
    const known = this.find(id);
    if (known) return known;
    return this.put({ id, kind, text: "", unheard: "", state: "open", name: "", output: "", callId: "" });
  }

  /** @param {string} id @param {Entry["state"]} state */
  close(id, state) {
    const entry = this.find(id);
    if (entry) entry.state = state;
  }

  /** @param {string} id */
  find(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  /** @param {Entry} entry @returns {Entry} */
  put(entry) {
    this.entries.push(entry);
    if (this.entries.length > MOST_ENTRIES) this.entries.shift();
    return entry;
  }

  /** @param {string} id @param {string} text */
  heard(id, text) {
    if (!text.trim()) {
      this.entries = this.entries.filter((entry) => entry.id !== id); // a cough or a door
      return true;
    }
    const entry = this.open(id, "user");
    entry.text = text;
    entry.state = "done";
    return true;
  }

  /** @param {any} response */
  finished(response) {
    for (const item of response.output ?? []) {
      const entry = this.find(item.id);
      if (!entry || entry.kind !== "assistant" || entry.state === "retracted") continue;
      const part = item.content?.[0];
      const text = part?.transcript ?? part?.text;
      if (typeof text === "string" && text.length <= entry.text.length) {
        entry.unheard = entry.text.slice(text.length) + entry.unheard; // the client was told more than was heard
        entry.text = text;
      }
      entry.state = response.status === "cancelled" ? "interrupted" : response.status === "failed" ? "failed" : "done";
    }
    return true;
  }

  /** @param {any} event */
  unheard(event) {
    const entry = this.open(event.item_id ?? `unheard-${event.response_id}`, "assistant");
    entry.unheard = join(entry.unheard, event.text);
    if (entry.state === "open") entry.state = "interrupted";
    return true;
  }

  /** @param {any} item */
  added(item) {
    if (item.type === "function_call") {
      if (this.entries.some((entry) => entry.callId === item.call_id)) return false;
      this.put({
        id: item.id,
        kind: "tool",
        text: item.arguments ?? "",
        unheard: "",
        state: "running",
        name: item.name,
        output: "",
        callId: item.call_id,
      });
      return true;
    }
    if (item.type === "function_call_output") {
      const call = this.entries.findLast((entry) => entry.callId === item.call_id);
      if (!call) return false;
      call.output = String(item.output ?? "");
      call.state = "done";
      return true;
    }
    return false;
  }

  /** @param {string} id */
  deleted(id) {
    const entry = this.find(id);
    if (!entry) return false;
    if (entry.kind !== "assistant") {
      this.entries = this.entries.filter((one) => one !== entry);
      return true;
    }
    entry.unheard = join(entry.text, entry.unheard);
    entry.text = "";
    entry.state = "retracted";
    return true;
  }
}

/** @param {string} one @param {string} other */
function join(one, other) {
  if (!one || !other || /\s$/.test(one) || /^\s/.test(other)) return one + other;
  return `${one} ${other}`;
}
