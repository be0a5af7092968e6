// What went wrong in -> what it means, in words, and what to do about it. Pure.

/** @typedef {{title: string, remedy: string, retry: boolean, wantsKey?: boolean}} Problem */

/**
 * The microphone could not be had.
 * @param {string} name of the DOMException
 * @param {{secure: boolean, origin: string}} where
 * @returns {Problem}
 */
export function microphoneProblem(name, where) {
  if (!where.secure) {
    return {
      title: "Browsers lend the microphone to secure pages only",
      remedy: `This page came from ${where.origin}. Open it as http://localhost on the machine itself, or serve it over https (antiphon serve --certfile …).`,
      retry: false,
    };
  }
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      return {
        title: "The microphone is blocked for this page",
        remedy: "Allow it with the symbol beside the address, or in the browser’s site settings, then try again.",
        retry: true,
      };
    case "NotFoundError":
    case "OverconstrainedError":
      return {
        title: "No microphone was found",
        remedy: "Plug one in, or choose another device in the settings, then try again.",
        retry: true,
      };
    case "NotReadableError":
    case "AbortError":
      return {
        title: "The microphone is taken",
        remedy: "Another program seems to use it. Close that one, then try again.",
        retry: true,
      };
    default:
      return {
        title: "The microphone did not start",
        remedy: `The browser says ${name || "nothing more"}. Choose another device in the settings, or try again.`,
        retry: true,
      };
  }
}

/** @type {Record<string, Problem>} */
const SAID = {
  session_limit_reached: {
    title: "All places are taken",
    remedy: "One more conversation would make the others slow. Try again in a moment.",
    retry: true,
  },
  invalid_api_key: {
    title: "The server does not know this key",
    remedy: "Enter one of its keys, or a client secret that is still valid.",
    retry: false,
    wantsKey: true,
  },
  origin_not_allowed: {
    title: "Pages of this site may not connect",
    remedy: "Start the server with --origin and this page’s address.",
    retry: false,
  },
  session_expired: {
    title: "The conversation has lasted as long as one may",
    remedy: "Start another one.",
    retry: true,
  },
  session_idle: {
    title: "Nothing was said for a long time",
    remedy: "The server ended the conversation. Start another one.",
    retry: true,
  },
  slow_client: {
    title: "This device could not keep up",
    remedy: "The server’s sound was not read in time. Close other programs or pages, then try again.",
    retry: true,
  },
  server_draining: {
    title: "The server is shutting down",
    remedy: "Try again once it has been started anew.",
    retry: true,
  },
  server_loading: {
    title: "The server loads its models",
    remedy: "That takes a few seconds. Try again in a moment.",
    retry: true,
  },
};

/**
 * The server said why, or nothing did.
 * @param {string} code of its last `error` event or of an HTTP answer; empty: none came
 * @param {string} message
 * @returns {Problem}
 */
export function serverProblem(code, message) {
  const known = SAID[code];
  if (known) return known;
  if (code) return { title: "The server reports an error", remedy: message || code, retry: true };
  return {
    title: "The server cannot be reached",
    remedy: "Check that it runs and that the network is there, then try again.",
    retry: true,
  };
}

/** A connection that was lost by itself is worth opening again; one that was ended on purpose is not. @param {string} code */
export function isPassing(code) {
  return code === "" || code === "server_shutting_down" || code === "server_draining" || code === "server_loading";
}
