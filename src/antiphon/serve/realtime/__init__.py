"""The Realtime protocol without a socket: a client's events in, the session driven, the server's events out."""
