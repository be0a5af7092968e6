"""Conversations' tokens in, pages of the model's memory out, counted exactly.

The memory of keys and values is cut into pages of PAGE_TOKENS. A sequence owns whole pages, in order; it grows at its
end, is rewound to any length, and what it no longer needs is free at once. Page 0 belongs to nobody: the rows that
only fill a batch up write there.

Units: tokens and pages. Threads: none of its own; whoever drives the model calls. It does not know tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon.core.errors import BusyError

PAGE_TOKENS = 64  # 128 KiB of keys of one layer of an 8B model; half a page is lost per sequence on average
SCRATCH_PAGE = 0


class PagePool:
    """Which pages are free."""

    def __init__(self, pages: int) -> None:
        """`pages` counts the one for scratch."""
        self.pages = pages
        self._free = list(range(pages - 1, SCRATCH_PAGE, -1))  # taken from the end, the lowest first
        self._taken: set[int] = set()

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def taken(self) -> int:
        return len(self._taken)

    def take(self) -> int | None:
        """A page, or None if all are taken."""
        if not self._free:
            return None
        page = self._free.pop()
        self._taken.add(page)
        return page

    def give_back(self, page: int) -> None:
        assert page in self._taken, "a page is given back once, by who took it"
        self._taken.remove(page)
        self._free.append(page)

    def check(self, owned: list[int]) -> None:
        """Assert that `owned`, all pages that anybody says are theirs, are those taken, each once."""
        assert len(owned) == len(set(owned)), "a page has two owners"
        assert set(owned) == self._taken, "a page is taken and nobody's, or somebody's and free"
        assert len(self._free) + len(self._taken) + 1 == self.pages, "pages were lost"
        assert SCRATCH_PAGE not in self._taken, "the scratch page was handed out"


@dataclass(slots=True, eq=False)
class Memory:
    """One sequence's tokens that the model has read, and the pages in which they lie."""

    tokens: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    used_at: int = 0  # a count of steps; the least is evicted first

    def common(self, prompt: list[int]) -> int:
        """How many tokens at the beginning are those of `prompt`."""
        most = min(len(self.tokens), len(prompt))
        if self.tokens[:most] == prompt[:most]:
            return most
        return next(place for place in range(most) if self.tokens[place] != prompt[place])


class PageBook:
    """Who owns which pages; makes room by forgetting what was used longest ago and is not at work."""

    def __init__(self, pages: int) -> None:
        self.pool = PagePool(pages)
        self._memories: dict[int, Memory] = {}
        self._at_work: set[int] = set()
        self._clock = 0

    def of(self, owner: int) -> Memory:
        """The memory of `owner`, empty at first."""
        return self._memories.setdefault(owner, Memory())

    def begin(self, owner: int) -> Memory:
        """Keep this owner's memory from being evicted until `end`."""
        self._at_work.add(owner)
        return self.of(owner)

    def end(self, owner: int) -> None:
        self._at_work.discard(owner)

    def grow(self, owner: int, tokens: int) -> None:
        """Make room for `tokens` in all; an eviction costs its owner a fresh reading and nothing else.

        Raises:
            BusyError: all pages belong to sequences at work.
        """
        memory = self.of(owner)
        self._clock += 1
        memory.used_at = self._clock
        while len(memory.pages) * PAGE_TOKENS < tokens:
            page = self.pool.take()
            if page is None:
                self._evict(but=owner)
                continue
            memory.pages.append(page)

    def rewind(self, owner: int, tokens: int) -> None:
        """Forget what lies beyond the first `tokens`; their pages are free from here on."""
        memory = self.of(owner)
        del memory.tokens[tokens:]
        needed = -(-tokens // PAGE_TOKENS)
        for page in memory.pages[needed:]:
            self.pool.give_back(page)
        del memory.pages[needed:]

    def forget(self, owner: int) -> None:
        """Free all that `owner` has."""
        if owner in self._memories:
            self.rewind(owner, 0)
            del self._memories[owner]
        self._at_work.discard(owner)

    def check(self) -> None:
        """Assert that every page is accounted for; for tests and for whoever doubts."""
        self.pool.check([page for memory in self._memories.values() for page in memory.pages])
        for memory in self._memories.values():
            assert len(memory.tokens) <= len(memory.pages) * PAGE_TOKENS, "tokens lie outside of their pages"

    def _evict(self, *, but: int) -> None:
        idle = [
            owner
            for owner, memory in self._memories.items()
            if owner not in self._at_work and owner != but and memory.pages
        ]
        if not idle:
            raise BusyError(
                f"all {self.pool.pages - 1} pages of the language model's memory are in use",
                hint="lower capacity.conversations or the context, or give the model more of the GPU's memory",
            )
        self.forget(min(idle, key=lambda owner: self._memories[owner].used_at))
