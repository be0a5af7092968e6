"""Calls by WebRTC: audio over tracks, events over a data channel. Alone here aiortc, aioice and PyAV are imported."""
