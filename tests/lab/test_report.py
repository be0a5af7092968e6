"""report.html: it stands alone, says first what matters, and nothing that was said breaks it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from tests.lab.runs import large, ramp, run, turn

from antiphon.lab import charts, sections
from antiphon.lab.page import definitions, flattened, table
from antiphon.lab.report import render, write_report
from antiphon.lab.result import Outcome, Run
from antiphon.lab.waterfall import chosen, waterfall

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

VOID = {"steal": 0.07, "busy_by_others": 0.2, "is_valid": False}


class Balance(HTMLParser):
    """Fails on an element that is not closed, or not in its place."""

    VOIDS = frozenset({"meta", "link", "br", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOIDS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Closed in itself."""

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()


def balanced(page: str) -> bool:
    parser = Balance()
    parser.feed(page)
    parser.close()
    return not parser.open


def evil() -> Run:
    """A run of two numbers of callers in which everything that has a name is called by markup."""
    name = '<script>alert("$x")</script>'
    answered = turn(
        300.0, transcript=name, reply=name, clip=name, kind=name, events_ms={name: 1.0}, stages_ms={name: 2.0}
    )
    turns = (answered, replace(answered, callers=2, gaps_ms=(40.0,)), turn(None, kind=name, error=name))
    return run(turns, name=name, settings={name: name}, notes=(name,))


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.mark.parametrize(
    "made",
    [
        large(turns=60),
        large(turns=60, load=VOID),
        large(turns=60, stages=False, load={}),
        ramp((1, 2), turns=6),
        run(),
        run((turn(None),)),
        run((turn(None, outcome=Outcome.REFUSED),)),
        run((turn(None, outcome=Outcome.CUT_IN),)),
    ],
    ids=["large", "void", "without stamps", "ramp", "empty", "silent", "refused", "cut in"],
)
def test_any_run_gives_a_whole_page(made: Run) -> None:
    """Also runs in which nothing was measured; and no page asks anyone for anything."""
    page = render(made)

    assert balanced(page)
    assert not re.search(r"(src|href)=[\"'](?!data:|#)", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_p95_stands_beside_cut_ins() -> None:
    """The headline names both, each with its interval, and what they rest on."""
    said = words_of(sections.headline(large()))

    assert re.search(r"P95 \d+ ms \d+ to \d+ cut-ins \d+\.\d% \d+ of 320; \d+\.\d to \d+\.\d %", said)
    assert re.search(r"n = \d+: turns with a latency, of 320", said)


def test_a_void_run_says_so_first() -> None:
    """Before any figure, and in words."""
    said = words_of(render(large(turns=30, load=VOID)).split("<main>")[1])

    assert "This run is void: the host took 7.0% of the processor time for others" in said
    assert said.index("This run is void") < said.index("P50")


def test_too_few_turns_are_said() -> None:
    assert "at least 20 are needed" in sections.headline(large(turns=12))
    assert "at least 20 are needed" not in sections.headline(large(turns=60))


def test_what_was_said_cannot_break_the_page() -> None:
    """Words, names and errors come from outside: they stay text."""
    page = render(evil())

    assert balanced(page)
    assert page.count("<script>") == 1  # our own


def test_turns_stand_in_a_sortable_table() -> None:
    """Every turn has a row; an infinity has a key that sorts last."""
    rows = sections.every_turn(run((turn(123.4), turn(None))))

    assert "Every turn (2)" in rows
    assert '<table class="sortable">' in rows
    assert 'data-key="123.4"' in rows
    assert '<td class="number" data-key="inf">never</td>' in rows


def test_very_many_turns_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "MOST_ROWS", 10)
    rows = sections.every_turn(run(tuple(turn() for _ in range(sections.MOST_ROWS + 7))))

    assert "7 more stand in result.json" in rows
    assert rows.count("<tr>") == sections.MOST_ROWS + 1


def test_a_ramp_says_how_many_callers_it_held() -> None:
    said = words_of(sections.capacity_line(ramp()))

    assert re.search(r"Capacity: \d callers? at once", said)
    assert "The next level broke it" in said
    assert sections.capacity_line(large()) == ""


def test_the_median_and_the_slowest_turns_are_laid_open() -> None:
    """Each once; a silent turn has its rank, but no picture."""
    turns = [turn(float(100 * place), clip=str(place)) for place in range(1, 20)] + [turn(None)]
    found = chosen(turns)

    assert [("Median", 1000.0), ("P95", 1900.0), ("Second slowest", 1800.0), ("Third slowest", 1700.0)] == [
        (why, one.v2v_ms) for why, one in found
    ]


def test_nobody_is_laid_open_where_nobody_was_answered() -> None:
    assert [] == chosen([turn(None)])


def test_a_waterfall_shows_stages_one_after_the_other() -> None:
    """Each bar begins where the one before it ended; what came long after the reply is left out."""
    picture = waterfall(
        turn(
            400.0,
            stages_ms={"antiphon.transcribed": 300.0, "antiphon.pause.noticed": 100.0},
            events_ms={"response.created": 200.0, "response.done": 3000.0},
        ),
        heading="Median:",
    )
    said = re.sub("<wbr>", "", picture)

    assert ["noticing the pause", "hearing the last words", "response.created", "first audible sound"] == re.findall(
        r'class="name">([^<]+)', said
    )
    assert ["100 ms", "200 ms", "at 200", "400 ms"] == re.findall(r'class="took">([^<]+)', said)


def test_without_matplotlib_the_page_says_how_to_get_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Its tables are all there."""
    monkeypatch.setattr(charts, "find_spec", lambda _name: None)
    [path] = write_report(large(turns=30), tmp_path)
    page = path.read_text(encoding="utf-8")

    assert "pip install &quot;antiphon[lab]&quot;" in page
    assert "<svg" not in page
    assert "By kind" in page


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A report with every picture: drawing takes long enough to do it once."""
    pytest.importorskip("matplotlib")
    return write_report(evil(), tmp_path_factory.mktemp("report"), others=[large(turns=30, name="other")])


def test_pictures_lie_beside_the_page_and_in_it(drawn: list[Path]) -> None:
    """As PNG and as SVG in the page's own colours, and names from outside cannot break them."""
    page = drawn[0].read_text(encoding="utf-8")
    pictures = ("percentiles", "histogram", "over-time", "callers", "gaps", "latency-against-cut-ins")

    assert ["report.html", *(f"{name}.png" for name in pictures)] == [path.name for path in drawn]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn[1:])
    assert page.count("<svg") == len(pictures)
    assert "currentColor" in page
    assert "var(--rule)" in page
    assert charts.PAGE.ink not in page
    assert balanced(page)
    assert page.count("<script>") == 1
    assert "Latency against cut-ins, run by run" in page


def test_ids_of_pictures_do_not_meet(drawn: list[Path]) -> None:
    """Several pictures of one page, each with ids of its own."""
    ids = re.findall(r'id="([^"]+)"', drawn[0].read_text(encoding="utf-8"))

    assert len(set(ids)) == len(ids)


def test_tables_align_figures_to_the_right() -> None:
    from antiphon.lab.page import number

    made = table(("name", "ms"), [("a", number("1", 1.0))])

    assert '<th scope="col">name</th><th scope="col" class="number">ms</th>' in made


def test_settings_are_listed_with_their_inner_names() -> None:
    """Tables inside become names with a dot; what is empty is left out."""
    values = {"line": {"delay_ms": 40}, "kinds": ["clean", "noisy"], "key": None, "stamps": True}

    assert [("line.delay_ms", "40"), ("kinds", "clean, noisy"), ("stamps", "yes")] == flattened(values)
    assert "Not known" in definitions({})
