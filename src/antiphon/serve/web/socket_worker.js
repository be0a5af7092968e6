// A thread for one WebSocket's line, so that neither sound nor the words of the server wait for what the page draws.
import { SocketLine } from "./socket_line.js";

/** @type {SocketLine | null} */
let line = null;

self.onmessage = ({ data }) => {
  if (data.kind === "open") {
    line = new SocketLine(data.where, data.ends, (told) => self.postMessage(told));
    line.socket.addEventListener("close", () => self.close()); // not before the server knows
  } else if (data.kind === "send") {
    line?.send(data.text);
  } else {
    line?.close();
  }
};
