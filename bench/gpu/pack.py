"""Puts together what a machine without a network needs to check the engines with real weights: models, clips, wheels.

One compressed archive under .gpu-parts/, cut into parts of 52 MiB, for machines that take so much at a time. Wherever
`engines.py` runs, the parts have to lie side by side in one folder; it unpacks them itself:

    python bench/gpu/pack.py                     # here, with the package and its default models installed
    ls .gpu-parts                                # part.0, part.1, ...
    python bench/gpu/engines.py --parts FOLDER   # there, with all parts in FOLDER

Beside the default language model's file and Whisper tiny.en, whole and as they are, the archive holds the sound of
twenty clips of a corpus of 16 kHz FLAC files, and what CTranslate2 makes of them in float32, for comparison.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

PART_BYTES = 52 * 2**20
CLIPS = 20
WHEELS = ("gguf==0.19.0",)


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--corpus", type=Path, default=Path("../shared/corpus/barista"), help="a folder of FLAC files")
    args.add_argument("--out", type=Path, default=Path(".gpu-parts"))
    asked = args.parse_args()
    archive = pack(asked.corpus)
    asked.out.mkdir(exist_ok=True)
    for old in asked.out.glob("part.*"):
        old.unlink()
    for number, start in enumerate(range(0, len(archive), PART_BYTES)):
        part = asked.out / f"part.{number}"
        part.write_bytes(archive[start : start + PART_BYTES])
        print(f"{part}  {part.stat().st_size / 2**20:.1f} MiB")


def pack(corpus: Path) -> bytes:
    """The archive."""
    from antiphon.models.store import Store

    store = Store()
    packed = io.BytesIO()
    with lzma.LZMAFile(packed, "w", preset=1) as squeezed, tarfile.open(fileobj=squeezed, mode="w") as tar:
        tar.add(store.file("smollm2-135m-instruct-q4_1"), "language-model.gguf")
        whisper = store.locate("whisper-tiny.en")
        for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"):
            tar.add(whisper / name, f"whisper/{name}")
        with tempfile.TemporaryDirectory() as folder:
            clips = Path(folder) / "clips.npz"
            save_clips(corpus, whisper, clips)
            tar.add(clips, "clips.npz")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, *WHEELS]
            subprocess.run(command, check=True)
            for wheel in Path(folder).glob("*.whl"):
                tar.add(wheel, f"wheels/{wheel.name}")
    return packed.getvalue()


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
