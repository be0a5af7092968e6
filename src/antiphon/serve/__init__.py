"""Conversations over the network: the Realtime protocol, and the server that speaks it."""
