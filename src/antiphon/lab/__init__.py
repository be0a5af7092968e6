"""The ruler: measures any OpenAI-Realtime server from outside, as a caller would; it imports nothing of our server."""
