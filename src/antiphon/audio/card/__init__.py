"""A machine's own microphone and loudspeaker, moved by a process of their own; docs/realtime-audio.md."""
