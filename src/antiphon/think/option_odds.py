"""Texts that a model may write next, as tokens, in; how likely each is, in as few questions as can be, out.

Texts that begin alike share their first tokens; only where they part is the model asked. Threads: pure; who drives
it asks the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence


def option_odds(options: Sequence[Sequence[int]]) -> Generator[tuple[int, ...], Mapping[int, float], list[float]]:
    """Yield the tokens behind which to ask, be sent the log-probabilities of the tokens there, return each option's.

    Tokens that are all that can follow count as certain, so the options' odds are for the case that one is written.
    A token that is not among those sent counts as the least likely of them.
    """
    odds = [0.0] * len(options)
    parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    if len(options) > 1:
        parts.append(((), tuple(range(len(options)))))
    while parts:
        begun, alike = parts.pop()
        follows: dict[int, list[int]] = {}
        for index in alike:
            rest = options[index][len(begun) :]
            follows.setdefault(rest[0] if rest else -1, []).append(index)
        if len(follows) == 1 and -1 not in follows:
            parts.append(((*begun, next(iter(follows))), alike))
            continue
        likely = yield begun
        least = min(likely.values())
        # an option that ends where another goes on gets what no other takes
        for token, group in follows.items():
            for index in group:
                odds[index] += likely.get(token, least)
            if len(group) > 1 and token != -1:
                parts.append(((*begun, token), tuple(group)))
    return odds
