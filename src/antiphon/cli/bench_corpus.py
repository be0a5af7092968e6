"""`antiphon bench corpus`: make a corpus of a folder of recordings, or of our own voice."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.core.flow import Pcm
    from antiphon.hear.voice_detector import VoiceDetector
    from antiphon.lab.synthesis import Line
    from antiphon.speak.synthesizer import Synthesizer

KIND = "speech"  # of a recording that lies in no folder of its own
VOICE = "hibari-heart"
SNR_DB = 10.0
LONGEST_S = 600.0  # of one turn; a longer recording is a conversation, and has many ends
TEXT_BYTES = 65_536
SHOWN = 5  # files that a note names


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the action."""
    from antiphon.cli.config import add_flags

    parser = subparsers.add_parser(
        "corpus",
        help="make a corpus: find where speech ends in your recordings, or synthesise some",
        description="Writes manifest.jsonl into a folder of recordings, each of which holds one turn: where speech "
        "begins, pauses and ends. Or says sentences with our own voice, for when there are no recordings.",
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="of recordings: WAV, FLAC, Ogg, MP3")
    parser.add_argument("--kind", metavar="NAME", help=f"of all of them; else each subfolder's name, or {KIND!r}")
    parser.add_argument("--force", action="store_true", help="replace a manifest that is there")
    parser.add_argument("--synthesise", type=int, metavar="N", help="say N sentences into --out instead")
    # SUPPRESS: what was given before the action's name stays.
    parser.add_argument("--out", type=Path, metavar="DIR", default=argparse.SUPPRESS, help="of the synthetic corpus")
    parser.add_argument("--seed", type=int, metavar="S", default=argparse.SUPPRESS, help="the same, the same bytes (0)")
    parser.add_argument(
        "--kinds", metavar="A,B", default=argparse.SUPPRESS, help="to synthesise, in turn: clean, hesitation, noisy"
    )
    parser.add_argument("--snr-db", type=float, default=SNR_DB, metavar="DB", help=f"of the noisy ones ({SNR_DB:g})")
    parser.add_argument("--voice", metavar="NAME", default=argparse.SUPPRESS, help=f"that speaks ({VOICE})")
    add_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the corpus; 1 if a recording had to be left out.

    Raises:
        CallerError: what was asked for is wrong, or a manifest is there already.
        MachineError: a model is not here, or a file cannot be written.
    """
    from antiphon.core.errors import CallerError

    if (arguments.folder is None) == (arguments.synthesise is None):
        hint = "name a folder of recordings, or use --synthesise N --out DIR"
        raise CallerError("either recordings or a number to synthesise", hint=hint)
    return _annotate(arguments) if arguments.folder else _synthesise(arguments)


# Recordings.


@dataclass(slots=True)
class Findings:
    """What came of a folder."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # with the reason
    doubtful: list[str] = field(default_factory=list)


def _annotate(arguments: argparse.Namespace) -> int:
    from antiphon.cli.config import resolve
    from antiphon.core.errors import CallerError
    from antiphon.hear.silero import SileroDetector
    from antiphon.lab.manifest import refuse_if_there, write_manifest
    from antiphon.models.store import Store

    folder = arguments.folder
    paths = recordings(folder)
    refuse_if_there(folder, force=arguments.force)
    detector = SileroDetector.load(Store().file(resolve(arguments).config.models.voice_detector))
    findings = annotated(folder, paths, detector, kind=arguments.kind)
    if not findings.entries:
        raise CallerError(f"speech was found in none of {len(paths)} recordings", hint="; ".join(findings.skipped[:3]))
    path = write_manifest(folder, findings.entries)
    _tell(findings, path)
    return 1 if findings.skipped else 0


def recordings(folder: Path) -> list[Path]:
    """The sound files of a folder and its subfolders, by name.

    Raises:
        CallerError: there is no such folder, or there are none or too many in it.
    """
    from antiphon.core.errors import CallerError
    from antiphon.lab.clips import MOST_CLIPS, SOUNDS

    if not folder.is_dir():
        raise CallerError(f"there is no folder {folder}", hint="name the folder that holds the recordings")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SOUNDS and path.is_file())
    if not 1 <= len(paths) <= MOST_CLIPS:
        raise CallerError(f"{folder} holds {len(paths)} recordings", hint=f"1 to {MOST_CLIPS} of {', '.join(SOUNDS)}")
    return paths


def annotated(folder: Path, paths: Sequence[Path], detector: VoiceDetector, *, kind: str | None) -> Findings:
    """An entry for each recording in which there is speech."""
    from antiphon.core.errors import CallerError

    findings = Findings()
    with Bar("annotating", len(paths)) as step:
        for path in paths:
            name = path.relative_to(folder).as_posix()
            try:
                entry = _entry(folder, path, detector, kind)
            except CallerError as error:
                findings.skipped.append(f"{name}: {error.message}")
            else:
                findings.entries.append(entry)
                if entry.get("doubts"):
                    findings.doubtful.append(f"{name}: {'; '.join(entry['doubts'])}")
            step()
    return findings


def _entry(folder: Path, path: Path, detector: VoiceDetector, kind: str | None) -> dict[str, Any]:
    from antiphon.audio.files import read
    from antiphon.audio.resample import resample
    from antiphon.core.errors import CallerError
    from antiphon.core.flow import HEARING_RATE_HZ
    from antiphon.lab.annotation import annotate

    pcm, rate_hz = read(path)
    duration_s = len(pcm) / rate_hz
    if duration_s > LONGEST_S:
        raise CallerError(f"it lasts {duration_s:.0f} s, which is no single turn", hint="cut it into turns")
    heard = pcm if rate_hz == HEARING_RATE_HZ else resample(pcm, rate_hz, HEARING_RATE_HZ)
    voice, frame = detector.open(), detector.frame_samples
    chances = [voice.probability(heard[pos : pos + frame]) for pos in range(0, len(heard) - frame + 1, frame)]
    found = annotate(heard, HEARING_RATE_HZ, chances, frame / HEARING_RATE_HZ)
    if found is None:
        raise CallerError("there is no speech in it", hint="take it out of the folder")
    relative = path.relative_to(folder)
    entry: dict[str, Any] = {
        "file": relative.as_posix(),
        "kind": kind or (relative.parts[0] if len(relative.parts) > 1 else KIND),
        "duration_s": round(duration_s, 3),
        "speech_start_s": found.speech_start_s,
        "speech_end_s": found.speech_end_s,
        "inner_pauses_s": [list(pause) for pause in found.inner_pauses_s],
    }
    if text := _text_beside(path):
        entry["text"] = text
    if found.doubts:
        entry["doubts"] = list(found.doubts)
    return entry


def _text_beside(path: Path) -> str:
    """The words in the .txt file of the same name, on one line; empty without one.

    Raises:
        CallerError: it cannot be read or is no text.
    """
    from antiphon.core.errors import CallerError

    file = path.with_suffix(".txt")
    if not file.is_file():
        return ""
    try:
        if file.stat().st_size > TEXT_BYTES:
            raise CallerError(f"{file.name} is longer than any turn", hint="it holds what is said, word for word")
        return " ".join(file.read_text(encoding="utf-8-sig").split())
    except (OSError, UnicodeDecodeError) as error:
        raise CallerError(f"{file.name} cannot be read", hint="it must be a text file in UTF-8") from error


def _tell(findings: Findings, path: Path) -> None:
    kinds = sorted({entry["kind"] for entry in findings.entries})
    for kind in kinds:
        of_kind = [entry for entry in findings.entries if entry["kind"] == kind]
        spoken_s = sum(entry["speech_end_s"] - entry["speech_start_s"] for entry in of_kind)
        pauses = sum(len(entry["inner_pauses_s"]) for entry in of_kind)
        print(f"{kind}: {len(of_kind)} recordings, {spoken_s:.1f} s from first to last sound, {pauses} pauses")
    for title, named in (("doubtful", findings.doubtful), ("left out", findings.skipped)):
        for line in named[:SHOWN]:
            print(f"{title}: {line}")
        if len(named) > SHOWN:
            print(f"{title}: {len(named) - SHOWN} more")
    print(f"written: {path}")


# Our own voice.


def _synthesise(arguments: argparse.Namespace) -> int:
    import asyncio

    from antiphon.core.errors import CallerError, check_range
    from antiphon.lab.manifest import refuse_if_there, write_manifest
    from antiphon.lab.synthesis import KINDS, script

    out = getattr(arguments, "out", None)
    if out is None:
        raise CallerError("a synthetic corpus needs a folder", hint="name one with --out")
    check_range("--snr-db", arguments.snr_db, -10, 60)
    seed = getattr(arguments, "seed", 0)
    wanted = [kind.strip() for kind in (getattr(arguments, "kinds", "") or "").split(",") if kind.strip()]
    lines = script(arguments.synthesise, seed=seed, kinds=wanted or KINDS)
    refuse_if_there(out, force=arguments.force)
    voice = getattr(arguments, "voice", None) or VOICE
    entries = asyncio.run(_said(lines, out, voice=voice, snr_db=arguments.snr_db, seed=seed))
    findings = Findings(entries=entries)
    _tell(findings, write_manifest(out, entries))
    print(f"note: synthetic speech by {entries[0]['voice']}; its prosody flatters detectors of turn ends")
    return 0


async def _said(lines: Sequence[Line], out: Path, *, voice: str, snr_db: float, seed: int) -> list[dict[str, Any]]:
    from antiphon.models.store import Store
    from antiphon.scheduling.lanes import ThreadLane
    from antiphon.speak.voices import load_voice

    lane = ThreadLane("voice")
    try:
        mouth = await lane.load(lambda: load_voice(voice, store=Store(), lane=lane, threads=1))
        with Bar("speaking", len(lines)) as step:
            entries = []
            for number, line in enumerate(lines):
                entries.append(await said(line, number, mouth, out, snr_db=snr_db) | {"seed": seed})
                step()
        mouth.close()
    finally:
        lane.close()
    return entries


async def said(line: Line, number: int, mouth: Synthesizer, out: Path, *, snr_db: float) -> dict[str, Any]:
    """Say a line, write its file and return its entry.

    Raises:
        EngineError: the voice failed.
        MachineError: the file cannot be written.
    """
    from antiphon.audio.resample import resample
    from antiphon.core.flow import HEARING_RATE_HZ
    from antiphon.lab.synthesis import NOISY, recorded

    pcm, word_end = await _spoken(line, mouth)
    speech = pcm if mouth.rate_hz == HEARING_RATE_HZ else resample(pcm, mouth.rate_hz, HEARING_RATE_HZ)
    if word_end is not None:
        word_end = round(word_end * HEARING_RATE_HZ / mouth.rate_hz)
    found = recorded(line, speech, word_end, HEARING_RATE_HZ, snr_db=snr_db)
    name = f"{line.kind}_{number:05}.flac"
    _write(out / name, found.pcm)
    entry: dict[str, Any] = {
        "file": name,
        "kind": line.kind,
        "duration_s": round(len(found.pcm) / HEARING_RATE_HZ, 4),
        "speech_start_s": found.speech_start_s,
        "speech_end_s": found.speech_end_s,
        "inner_pauses_s": [list(pause) for pause in found.inner_pauses_s],
        "text": line.text,
        "synthetic": True,
        "voice": mouth.name,
    }
    if line.pause_after is not None:
        entry["pause_after"] = line.text[: line.pause_after].split()[-1]
    if line.kind == NOISY:
        entry |= {"snr_db": snr_db, "noise": ("white", "pink", "brown")[line.colour]}
    return entry


async def _spoken(line: Line, mouth: Synthesizer) -> tuple[Pcm, int | None]:
    """The sound at the voice's rate, and where in it the word before the pause ends; None without a pause."""
    import numpy as np

    from antiphon.core.errors import EngineError
    from antiphon.core.flow import TextChunk

    pieces, word_end, before = [], None, 0
    async for piece in mouth.speak(TextChunk(text=line.text, index=0, start_chars=0, is_last=True)):
        if line.pause_after is not None and word_end is None:
            at = next((sample for sample, chars in piece.marks if chars >= line.pause_after), None)
            word_end = None if at is None else before + at
        pieces.append(piece.pcm)
        before += len(piece.pcm)
    if not pieces or (line.pause_after is not None and word_end is None):
        raise EngineError(f"{mouth.name} did not say a sentence of {len(line.text)} characters", hint="choose another")
    return np.concatenate(pieces), word_end


def _write(path: Path, pcm: Pcm) -> None:
    import soundfile

    from antiphon.core.errors import MachineError
    from antiphon.core.flow import HEARING_RATE_HZ

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, pcm, HEARING_RATE_HZ, format="FLAC", subtype="PCM_16")
    except (OSError, soundfile.SoundFileError) as error:
        raise MachineError(f"{path} cannot be written", hint="name another folder with --out") from error


class Bar:
    """A bar on stderr; nothing where stderr is no terminal. Entering gives the step to call."""

    def __init__(self, name: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True, highlight=False)
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(name, total=total)

    def __enter__(self) -> Callable[[], None]:
        self._bar.start()
        return lambda: self._bar.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
