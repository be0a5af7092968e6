"""`audio.input.transcription` in; what is in effect of it, and the words to listen for, out.

`prompt` is read as a list of words and phrases, one to a line or between commas, and `keywords` is one. They are hints
to the recognizer from the next turn on. Of more than it has room for the first are kept.
Pure. What it does not know: which languages a recognizer could hear; a call's is the server's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.serve.realtime.fields import Fields
    from antiphon.serve.realtime.outbox import Json
    from antiphon.serve.realtime.session_fields import CallSetup

MOST_HINTS = 100  # as many short words fill the recognizer's 100 tokens of hints
MOST_HINT_CHARS = 100  # more is no phrase, but prose
_MOST_LISTED = 100  # keywords, languages
_BORDER = re.compile(r"[,;\n、，；]")


def first_transcription(setup: CallSetup) -> Json:
    """What is in effect when a call begins."""
    effective: Json = {"model": setup.recognizer}
    return {**effective, "language": setup.language} if setup.language else effective


def read_transcription(setup: CallSetup, now: Json | None, sound: Fields) -> Json | None:
    """What is in effect after a client has sent the `input` object; None: no transcription events.

    The model and the language are the server's own, whatever is asked for.

    Raises:
        RefusedError: a field has a wrong type or value.
    """
    wanted = sound.nested("transcription")
    if wanted is None:
        return None
    wanted.text("model")
    wanted.text("language")
    wanted.texts("languages", most=_MOST_LISTED)
    wanted.choice("delay", "minimal", "low", "medium", "high", "xhigh")
    read: Json = {"prompt": wanted.text("prompt"), "keywords": wanted.texts("keywords", most=_MOST_LISTED)}
    kept = {name: value for name, value in read.items() if wanted.has(name)}
    after = {**(now or {}), **kept, **first_transcription(setup)}
    return {name: value for name, value in after.items() if value is not None}


def hints(transcription: Mapping[str, object] | None) -> tuple[str, ...]:
    """The words and phrases that a client expects to be said, each once, MOST_HINTS at most."""
    if transcription is None:
        return ()
    prompt, keywords = transcription.get("prompt"), transcription.get("keywords")
    named = [one for one in keywords if isinstance(one, str)] if isinstance(keywords, list) else []
    named += _BORDER.split(prompt) if isinstance(prompt, str) else []
    cleaned = (" ".join(one.split()).strip(".:\"'") for one in named)
    kept = dict.fromkeys(one for one in cleaned if one and len(one) <= MOST_HINT_CHARS)
    return tuple(kept)[:MOST_HINTS]
