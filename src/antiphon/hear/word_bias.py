"""A caller's vocabulary in, a bonus for the tokens that begin or go on with one of its phrases out.

Phrases are matched on text, letter case and hyphens aside, however the text is split into tokens. All of them lie in
one tree of characters; where the text so far stands in it are its places, which are carried along from token to token.
A phrase begins only where a word does, and a token that leaves a phrase in mid-word is given nothing.
Raised are the tokens that the model itself would spell the phrase with: it writes "iced" as " " and "iced", and a bonus
for " ice", which fits as well, drew it into "ice mocha". Only where the text stands between two of these, any that fit.
A space alone counts as well, but not at the text's beginning: words have a capital there and are spelled otherwise, and
it drew "Two." into " 2". What a text has said of a
phrase already is not raised again in it: on half a word the search else said the same word until it was stopped.
Which tokens fit at a place is found when it is first asked for and kept: at most one array for each character of the
vocabulary, which is bounded. A step costs some 30 us, for one phrase as for 500.
Threads: may be shared; two that fill the same place at once do the same work twice.
What it does not know: sound, and what a model made of it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from antiphon.hear.moonshine_settings import MoonshineSettings

Ids: TypeAlias = npt.NDArray[np.int32]
Logits: TypeAlias = npt.NDArray[np.float32]  # (vocabulary,)
Places: TypeAlias = tuple[int, ...]  # nodes of the tree, apart from the root, that the text so far has reached

NOWHERE: Places = ()
_ROOT = 0
_LONGEST_PHRASE = 80  # characters; what is longer is no phrase that a caller would say in one breath


class Spellings:
    """What the tokens of a model spell: shared by all callers."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(_comparable(text) for text in texts)  # "" for a token that is no text
        self.by_text: dict[str, list[int]] = {}
        for token, text in enumerate(self.texts):
            if text:
                self.by_text.setdefault(text, []).append(token)
        self.longest = max(map(len, self.by_text))
        # What makes the word before it longer.
        self.lengthens: npt.NDArray[np.bool_] = np.array([text[:1].isalnum() for text in self.texts], np.bool_)
        self._exact = {text: token for token, text in enumerate(texts) if text}  # single bytes come before characters

    def spell(self, word: str) -> list[int]:
        """The tokens that the model would write the word with, up to a character that it has none for.

        Neighbours are joined in the order in which the vocabulary numbers what they make, as it was built.
        """
        pieces = list(word)
        while True:
            joined = [self._exact.get(one + other) for one, other in itertools.pairwise(pieces)]
            first = min((token for token in joined if token is not None), default=None)
            if first is None:
                break
            place = joined.index(first)
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        known = itertools.takewhile(lambda token: token is not None, map(self._exact.get, pieces))
        return [token for token in known if token is not None]


class _Step(NamedTuple):
    """From one node of the tree: the tokens to raise, and the node that each leads to."""

    tokens: Ids
    nodes: Ids


class WordBias:
    """The tree of one caller's vocabulary."""

    def __init__(self, spellings: Spellings, vocabulary: Sequence[str], settings: MoonshineSettings) -> None:
        self._spellings = spellings
        self._settings = settings
        self._children: list[dict[str, int]] = [{}]
        self._ends: set[int] = set()
        self._spelled: dict[int, set[int]] = {}  # at a node: the model's own next tokens
        self._steps: dict[int, _Step] = {}
        self.phrases = self._grow(vocabulary, settings.vocabulary_characters)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever added."""
        settings = self._settings
        return not self.phrases or not (settings.beginning_bonus or settings.inside_bonus or settings.ending_bonus)

    def is_space(self, token: int) -> bool:
        """Whether the token is a space and nothing else, or a hyphen."""
        return self._spellings.texts[token] == " "

    def after(self, places: Places, token: int) -> Places:
        """Where the text stands once the token is written."""
        for character in self._spellings.texts[token]:
            found = [self._children[place].get(character) for place in places]
            if character == " ":
                found.append(self._children[_ROOT].get(character))
            places = tuple(dict.fromkeys(place for place in found if place is not None))
        return places

    def added(self, logits: Logits, places: Places, been: Collection[int] = (), *, is_first: bool = False) -> Logits:
        """The logits with the bonuses that hold at these places; a copy.

        Nothing is given for coming again where the text has `been`. `is_first`: the text begins with this token.
        """
        settings = self._settings
        bonus = np.zeros(len(logits), np.float32)
        if settings.ending_bonus and any(place in self._ends for place in places):
            bonus[self._spellings.lengthens[: len(logits)]] = -settings.ending_bonus
        begun = self._children[_ROOT].get(" ", _ROOT)  # a space alone is no more than a beginning
        seen = np.array(list(been), np.int32)
        # A token may fit at several places; the largest bonus counts.
        for place in (_ROOT, *places):
            step = self._step(place)
            tokens = step.tokens[~np.isin(step.nodes, seen)] if len(seen) else step.tokens
            amount = settings.beginning_bonus if place in (_ROOT, begun) else settings.inside_bonus
            bonus[tokens] = np.maximum(bonus[tokens], amount)
        if is_first:
            bonus[self._spellings.by_text.get(" ", [])] = 0.0
        return logits + bonus

    def _grow(self, vocabulary: Sequence[str], limit: int) -> int:
        """Put the phrases into the tree; how many there are."""
        count = 0
        for phrase in vocabulary:
            written = " ".join(phrase.replace("-", " ").split())
            if not written or len(written) > _LONGEST_PHRASE:
                continue
            if len(self._children) + len(written) > limit:
                break
            node = _ROOT
            for word in written.split():
                node = self._grow_word(node, word)
            self._ends.add(node)
            count += 1
        return count

    def _grow_word(self, start: int, word: str) -> int:
        """Put a word behind a node, and note how it is spelled: in small letters, with a capital, and as given."""
        path = [start]
        for character in _comparable(f" {word}"):
            children = self._children[path[-1]]
            if character not in children:
                children[character] = len(self._children)
                self._children.append({})
            path.append(children[character])
        for form in {word, word.lower(), word.capitalize()}:
            place = 0
            for token in self._spellings.spell(f" {form}"):
                if place >= len(path) - 1:  # a letter whose small form is two
                    break
                self._spelled.setdefault(path[place], set()).add(token)
                place += len(self._spellings.texts[token])
        return path[-1]

    def _step(self, place: int) -> _Step:
        known = self._steps.get(place)
        if known is None:
            found = sorted(self._spelled[place]) if place in self._spelled else self._search(place)
            nodes = [self._walk(place, self._spellings.texts[token]) for token in found]
            known = self._steps[place] = _Step(np.array(found, np.int32), np.array(nodes, np.int32))
        return known

    def _walk(self, node: int, text: str) -> int:
        for character in text:
            node = self._children[node][character]
        return node

    def _search(self, place: int) -> list[int]:
        """The tokens whose whole text goes on from this node inside the tree."""
        by_text, longest = self._spellings.by_text, self._spellings.longest
        found: list[int] = []
        open_ends = [(place, "")]
        while open_ends:
            node, text = open_ends.pop()
            for character, child in self._children[node].items():
                longer = text + character
                found += by_text.get(longer, ())
                if len(longer) < longest:
                    open_ends.append((child, longer))
        return found


def _comparable(text: str) -> str:
    """Lower-case, and parted by spaces alone."""
    return text.lower().replace("-", " ")
