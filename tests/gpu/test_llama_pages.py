"""Pages of a language model's memory: whatever comes, goes and changes its mind, each is accounted for."""

from __future__ import annotations

import random

import pytest

from antiphon.core.errors import BusyError
from antiphon.gpu.llama.pages import PAGE_TOKENS, SCRATCH_PAGE, PageBook

pytestmark = pytest.mark.unit


def test_ten_thousand_changes_leave_the_accounts_exact():
    """Growing, rewinding, forgetting and evicting at random: no page is lost, shared or handed out twice."""
    source, book, at_work = random.Random(3), PageBook(40), set()
    refused = 0
    for _ in range(10_000):
        owner = source.randrange(25)
        match source.randrange(5):
            case 0 | 1:
                memory = book.begin(owner)
                at_work.add(owner)
                wanted = len(memory.tokens) + source.randrange(150)
                try:
                    book.grow(owner, wanted)
                except BusyError:
                    refused += 1
                else:
                    memory.tokens.extend(range(wanted - len(memory.tokens)))
            case 2:
                book.rewind(owner, source.randrange(len(book.of(owner).tokens) + 1))
            case 3:
                book.end(owner)
                at_work.discard(owner)
            case _:
                book.forget(owner)
                at_work.discard(owner)
        book.check()
    for owner in range(25):
        book.forget(owner)
    book.check()
    assert refused
    assert 39 == book.pool.free


def test_who_is_at_work_is_not_evicted():
    """Room is made of what was used longest ago and is idle; where all are at work, the newcomer is refused."""
    book = PageBook(3)
    for owner in (1, 2):
        book.begin(owner)
        book.grow(owner, PAGE_TOKENS)
    with pytest.raises(BusyError, match="pages"):
        book.grow(3, 1)

    book.end(1)
    book.grow(3, 1)

    assert [] == book.of(1).pages
    assert 1 == len(book.of(2).pages)


def test_a_rewind_frees_at_once():
    """Pages beyond what is kept are free, and the one that is cut in the middle is not."""
    book = PageBook(10)
    book.grow(1, 5 * PAGE_TOKENS)
    book.of(1).tokens.extend(range(5 * PAGE_TOKENS))

    book.rewind(1, PAGE_TOKENS + 1)

    assert 2 == len(book.of(1).pages)
    assert 7 == book.pool.free
    assert SCRATCH_PAGE not in book.of(1).pages
