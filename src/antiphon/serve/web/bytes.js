// Samples to base64 and back. Units: 16-bit little-endian mono, as the protocol's `audio/pcm` has it. Pure.

const STEP = 0x2000; // arguments in one call of fromCharCode

/** @param {Int16Array} pcm @returns {string} */
export function toBase64(pcm) {
  const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += STEP) text += String.fromCharCode(...bytes.subarray(at, at + STEP));
  return btoa(text);
}

/** @param {string} text @returns {Int16Array} */
export function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length & ~1);
  for (let at = 0; at < bytes.length; at++) bytes[at] = raw.charCodeAt(at);
  return new Int16Array(bytes.buffer);
}
