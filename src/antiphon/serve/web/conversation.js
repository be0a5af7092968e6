// One person's conversation with the server: opened by a click, kept through lost connections, ended by another click.
// It knows no document: whoever shows it listens to `change`.
import { isPassing, serverProblem } from "./problems.js";
import { SocketTransport } from "./socket_transport.js";
import { MicrophoneError, Sound } from "./sound.js";
import { Transcript } from "./transcript.js";
import { Turns } from "./turns.js";
import { NoWebRtcError, RefusedError, WebRtcTransport } from "./webrtc_transport.js";

/** What each state is called where people read it; the two in which nobody is connected are for the page to name. */
/** @type {Record<State, string>} */
export const STATES = {
  idle: "",
  connecting: "Connecting…",
  listening: "Listening",
  hearing: "Hearing you",
  thinking: "Thinking",
  speaking: "Speaking",
  reconnecting: "Connection lost, trying again…",
  failed: "",
};

/**
 * @typedef {"idle" | "connecting" | "listening" | "hearing" | "thinking" | "speaking" | "reconnecting" | "failed"} State
 * @typedef {{
 *   server: URL, secret: () => Promise<string>, model: string, transport: "auto" | "webrtc" | "websocket",
 *   voice: string, instructions: string, eagerness: string, device: string
 * }} Wishes
 * @typedef {SocketTransport | WebRtcTransport} Transport
 */

const EXTRAS = ["antiphon.timeline", "antiphon.turn_end", "antiphon.unheard"];
const RETRY_MS = [300, 700, 1500, 3000, 5000, 8000, 8000, 8000];
const SHORTEST_HOLD_MS = 200; // a key that is touched says nothing
const REMEMBERED = 20; // entries that a new connection is told of

export class Conversation extends EventTarget {
  /** @param {Wishes} wishes */
  constructor(wishes) {
    super();
    this.wishes = wishes;
    this.transcript = new Transcript();
    this.turns = new Turns();
    /** @type {State} */
    this.state = "idle";
    /** @type {import("./problems.js").Problem | null} */
    this.problem = null;
    this.notice = ""; // what the server said last that did not end anything
    this.levels = { in: 0, out: 0 };
    this.gaps = 0;
    this.isHeld = false; // by push to talk
    this.voice = "";
    this.opinion = null;
    /** @type {Sound | null} */
    this.sound = null;
    /** @type {Transport | null} */
    this.transport = null;
    this.isSounding = false;
    this.isReplying = false;
    this.tries = 0; // at a connection that was lost
    this.attempt = 0; // numbers transports; one that is given up counts no more
    this.lastError = { code: "", message: "" };
    this.heldSince = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.retrying = undefined;
  }

  get isOn() {
    return this.state !== "idle" && this.state !== "failed";
  }

  /** Whether replies come over WebRTC or a WebSocket; empty while there is no connection. */
  get way() {
    return this.transport?.kind ?? "";
  }

  /** From a click, or the browser lends no sound. */
  async start() {
    if (this.isOn) return;
    this.problem = null;
    this.notice = "";
    this.to("connecting");
    const attempt = this.attempt;
    const isGivenUp = () => attempt !== this.attempt;
    try {
      const sound = await Sound.open(this.wishes.device);
      if (isGivenUp()) {
        sound.close(); // ended while the browser still asked
        return;
      }
      this.sound = sound;
    } catch (error) {
      if (isGivenUp()) return;
      this.fail(error instanceof MicrophoneError ? error.problem : serverProblem("browser", String(error)));
      return;
    }
    for (const track of this.sound.stream.getAudioTracks()) {
      track.onended = () => this.fail(lostMicrophone);
    }
    await this.connect();
  }

  stop() {
    clearTimeout(this.retrying);
    this.hangUp();
    this.to("idle");
  }

  /** Stop the reply that sounds; nothing if none does. */
  interrupt() {
    if (!this.isReplying && !this.isSounding) return;
    this.transport?.interrupt();
  }

  /** Talk while a key is held: the turn is exactly what is said until `release`. */
  press() {
    if (!this.isOn || this.isHeld || !this.transport) return;
    this.isHeld = true;
    this.heldSince = Date.now();
    this.interrupt();
    this.update({ audio: { input: { turn_detection: null } } });
    this.send({ type: "input_audio_buffer.clear" });
    this.to("hearing");
  }

  release() {
    if (!this.isHeld) return;
    this.isHeld = false;
    if (Date.now() - this.heldSince >= SHORTEST_HOLD_MS) {
      this.send({ type: "input_audio_buffer.commit" });
      this.send({ type: "response.create" });
      this.to("thinking");
    } else {
      this.to("listening");
    }
    this.update({ audio: { input: { turn_detection: this.detection() } } });
  }

  /** New wishes: those that a conversation can take are taken at once, the others by the next. @param {Partial<Wishes>} wishes */
  wish(wishes) {
    Object.assign(this.wishes, wishes);
    if (this.transport && this.isOn) this.update(this.session());
  }

  // Inside.

  /** @param {State} state */
  to(state) {
    this.state = state;
    this.changed("state");
  }

  /** @param {string} what */
  changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }

  /** @param {import("./problems.js").Problem} problem */
  fail(problem) {
    clearTimeout(this.retrying);
    this.hangUp();
    this.problem = problem;
    this.to("failed");
  }

  hangUp() {
    this.attempt += 1;
    this.transport?.close();
    this.transport = null;
    this.sound?.close();
    this.sound = null;
    this.isHeld = false;
    this.isReplying = this.isSounding = false;
    this.levels = { in: 0, out: 0 };
    this.transcript.cut();
    this.changed("transcript");
    this.changed("level");
  }

  async connect() {
    const sound = this.sound;
    if (!sound || !this.isOn) return;
    this.lastError = { code: "", message: "" };
    let secret;
    try {
      secret = await this.wishes.secret();
    } catch (error) {
      this.fail(serverProblem("secret", error instanceof Error ? error.message : String(error)));
      return;
    }
    const where = { server: this.wishes.server, secret, model: this.wishes.model };
    const about = this.wishes.transport === "websocket" ? {} : await this.about(secret);
    if (this.sound !== sound) return; // ended meanwhile
    if (this.wishes.transport === "webrtc" || about.webrtc === true) {
      const webrtc = new WebRtcTransport({ ...where, ice: about.ice_servers ?? [] }, sound, this.listener());
      this.transport = webrtc;
      try {
        await webrtc.open();
        return;
      } catch (error) {
        if (this.transport !== webrtc) return; // ended meanwhile
        if (error instanceof RefusedError) {
          this.lastError = { code: error.code, message: error.message };
          this.lost();
          return;
        }
        if (this.wishes.transport === "webrtc") {
          this.fail(error instanceof NoWebRtcError ? noWebRtc : serverProblem("webrtc", String(error)));
          return;
        }
      }
    }
    const socket = new SocketTransport(where, sound, this.listener());
    this.transport = socket;
    await socket.open();
  }

  /** What the server tells of itself to whoever may call; nothing if nobody is there, which the attempt itself will tell. @param {string} secret @returns {Promise<any>} */
  async about(secret) {
    /** @type {Record<string, string>} */
    const headers = secret ? { authorization: `Bearer ${secret}` } : {};
    try {
      return await (await fetch(new URL("about.json", this.wishes.server), { headers })).json();
    } catch {
      return {};
    }
  }

  /** For a new transport; what older ones still say counts no more. @returns {import("./socket_transport.js").Listener} */
  listener() {
    const attempt = (this.attempt += 1);
    const isPresent = () => attempt === this.attempt;
    return {
      event: (event) => isPresent() && this.take(event),
      closed: () => isPresent() && this.lost(),
      level: (side, level) => {
        if (!isPresent()) return;
        this.levels[side] = level;
        this.changed("level");
      },
      sounded: (item, latency) => isPresent() && this.sounded(item, latency),
      silent: () => {
        if (!isPresent()) return;
        this.isSounding = false;
        if (this.state === "speaking") this.to("listening");
      },
      gap: () => {
        this.gaps += 1;
      },
    };
  }

  /** @param {string} item @param {number | null} latency */
  sounded(item, latency) {
    this.isSounding = true;
    this.to("speaking");
    if (latency !== null && this.turns.sounded(item, latency)) this.changed("turns");
  }

  /** The connection is gone; unless somebody said why, it is opened again. */
  lost() {
    const { code, message } = this.lastError;
    this.attempt += 1;
    this.transport = null;
    this.isReplying = this.isSounding = this.isHeld = false;
    this.levels = { in: 0, out: 0 };
    this.changed("level");
    this.transcript.cut();
    this.changed("transcript");
    const pause = RETRY_MS[this.tries];
    const isFirst = this.state === "connecting" && this.tries === 0;
    if (isFirst && code === "") {
      void this.explain();
      return;
    }
    if (!isPassing(code) || pause === undefined) {
      this.fail(serverProblem(code, message));
      return;
    }
    this.tries += 1;
    this.to("reconnecting");
    this.retrying = setTimeout(() => void this.connect(), pause);
  }

  /** It was turned away before a word could be said, which a browser is not told the reason of. */
  async explain() {
    let condition = "";
    try {
      ({ condition } = await (await fetch(new URL("about.json", this.wishes.server))).json());
    } catch {
      // nobody is there
    }
    if (this.state !== "connecting") return; // ended meanwhile
    const isAway = condition === "loading" || condition === "draining";
    this.fail(serverProblem(isAway ? `server_${condition}` : condition === "ready" ? "origin_not_allowed" : "", ""));
  }

  /** @param {any} event */
  take(event) {
    if (this.transcript.take(event)) this.changed("transcript");
    if (this.turns.take(event)) this.changed("turns");
    switch (event.type) {
      case "session.created":
        this.begin();
        break;
      case "session.updated":
        this.voice = event.session.audio?.output?.voice ?? "";
        this.changed("session");
        break;
      case "input_audio_buffer.speech_started":
        this.opinion = null;
        this.to("hearing");
        break;
      case "antiphon.turn.end_judged":
        this.opinion = event;
        this.changed("opinion");
        break;
      case "input_audio_buffer.committed":
        if (!this.isHeld) this.to("thinking");
        break;
      case "conversation.item.input_audio_transcription.completed":
        if (!event.transcript.trim() && this.state === "thinking") this.to("listening");
        break;
      case "response.created":
        this.isReplying = true;
        if (this.state === "listening") this.to("thinking");
        break;
      case "response.done":
        this.replied(event.response);
        break;
      case "error":
        this.lastError = { code: event.error.code ?? "", message: event.error.message ?? "" };
        this.notice = event.error.code === "response_cancel_not_active" ? "" : (event.error.message ?? "");
        this.changed("notice");
        break;
    }
  }

  /** @param {any} response */
  replied(response) {
    this.isReplying = false;
    if (response.status === "failed") {
      this.notice = response.status_details?.error?.message ?? "The reply failed.";
      this.changed("notice");
    }
    if (!this.isSounding && this.state === "thinking") this.to("listening");
  }

  begin() {
    const before = this.tries > 0 ? this.transcript.spoken().slice(-REMEMBERED) : [];
    this.tries = 0;
    this.turns.reconnected();
    this.update(this.session());
    for (const { role, text } of before) {
      const content = [{ type: role === "user" ? "input_text" : "output_text", text }];
      this.send({ type: "conversation.item.create", item: { type: "message", role, content } });
    }
    this.to("listening");
  }

  session() {
    const { voice, instructions } = this.wishes;
    return {
      include: EXTRAS,
      ...(instructions.trim() ? { instructions } : {}),
      audio: { input: { turn_detection: this.detection() }, ...(voice ? { output: { voice } } : {}) },
    };
  }

  detection() {
    return { type: "semantic_vad", eagerness: this.wishes.eagerness };
  }

  /** @param {any} session */
  update(session) {
    this.send({ type: "session.update", session: { type: "realtime", ...session } });
  }

  /** @param {any} event */
  send(event) {
    this.transport?.send(event);
  }
}

/** @type {import("./problems.js").Problem} */
const noWebRtc = {
  title: "There is no WebRTC here",
  remedy: "The server or this browser lacks it. Choose another connection in the settings, or install antiphon[webrtc] on the server.",
  retry: false,
};

/** @type {import("./problems.js").Problem} */
const lostMicrophone = {
  title: "The microphone went away",
  remedy: "Plug it in again or choose another one in the settings, then talk again.",
  retry: true,
};
