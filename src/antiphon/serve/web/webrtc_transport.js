// A conversation over WebRTC: the browser sends and plays the sound by itself, events go over a data channel.
// Which sample lies where in the stream is nobody's to know here. When the caller's voice ended is told by the server's
// opinions, which say how long it was ago; when a reply begins to sound is read off its level.
import { LevelClock, ToldEnd } from "./speech_clock.js";

const ANSWER_MS = 10000;
const LOST_MS = 4000; // without a connection, before it counts as gone
const HANG_UP_MS = 1000; // for the server to hear of it; then the connection is closed all the same

/** The server has no WebRTC, or this browser has none. */
export class NoWebRtcError extends Error {}

/** The server turned the call away. */
export class RefusedError extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export class WebRtcTransport {
  /**
   * @param {{server: URL, secret: string, model: string, ice: RTCIceServer[]}} where
   * @param {import("./sound.js").Sound} sound
   * @param {import("./socket_transport.js").Listener} listener
   */
  constructor(where, sound, listener) {
    this.kind = "WebRTC";
    this.where = where;
    this.sound = sound;
    this.listener = listener;
    this.isOver = false;
    this.ours = new LevelClock();
    this.theirs = new LevelClock(0.003); // silence from a codec is nearly none
    this.told = new ToldEnd();
    this.item = ""; // whose sound comes
    /** @type {number | null} */
    this.speechEnd = null;
    this.location = "";
    /** @type {any[]} */
    this.early = []; // events of ours before the channel was open
    /** @type {RTCPeerConnection | null} */
    this.peer = null;
    /** @type {RTCDataChannel | null} */
    this.channel = null;
    /** @type {AudioNode[]} */
    this.nodes = [];
    /** @type {HTMLAudioElement | null} */
    this.element = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.lost = undefined;
  }

  /**
   * @returns {Promise<void>} once the server takes events
   * @throws {NoWebRtcError} @throws {RefusedError}
   */
  async open() {
    if (typeof RTCPeerConnection !== "function") throw new NoWebRtcError("this browser has no WebRTC");
    const peer = new RTCPeerConnection({ iceServers: this.where.ice });
    this.peer = peer;
    for (const track of this.sound.stream.getAudioTracks()) peer.addTrack(track, this.sound.stream);
    peer.ontrack = ({ track, streams, receiver }) => {
      receiver.jitterBufferTarget = 0; // ms: as little as the network lets it be; it grows by itself
      this.hear(streams[0] ?? new MediaStream([track]));
    };
    peer.onconnectionstatechange = () => this.connection(peer.connectionState);
    const channel = peer.createDataChannel("oai-events");
    this.channel = channel;
    const opened = new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new RefusedError("", "no answer")), ANSWER_MS);
      channel.onopen = () => {
        clearTimeout(late);
        resolve(undefined);
      };
      channel.onclose = () => {
        clearTimeout(late);
        this.end(1006);
        resolve(undefined);
      };
    });
    opened.catch(() => undefined); // it is awaited below, and may fail before
    channel.onmessage = ({ data }) => this.take(JSON.parse(data));
    try {
      await peer.setLocalDescription(await peer.createOffer());
      await gathered(peer);
      await peer.setRemoteDescription({ type: "answer", sdp: await this.call(peer.localDescription?.sdp ?? "") });
      await opened;
    } catch (error) {
      this.isOver = true;
      this.release();
      throw error;
    }
    this.listenToOurselves();
    for (const event of this.early.splice(0)) this.send(event);
  }

  /** @param {string} offer @returns {Promise<string>} the answer */
  async call(offer) {
    const address = new URL("v1/realtime/calls", this.where.server);
    if (this.where.model) address.searchParams.set("model", this.where.model);
    /** @type {Record<string, string>} */
    const headers = { "content-type": "application/sdp" };
    if (this.where.secret) headers.authorization = `Bearer ${this.where.secret}`;
    let response;
    try {
      response = await fetch(address, { method: "POST", headers, body: offer });
    } catch {
      throw new RefusedError("", "the server cannot be reached");
    }
    const text = await response.text();
    if ([404, 405, 501].includes(response.status)) throw new NoWebRtcError(text);
    if (!response.ok) throw new RefusedError(...refusal(text));
    const location = response.headers.get("location");
    this.location = location ? new URL(location, address).href : "";
    return text;
  }

  /** @param {MediaStream} stream */
  hear(stream) {
    const element = new Audio();
    element.srcObject = stream;
    element.autoplay = true;
    this.element = element;
    void element.play().catch(() => undefined);
    this.meter(stream, (level, end) => {
      this.theirs.take(level, end);
      this.listener.level("out", level);
      this.sought();
    });
  }

  listenToOurselves() {
    this.meter(this.sound.stream, (level, end) => {
      this.ours.take(level, end);
      this.listener.level("in", level);
    });
  }

  /** @param {MediaStream} stream @param {(level: number, end: number) => void} take */
  meter(stream, take) {
    const source = this.sound.context.createMediaStreamSource(stream);
    const meter = new AudioWorkletNode(this.sound.context, "antiphon-meter", { numberOfOutputs: 0 });
    meter.port.onmessage = ({ data }) => take(data.level, data.end);
    source.connect(meter);
    this.nodes.push(source, meter);
  }

  /** Whether the reply that is waited for has begun to sound. */
  sought() {
    if (this.speechEnd === null || !this.item) return;
    const began = this.theirs.onset(this.speechEnd);
    if (began === null) return;
    this.listener.sounded(this.item, (began - this.speechEnd) * 1000);
    this.speechEnd = null;
  }

  /** @param {any} event */
  take(event) {
    const now = this.sound.context.currentTime;
    if (event.type === "input_audio_buffer.speech_started") {
      this.told.forget();
    } else if (event.type === "antiphon.turn.end_judged") {
      this.told.take(now, event.silence_ms);
    } else if (event.type === "input_audio_buffer.speech_stopped") {
      this.speechEnd = this.told.end ?? this.ours.lastSound(now);
      this.item = "";
    } else if (event.type === "response.output_item.added" && event.item.type === "message") {
      this.item = event.item.id;
      this.sought();
    } else if (event.type === "output_audio_buffer.started" && this.speechEnd === null) {
      this.listener.sounded(this.item, null);
    } else if (event.type === "output_audio_buffer.stopped" || event.type === "output_audio_buffer.cleared") {
      this.listener.silent();
    }
    this.listener.event(event);
  }

  /** @param {any} event */
  send(event) {
    if (this.channel?.readyState === "open") this.channel.send(JSON.stringify(event));
    else if (!this.isOver) this.early.push(event);
  }

  /** Stop the reply that sounds. */
  interrupt() {
    this.send({ type: "response.cancel" });
    this.send({ type: "output_audio_buffer.clear" });
  }

  close() {
    if (this.isOver) return;
    this.isOver = true;
    this.quieten();
    void this.hangUp().finally(() => this.release()); // a peer that goes first ends the call, and there is none to hang up
  }

  /** @returns {Promise<void>} once the server knows, or cannot be told */
  async hangUp() {
    if (!this.location) return;
    /** @type {Record<string, string>} */
    const headers = this.where.secret ? { authorization: `Bearer ${this.where.secret}` } : {};
    const signal = AbortSignal.timeout(HANG_UP_MS);
    await fetch(`${this.location}/hangup`, { method: "POST", headers, keepalive: true, signal }).catch(() => undefined);
  }

  /** @param {RTCPeerConnectionState} state */
  connection(state) {
    clearTimeout(this.lost);
    if (state === "failed" || state === "closed") this.end(1006);
    if (state === "disconnected") this.lost = setTimeout(() => this.end(1006), LOST_MS);
  }

  /** @param {number} code */
  end(code) {
    if (this.isOver) return;
    this.isOver = true;
    this.release();
    this.listener.closed(code);
  }

  /** Nothing sounds any more, and nobody is listened to. */
  quieten() {
    clearTimeout(this.lost);
    for (const node of this.nodes) node.disconnect();
    this.nodes = [];
    if (this.element) this.element.srcObject = null;
  }

  release() {
    this.quieten();
    this.channel?.close();
    this.peer?.close();
  }
}

/** @param {RTCPeerConnection} peer @returns {Promise<void>} once its addresses are known, or soon */
function gathered(peer) {
  if (peer.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((resolve) => {
    setTimeout(resolve, 1000);
    peer.onicegatheringstatechange = () => {
      if (peer.iceGatheringState === "complete") resolve();
    };
  });
}

/** @param {string} text @returns {[string, string]} */
function refusal(text) {
  try {
    const { error } = JSON.parse(text);
    return [String(error.code ?? "error"), String(error.message ?? "")];
  } catch {
    return ["error", text.slice(0, 200)];
  }
}
