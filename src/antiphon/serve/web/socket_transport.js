// A conversation over one WebSocket: the microphone's samples go up as events, the reply's come down and are played here.
import { fromBase64, toBase64 } from "./bytes.js";
import { SentClock } from "./speech_clock.js";

const RATE = 24000;
const STUCK_BYTES = 256 * 1024; // unsent: some four seconds of sound, so nobody takes it any more
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
    this.playing = ""; // the item that sounds or waits to
    this.received = 0; // samples of it
    this.dropped = ""; // the item that was broken off: what still comes of it is not played
    /** @type {number | null} */
    this.speechEnd = null; // of the caller's last turn, in the context's time
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {AudioNode[]} */
    this.nodes = [];
    /** @type {AudioWorkletNode | null} */
    this.player = null;
  }

  /** @returns {Promise<void>} once the server takes events */
  open() {
    const address = new URL("v1/realtime", this.where.server);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    if (this.where.model) address.searchParams.set("model", this.where.model);
    const offered = ["realtime"];
    if (this.where.secret) offered.push(`openai-insecure-api-key.${this.where.secret}`);
    const socket = new WebSocket(address, offered);
    this.socket = socket;
    const late = setTimeout(() => this.end(1006), ANSWER_MS);
    return new Promise((resolve) => {
      socket.onmessage = ({ data }) => {
        const event = JSON.parse(data);
        if (event.type === "session.created") {
          clearTimeout(late);
          this.begin();
          resolve();
        }
        this.take(event);
      };
      socket.onclose = ({ code }) => {
        clearTimeout(late);
        this.end(code);
        resolve(); // `closed` was told why
      };
    });
  }

  begin() {
    const { context, stream } = this.sound;
    const source = context.createMediaStreamSource(stream);
    const capture = new AudioWorkletNode(context, "antiphon-capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => this.captured(data);
    source.connect(capture);
    const player = new AudioWorkletNode(context, "antiphon-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    player.port.onmessage = ({ data }) => this.played(data);
    player.connect(context.destination);
    this.player = player;
    this.nodes = [source, capture, player];
  }

  /** @param {{pcm: Int16Array, end: number, level: number}} chunk */
  captured({ pcm, end, level }) {
    if (this.isOver || this.socket?.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount > STUCK_BYTES) {
      this.end(1006); // a network that is gone shows in nothing else
      return;
    }
    this.clock.sent((pcm.length * 1000) / RATE, end);
    this.send({ type: "input_audio_buffer.append", audio: toBase64(pcm) });
    this.listener.level("in", level);
  }

  /** @param {any} event */
  take(event) {
    if (event.type === "response.output_audio.delta") {
      if (event.item_id === this.dropped) return;
      const pcm = fromBase64(event.delta);
      if (event.item_id !== this.playing) {
        this.playing = event.item_id;
        this.received = 0;
      }
      this.received += pcm.length;
      this.player?.port.postMessage({ kind: "push", item: event.item_id, pcm }, [pcm.buffer]);
      return;
    }
    if (event.type === "response.output_audio.done") {
      this.player?.port.postMessage({ kind: "end", item: event.item_id });
    } else if (event.type === "input_audio_buffer.speech_started") {
      this.breakOff();
    } else if (event.type === "input_audio_buffer.speech_stopped") {
      this.speechEnd = this.clock.timeOf(event.audio_end_ms);
    }
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
        this.truncate(report.item, report.seconds);
        break;
      case "finished":
        if (report.item === this.playing) this.playing = "";
        this.listener.silent();
        break;
      case "gap":
        this.listener.gap();
        break;
    }
  }

  /** Play nothing more of what has come. */
  breakOff() {
    if (!this.playing) return;
    this.dropped = this.playing;
    this.playing = "";
    this.player?.port.postMessage({ kind: "flush" });
    this.listener.silent();
  }

  /** The server paces what it sends, but what was on its way was not heard. @param {string} item @param {number} seconds */
  truncate(item, seconds) {
    if (item !== this.dropped || seconds * RATE >= this.received) return;
    this.send({
      type: "conversation.item.truncate",
      item_id: item,
      content_index: 0,
      audio_end_ms: Math.max(0, Math.floor(seconds * 1000)),
    });
  }

  /** @param {any} event */
  send(event) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(event));
  }

  /** Stop the reply that sounds. */
  interrupt() {
    this.send({ type: "response.cancel" });
    this.breakOff();
  }

  close() {
    this.isOver = true;
    this.release();
    this.socket?.close(1000);
  }

  /** @param {number} code */
  end(code) {
    if (this.isOver) return;
    this.isOver = true;
    this.release();
    this.socket?.close();
    this.listener.closed(code);
  }

  release() {
    for (const node of this.nodes) node.disconnect();
    this.nodes = [];
    this.player = null;
  }
}
