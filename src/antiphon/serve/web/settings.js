// What somebody chose for themselves, kept in this browser; never a key. Reading tolerates whatever is there.

/** @typedef {{voice: string, instructions: string, eagerness: string, device: string, transport: "auto" | "webrtc" | "websocket"}} Choices */

const PLACE = "antiphon.settings";
const EAGERNESS = ["auto", "low", "medium", "high"];
const TRANSPORTS = /** @type {const} */ (["auto", "webrtc", "websocket"]);
const LONGEST = 20000;

/** @param {string | null} text @returns {Choices} */
export function read(text) {
  /** @type {any} */
  let kept = {};
  try {
    kept = JSON.parse(text ?? "{}") ?? {};
  } catch {
    // somebody else's, or cut short: as if nothing were there
  }
  /** @param {unknown} value */
  const words = (value) => (typeof value === "string" ? value.slice(0, LONGEST) : "");
  return {
    voice: words(kept.voice),
    instructions: words(kept.instructions),
    eagerness: EAGERNESS.includes(kept.eagerness) ? kept.eagerness : "auto",
    device: words(kept.device),
    transport: TRANSPORTS.includes(kept.transport) ? kept.transport : "auto",
  };
}

/** @returns {Choices} */
export function load() {
  try {
    return read(localStorage.getItem(PLACE));
  } catch {
    return read(null); // storage is switched off
  }
}

/** @param {Choices} choices */
export function save(choices) {
  try {
    localStorage.setItem(PLACE, JSON.stringify(choices));
  } catch {
    // it counts until the page is closed
  }
}
