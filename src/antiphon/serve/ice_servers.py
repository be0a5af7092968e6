"""The STUN and TURN servers that are set -> what a client's `RTCPeerConnection` is told, and who it is at the relay.

A relay that shares a secret with this server (`use-auth-secret` in coturn) takes names that say until when they are
valid, and passwords that follow from the name. So whoever may call can be given a password without being given one
that lasts. A name and password that were set are this server's own, and are told to nobody.
Units: epoch seconds. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.serve_settings import ServeSettings

PASS_S = 3600  # that a relay's password is valid; a relay lets a call go on for which it has expired


def relay_pass(settings: ServeSettings, *, now_s: float) -> tuple[str, str]:
    """Name and password at the TURN server; both empty where none are set."""
    if not settings.webrtc_turn_secret:
        return settings.webrtc_turn_username, settings.webrtc_turn_password
    name = f"{int(now_s) + PASS_S}:antiphon"
    digest = hmac.new(settings.webrtc_turn_secret.encode(), name.encode(), hashlib.sha1).digest()
    return name, base64.b64encode(digest).decode("ascii")


def for_clients(settings: ServeSettings, *, now_s: float) -> list[dict[str, str]]:
    """As `RTCConfiguration.iceServers` takes them; for those alone who may call."""
    told = [{"urls": settings.webrtc_stun}] if settings.webrtc_stun else []
    if settings.webrtc_turn and settings.webrtc_turn_secret:
        name, password = relay_pass(settings, now_s=now_s)
        told.append({"urls": settings.webrtc_turn, "username": name, "credential": password})
    return told
