"""A server without the extra says what to install."""

from __future__ import annotations

import asyncio
import sys

import httpx2 as httpx
import pytest
from tests.serve.doubles import house, running

pytestmark = pytest.mark.e2e


def test_a_call_is_answered_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("antiphon.serve.webrtc.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("aiortc", "aioice", "aioice.candidate", "av"):
        monkeypatch.setitem(sys.modules, name, None)

    async def main() -> None:
        async with running(house()) as place, httpx.AsyncClient() as web:
            sdp = {"content-type": "application/sdp"}
            answer = await web.post(f"{place.http}/v1/realtime/calls", content=b"v=0\r\n", headers=sdp)
            assert 501 == answer.status_code
            error = answer.json()["error"]
            assert "webrtc_not_installed" == error["code"]
            assert "pip install 'antiphon[webrtc]'" in error["message"]

    asyncio.run(main())
