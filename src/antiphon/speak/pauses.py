"""A chunk's text in, the silence that it ends with out.

The voice is asked for one sentence or clause at a time and its edges are trimmed, so the pause that it would have
left between two of them is put back here. Units: milliseconds.
"""

from __future__ import annotations

# Medians of what hibari's "heart" leaves at a mark inside an utterance that goes on (23 sentences, below -45 dBFS):
# comma 90, dash 68, semicolon 160, colon 222, question mark 205, full stop 250 ms. An exclamation mark and an ellipsis
# came out at about 40 ms, too little to be heard as an end once the next sentence no longer leans on this one.
CLAUSE_MS = 90
PHRASE_MS = 180
SENTENCE_MS = 240
PARAGRAPH_MS = 450  # what the same voice leaves after its last word: 400-467 ms

_PAUSES_MS = {
    **dict.fromkeys(",，、،–—", CLAUSE_MS),
    **dict.fromkeys(";:；：؛", PHRASE_MS),
    **dict.fromkeys(".!?…。！？؟।", SENTENCE_MS),
    "\n": PARAGRAPH_MS,
}


def pause_after_ms(text: str) -> int:
    """The pause that the last marks of `text` deserve; 0 if it breaks off in mid-clause.

    Marks behind the last letter or digit count, the longest of them wins, whatever quotes and brackets lie between.
    """
    pause_ms = 0
    for character in reversed(text):
        if character.isalnum():
            break
        pause_ms = max(pause_ms, _PAUSES_MS.get(character, 0))
    return pause_ms
