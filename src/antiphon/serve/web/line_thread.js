// Where a WebSocket's line runs: in a worker if the page is the server's own, else in the page itself, for browsers lend
// no worker to scripts of another origin, and a page's policy may forbid it.
import { SocketLine } from "./socket_line.js";

const WORKER = new URL("./socket_worker.js", import.meta.url);

/** @typedef {{send: (text: string) => void, close: () => void}} Line */

/**
 * @param {import("./socket_line.js").Where} where
 * @param {import("./socket_line.js").Ends} ends
 * @param {(told: import("./socket_line.js").Told) => void} tell
 * @returns {Line}
 */
export function openLine(where, ends, tell) {
  const worker = thread();
  if (!worker) return new SocketLine(where, ends, tell);
  worker.onmessage = ({ data }) => tell(data);
  worker.onerror = () => tell({ kind: "closed", code: 1006 }); // the server went away before it had sent the file
  worker.postMessage({ kind: "open", where, ends }, [ends.capture, ends.player]);
  return {
    send: (text) => worker.postMessage({ kind: "send", text }),
    close: () => worker.postMessage({ kind: "close" }),
  };
}

/** @returns {Worker | null} */
function thread() {
  if (WORKER.origin !== location.origin) return null;
  try {
    return new Worker(trusted(WORKER.href), { type: "module" });
  } catch {
    return null;
  }
}

/** The page's policy takes addresses of scripts from here alone, and nothing but this one. @type {any} */
let policy = null;

/** @param {string} href @returns {string} */
function trusted(href) {
  const types = /** @type {any} */ (window).trustedTypes;
  if (!types) return href;
  policy ??= types.createPolicy("antiphon", {
    createScriptURL: (/** @type {string} */ wanted) => {
      if (wanted !== WORKER.href) throw new TypeError("not a script of this page");
      return wanted;
    },
  });
  return policy.createScriptURL(href);
}
