"""A shop's own web site with a talk button on it: serves one page, and mints a client secret for whoever presses it.

    ANTIPHON_SERVE_KEYS=some-long-key antiphon serve examples/barista.py --origin http://127.0.0.1:8080
    VOICE_KEY=some-long-key python examples/embed/shop.py        # then open http://127.0.0.1:8080

The key stays here. What the browser gets is good for a minute, and for conversations as the shop wants them.
Nothing but the standard library is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = Path(__file__).with_name("shop.html")
SESSION = {"type": "realtime", "instructions": "You take orders for a coffee shop. Answer in one short sentence."}
SECONDS = 60  # in which the conversation has to begin; it may last longer


class Shop(BaseHTTPRequestHandler):
    """The page, and the address that its talk button asks for a secret."""

    voice_server: str

    def do_GET(self) -> None:
        """The page itself."""
        if self.path != "/":
            self._answer(404, "text/plain", b"no such page\n")
            return
        page = PAGE.read_text(encoding="utf-8").replace("VOICE_SERVER", self.voice_server)
        self._answer(200, "text/html; charset=utf-8", page.encode())

    def do_POST(self) -> None:
        """A secret; a real shop asks first who wants it, and how often."""
        origin = self.headers.get("Origin", "")
        if self.path != "/voice-secret" or origin.partition("//")[2] != self.headers.get("Host"):
            self._answer(403, "text/plain", b"for our own page alone\n")
            return
        try:
            self._answer(200, "application/json", mint(self.voice_server))
        except urllib.error.URLError as error:
            self._answer(502, "text/plain", f"the voice server does not answer: {error}\n".encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def mint(voice_server: str) -> bytes:
    """A client secret, as the voice server answers."""
    asked = {"session": SESSION, "expires_after": {"anchor": "created_at", "seconds": SECONDS}}
    request = urllib.request.Request(  # noqa: S310 - the address is the shop's own choice
        f"{voice_server}/v1/realtime/client_secrets",
        data=json.dumps(asked).encode(),
        headers={"Authorization": f"Bearer {os.environ['VOICE_KEY']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310
        answer: bytes = response.read()
    return answer


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--voice-server", default="http://127.0.0.1:8000")
    arguments = parser.parse_args()
    if "VOICE_KEY" not in os.environ:
        print("error: VOICE_KEY is not set\nhint: it is one of the voice server's keys", file=sys.stderr)
        return 2
    Shop.voice_server = arguments.voice_server.rstrip("/")
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Shop)
    print(f"Open http://127.0.0.1:{server.server_port}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
