"""`antiphon bench`: measure a server's voice-to-voice latency and cut-ins from outside; a file for each action.

`measuring` is what `antiphon bench` does by itself; `results` compares and reports; `ablate`, `sweep` and `replay` make
several runs, or several out of one.
"""

from antiphon.cli.bench.command import add

__all__ = ["add"]
