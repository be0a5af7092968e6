"""The search, on a network that is a table: what comes out does not depend on what was guessed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from antiphon.hear.moonshine_decoder import NO_REPEAT_TOKENS, Search, decode
from antiphon.hear.moonshine_settings import MoonshineSettings
from antiphon.hear.moonshine_tokens import BEGIN, END
from antiphon.hear.word_bias import Spellings, WordBias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.hear.moonshine_decoder import Rows, Written

pytestmark = pytest.mark.unit

SIZE = 40
MARK = 5


class TableReading:
    """What follows depends on all that was read, as in a network; every call is counted."""

    def __init__(self, logits: Callable[[tuple[int, ...]], np.ndarray]) -> None:
        self._logits = logits
        self.tokens: list[int] = []
        self.calls = 0

    def read(self, tokens: Sequence[int]) -> Rows:
        self.calls += 1
        rows = []
        for token in tokens:
            self.tokens.append(token)
            rows.append(self._logits(tuple(self.tokens)))
        return np.stack(rows)

    def keep(self, count: int) -> None:
        del self.tokens[count:]


def random_logits(seed: int) -> Callable[[tuple[int, ...]], np.ndarray]:
    """Other ones for each text, ending after some ten tokens."""

    def logits(read: tuple[int, ...]) -> np.ndarray:
        row = np.random.default_rng([seed, *read]).standard_normal(SIZE).astype(np.float32) * 3
        row[END] += len(read) / 2
        return row

    return logits


def looping(read: tuple[int, ...]) -> np.ndarray:
    row = np.zeros(SIZE, np.float32)
    row[10 + len(read) % 3] = 9.0
    return row


def search(*vocabulary: str) -> Search:
    texts = ["", "", "", *(f" w{token}" if token % 2 else f"x{token}" for token in range(3, SIZE))]
    return Search(WordBias(Spellings(texts), vocabulary, MoonshineSettings()), [MARK])


def written(
    logits: Callable[[tuple[int, ...]], np.ndarray], guess: Sequence[int] = (), *vocabulary: str, limit: int = 60
) -> tuple[Written, TableReading]:
    reading = TableReading(logits)
    return decode(reading, search(*vocabulary), guess=guess, limit=limit), reading


@pytest.mark.parametrize("vocabulary", [(), ("w7x8", "w9 w11", "w13")], ids=["plain", "biased"])
@pytest.mark.parametrize("seed", range(12))
def test_a_guess_changes_nothing(seed: int, vocabulary: tuple[str, ...]) -> None:
    """Right, wrong from some token on, too long, or nonsense: the same tokens with the same evidence."""
    logits = random_logits(seed)
    plain, _ = written(logits, (), *vocabulary)
    rng = np.random.default_rng(seed)
    nonsense = rng.integers(3, SIZE, 12).tolist()
    guesses = [plain.tokens[:cut] + tail for cut in range(len(plain.tokens) + 1) for tail in ([], nonsense, [7])]
    for guess in guesses:
        guessed, reading = written(logits, guess, *vocabulary)
        assert plain.tokens == guessed.tokens
        assert plain.has_ended == guessed.has_ended
        assert np.allclose(plain.logs, guessed.logs)
        assert np.allclose(plain.closing, guessed.closing)
        assert [BEGIN, *plain.tokens] == reading.tokens[: len(plain.tokens) + 1]


def test_a_right_guess_costs_one_call() -> None:
    """Without, it is one for each token and the end."""
    plain, slow = written(random_logits(3))
    _, fast = written(random_logits(3), plain.tokens)
    assert (len(plain.tokens) + 1, 1) == (slow.calls, fast.calls)


def test_a_loop_is_left_and_the_limit_is_kept() -> None:
    """No eight tokens come twice, guessed or not, and there are never more than the limit."""
    plain, _ = written(looping, limit=50)
    again, _ = written(looping, plain.tokens, limit=50)
    runs = list(zip(*(plain.tokens[start:] for start in range(NO_REPEAT_TOKENS)), strict=False))
    assert len(set(runs)) == len(runs)
    assert plain.tokens == again.tokens
    assert 5 == len(written(looping, limit=5)[0].tokens)
    assert not written(looping, limit=5)[0].has_ended


def test_the_evidence_is_the_models_own() -> None:
    """Before any bonus: probabilities that sum to one, with the mass on a closing mark at each place."""
    logits = random_logits(1)
    biased, _ = written(logits, (), "w7x8")
    read = [BEGIN, *biased.tokens]
    for place, token in enumerate([*biased.tokens, END][: len(biased.logs)]):
        row = logits(tuple(read[: place + 1]))
        probabilities = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        assert np.isclose(np.log(probabilities[token]), biased.logs[place], atol=1e-4)
        assert np.isclose(probabilities[MARK], biased.closing[place], atol=1e-5)


def test_a_vocabulary_draws_the_search() -> None:
    """A phrase that is nearly as likely as what is likelier is written; without it, it is not."""

    def logits(read: tuple[int, ...]) -> np.ndarray:
        row = np.full(SIZE, -9.0, np.float32)
        row[[9, 11] if len(read) == 1 else [END]] = [2.0, 1.0] if len(read) == 1 else [5.0]
        return row

    assert [[9], [11]] == [written(logits, (), *vocabulary)[0].tokens for vocabulary in ((), ("w11",))]


def test_every_pair_of_calls_is_independent() -> None:
    """Two searches over one table do not share what they have seen."""
    results = [written(random_logits(5))[0].tokens for _ in range(3)]
    assert all(one == other for one, other in itertools.pairwise(results))


def test_a_search_that_nobody_wants_ends_at_its_next_token() -> None:
    answers = iter([True, True, False])
    reading = TableReading(looping)
    found = decode(reading, search(), guess=(), limit=60, is_wanted=lambda: next(answers))
    assert (3, 3) == (len(found.tokens), reading.calls)
    assert not found.has_ended
