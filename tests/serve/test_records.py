"""Recording conversations: off unless asked for, bounded, and never in a caller's way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.dialogue.test_replay import START, by_hand
from tests.serve.doubles import caller, hear, house, running, tone

from antiphon.cli import parser
from antiphon.cli.serve import settled
from antiphon.core.errors import CallerError
from antiphon.dialogue.log import LogSettings, read_log
from antiphon.dialogue.replay import first_difference
from antiphon.serve.protocol import pick_up
from antiphon.serve.records import NOT_RECORDED, Records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def noon() -> datetime:
    return datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def test_nothing_is_recorded_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked, silent = (settled(parser().parse_args(["serve", *words])) for words in (["--record", "logs"], []))

    assert ("logs", "") == (asked.record.folder, silent.record.folder)
    assert NOT_RECORDED is Records(silent.record).begin("sess_1", START)
    assert [] == list(tmp_path.iterdir())


def test_a_log_is_named_by_time_and_session(tmp_path: Path) -> None:
    """For its owner alone, whole, and read back as any other."""
    record = Records(LogSettings(folder=str(tmp_path / "logs")), now=noon).begin("sess_1", START)
    for step in by_hand().steps:
        record.watch(step.stimulus, step.commands)
    record.close()
    (file,) = (tmp_path / "logs").iterdir()

    assert ("20260102T120000Z-sess_1.jsonl", 0o600, 0o700) == (
        file.name,
        file.stat().st_mode & 0o777,
        file.parent.stat().st_mode & 0o777,
    )
    assert len(by_hand().steps) == len(read_log(file).steps)


def test_a_folder_holds_so_many_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those that lay there count; further conversations go on without one, which the server's own log says."""
    (tmp_path / "old.jsonl").touch()
    records = Records(LogSettings(folder=str(tmp_path), most_logs=2), now=noon)
    with caplog.at_level("WARNING", logger="antiphon.serve"):
        kept, refused = records.begin("sess_1", START), records.begin("sess_2", START)
    kept.close()

    assert NOT_RECORDED is refused
    assert ["record.refused"] == [line.message for line in caplog.records]
    assert 2 == len(list(tmp_path.iterdir()))


def test_a_log_that_cannot_be_begun_is_told_and_the_caller_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Here because another has its name."""
    records = Records(LogSettings(folder=str(tmp_path)), now=noon)
    first = records.begin("sess_1", START)
    with caplog.at_level("WARNING", logger="antiphon.serve"):
        assert NOT_RECORDED is records.begin("sess_1", START)
    first.close()

    assert ["record.refused"] == [line.message for line in caplog.records]


def test_a_folder_that_cannot_be_made_ends_the_server_at_once(tmp_path: Path) -> None:
    """Before models are loaded."""
    (tmp_path / "file").touch()
    with pytest.raises(CallerError, match="cannot be written"):
        Records(LogSettings(folder=str(tmp_path / "file" / "logs")))


@pytest.mark.e2e
@pytest.mark.slow
def test_a_conversation_over_the_network_can_be_replayed(tmp_path: Path) -> None:
    """From the first event to the hang-up, by the name that the client was told."""

    async def main() -> str:
        made = house(pick_up=pick_up)
        made = replace(made, config=replace(made.config, record=LogSettings(folder=str(tmp_path))))
        async with running(made) as place:
            async with caller(place.url) as client:
                created = await hear(client, "session.created")
                for sound in (tone(2.0), tone(2.0, level=0.0)):
                    await client.send(sound)
                await hear(client, "response.output_audio.delta")
            await place.settle()
        return str(created["session"]["id"])

    session = asyncio.run(main())
    (file,) = tmp_path.iterdir()
    log = read_log(file)

    assert file.stem.endswith(f"-{session}")
    assert None is first_difference(log)
    assert "ConfirmTurn" in json.dumps([type(command).__name__ for step in log.steps for command in step.commands])
