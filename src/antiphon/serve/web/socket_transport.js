// A conversation over one WebSocket: the page captures and plays the sound by itself, and knows of each sample where it lies.
import { openLine } from "./line_thread.js";
import { RATE } from "./socket_line.js";
import { SentClock } from "./speech_clock.js";

const ANSWER_MS = 10000;

/**
 * @typedef {{
 *   event: (event: any) => void,
 *   closed: (code: number) => void,
 *   level: (side: "in" | "out", level: number) => void,
 *   sounded: (item: string, latency: number | null) => void,
 *   silent: () => void,
 *   gap: () => void
 * }} Listener
 */

export class SocketTransport {
  /**
   * @param {{server: URL, secret: string, model: string}} where
   * @param {import("./sound.js").Sound} sound
   * @param {Listener} listener
   */
  constructor(where, sound, listener) {
    this.kind = "WebSocket";
    this.where = where;
    this.sound = sound;
    this.listener = listener;
    this.clock = new SentClock();
    this.isOver = false;
    /** @type {number | null} */
    this.speechEnd = null; // of the caller's last turn, in the context's time
    this.capture = new MessageChannel(); // from the audio thread to the line
    this.playback = new MessageChannel(); // from the line to the audio thread
    /** @type {import("./line_thread.js").Line | null} */
    this.line = null;
    /** @type {AudioNode[]} */
    this.nodes = [];
    /** @type {AudioWorkletNode | null} */
    this.player = null;
    this.opened = () => {}; // whoever waits for the server
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.late = undefined;
  }

  /** @returns {Promise<void>} once the server takes events, or is known not to */
  open() {
    const address = new URL("v1/realtime", this.where.server);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    if (this.where.model) address.searchParams.set("model", this.where.model);
    const protocols = ["realtime"];
    if (this.where.secret) protocols.push(`openai-insecure-api-key.${this.where.secret}`);
    this.late = setTimeout(() => this.end(1006), ANSWER_MS);
    const ends = { capture: this.capture.port2, player: this.playback.port1 };
    this.line = openLine({ address: address.href, protocols }, ends, (told) => this.told(told));
    return new Promise((resolve) => {
      this.opened = resolve;
    });
  }

  /** @param {import("./socket_line.js").Told} told */
  told(told) {
    if (this.isOver) return;
    if (told.kind === "event") {
      this.take(told.event);
    } else if (told.kind === "sent") {
      this.clock.sent((told.samples * 1000) / RATE, told.end);
      this.listener.level("in", told.level);
    } else {
      this.end(told.code);
    }
  }

  begin() {
    clearTimeout(this.late);
    const { context, stream } = this.sound;
    const source = context.createMediaStreamSource(stream);
    const capture = new AudioWorkletNode(context, "antiphon-capture", { numberOfOutputs: 0 });
    capture.port.postMessage(this.capture.port1, [this.capture.port1]);
    source.connect(capture);
    const player = new AudioWorkletNode(context, "antiphon-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    player.port.postMessage({ kind: "line", port: this.playback.port2 }, [this.playback.port2]);
    player.port.onmessage = ({ data }) => this.played(data);
    player.connect(context.destination);
    this.player = player;
    this.nodes = [source, capture, player];
    this.opened();
  }

  /** @param {any} event */
  take(event) {
    if (event.type === "session.created") this.begin();
    else if (event.type === "input_audio_buffer.speech_stopped") this.speechEnd = this.clock.timeOf(event.audio_end_ms);
    this.listener.event(event);
  }

  /** @param {any} report of the playback */
  played(report) {
    switch (report.kind) {
      case "heard":
        this.listener.sounded(report.item, this.speechEnd === null ? null : (report.time - this.speechEnd) * 1000);
        this.speechEnd = null; // what follows answers no further silence
        break;
      case "level":
        this.listener.level("out", report.level);
        break;
      case "stopped":
        if (report.hasRest) this.truncate(report.item, report.seconds);
        this.listener.silent();
        break;
      case "finished":
        this.listener.silent();
        break;
      case "gap":
        this.listener.gap();
        break;
    }
  }

  /** The server paces what it sends, but what was on its way was not heard. @param {string} item @param {number} seconds */
  truncate(item, seconds) {
    this.send({
      type: "conversation.item.truncate",
      item_id: item,
      content_index: 0,
      audio_end_ms: Math.floor(seconds * 1000),
    });
  }

  /** @param {any} event */
  send(event) {
    if (!this.isOver) this.line?.send(JSON.stringify(event));
  }

  /** Stop the reply that sounds. */
  interrupt() {
    this.send({ type: "response.cancel" });
    this.player?.port.postMessage({ kind: "flush" });
  }

  close() {
    this.isOver = true;
    this.release();
  }

  /** @param {number} code */
  end(code) {
    if (this.isOver) return;
    this.isOver = true;
    this.release();
    this.listener.closed(code);
  }

  release() {
    clearTimeout(this.late);
    for (const node of this.nodes) node.disconnect();
    this.nodes = [];
    this.player = null;
    this.line?.close();
    this.opened(); // `closed` was told why
  }
}
