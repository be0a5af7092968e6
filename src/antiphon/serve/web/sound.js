// The microphone and the audio context of a page, opened once and kept through every connection.
import { microphoneProblem } from "./problems.js";

/** The microphone cannot be had; `problem` says why and what to do. */
export class MicrophoneError extends Error {
  /** @param {import("./problems.js").Problem} problem */
  constructor(problem) {
    super(problem.title);
    this.problem = problem;
  }
}

export class Sound {
  /** @param {AudioContext} context @param {MediaStream} stream */
  constructor(context, stream) {
    this.context = context;
    this.stream = stream;
  }

  /**
   * Ask for the microphone; call it from a click, or the browser keeps the context silent.
   * @param {string} device its id; empty: the usual one
   * @returns {Promise<Sound>}
   * @throws {MicrophoneError}
   */
  static async open(device = "") {
    const where = { secure: window.isSecureContext, origin: location.origin };
    if (!navigator.mediaDevices?.getUserMedia) throw new MicrophoneError(microphoneProblem("", where));
    const context = new AudioContext({ latencyHint: "interactive" });
    try {
      const wanted = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
      const audio = device ? { ...wanted, deviceId: { exact: device } } : wanted;
      const stream = await navigator.mediaDevices.getUserMedia({ audio });
      await context.resume();
      await Promise.all(
        ["capture", "playback", "meter"].map((name) =>
          context.audioWorklet.addModule(new URL(`./${name}-worklet.js`, import.meta.url)),
        ),
      );
      return new Sound(context, stream);
    } catch (error) {
      await context.close();
      throw new MicrophoneError(microphoneProblem(error instanceof Error ? error.name : "", where));
    }
  }

  /** Whether the microphone is still there. */
  get isAlive() {
    return this.stream.getAudioTracks().some((track) => track.readyState === "live");
  }

  /** @param {boolean} isOpen */
  open(isOpen) {
    for (const track of this.stream.getAudioTracks()) track.enabled = isOpen;
  }

  close() {
    for (const track of this.stream.getTracks()) track.stop();
    if (this.context.state !== "closed") void this.context.close();
  }
}

/** The microphones that the browser tells of; their names are empty before it was allowed one. @returns {Promise<{id: string, name: string}[]>} */
export async function microphones() {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  return devices
    .filter((device) => device.kind === "audioinput" && device.deviceId)
    .map((device, index) => ({ id: device.deviceId, name: device.label || `Microphone ${index + 1}` }));
}
