// One WebSocket between the audio threads and the server: the microphone's chunks go up as events, a reply's samples go
// to the playback, and whatever else comes is told. It runs in a worker of its own where it can (socket_worker.js), so
// that what the page draws holds no sound up. Units: samples at 24 kHz, s of the page's AudioContext.
import { fromBase64, toBase64 } from "./bytes.js";

export const RATE = 24000;
const STUCK_BYTES = 256 * 1024; // unsent: some four seconds of sound, so nobody takes it any more
const GONE = 1006;

/**
 * @typedef {{address: string, protocols: string[]}} Where
 * @typedef {{capture: MessagePort, player: MessagePort}} Ends of the audio threads
 * @typedef {{kind: "event", event: any} | {kind: "sent", samples: number, end: number, level: number} | {kind: "closed", code: number}} Told
 */

export class SocketLine {
  /** @param {Where} where @param {Ends} ends @param {(told: Told) => void} tell */
  constructor(where, ends, tell) {
    this.player = ends.player;
    this.tell = tell;
    this.isOver = false;
    this.socket = new WebSocket(where.address, where.protocols);
    this.socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    this.socket.onclose = ({ code }) => this.end(code);
    ends.capture.onmessage = ({ data }) => this.captured(data);
  }

  /** @param {string} text */
  send(text) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text);
  }

  close() {
    this.isOver = true;
    this.socket.close(1000);
  }

  /** @param {{pcm: Int16Array, end: number, level: number}} chunk */
  captured({ pcm, end, level }) {
    if (this.isOver || this.socket.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount > STUCK_BYTES) {
      this.end(GONE); // a network that is gone shows in nothing else
      return;
    }
    this.send(JSON.stringify({ type: "input_audio_buffer.append", audio: toBase64(pcm) }));
    this.tell({ kind: "sent", samples: pcm.length, end, level });
  }

  /** @param {any} event */
  take(event) {
    if (this.isOver) return;
    if (event.type === "response.output_audio.delta") {
      const pcm = fromBase64(event.delta);
      this.player.postMessage({ kind: "push", item: event.item_id, pcm }, [pcm.buffer]);
      return;
    }
    if (event.type === "response.output_audio.done") this.player.postMessage({ kind: "end", item: event.item_id });
    if (event.type === "input_audio_buffer.speech_started") this.player.postMessage({ kind: "flush" });
    this.tell({ kind: "event", event });
  }

  /** @param {number} code */
  end(code) {
    this.socket.close();
    if (!this.isOver) this.tell({ kind: "closed", code });
    this.isOver = true;
  }
}
