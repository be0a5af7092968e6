"""A word in, the way an address is said out: `example.com/menu` -> "example dot com slash menu".

An address's scheme, query and fragment are left out, and a path that nobody could take down by ear. The words for
its marks exist in a few languages; in any other an address is left to the voice. Threads: pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_PATH = 40  # characters
_MARKS = "./@-_"
_WORDS: Mapping[str, tuple[str, ...]] = {
    "de": ("Punkt", "Schrägstrich", "at", "Bindestrich", "Unterstrich"),
    "en": ("dot", "slash", "at", "dash", "underscore"),
    "es": ("punto", "barra", "arroba", "guion", "guion bajo"),
    "fr": ("point", "barre oblique", "arobase", "tiret", "tiret bas"),
    "it": ("punto", "barra", "chiocciola", "trattino", "trattino basso"),
    "nl": ("punt", "schuine streep", "apenstaartje", "streepje", "laag streepje"),
    "pt": ("ponto", "barra", "arroba", "hífen", "sublinhado"),
}
_ENGLISH_MARKS = {"+": "plus", "~": "tilde", "=": "equals", "&": "and", "%": "percent", ":": "colon", "#": "hash"}

_COMMON_ENDINGS = (
    "ai app at au be biz br ca ch cloud cn co com cz de dev dk edu es eu fi fr gov gr hk hu ie in info io it jp kr me "
    "mil mx net nl no nz online org pl pt ru se sg shop site store tech to tr tv tw ua uk us xyz za"
)
_TOP_LEVEL = frozenset(_COMMON_ENDINGS.split())
_SCHEME = re.compile(r"(?:https?|ftp|wss?)://|mailto:", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*)\.)+([a-z]{2,})(?::\d+)?", re.IGNORECASE | re.ASCII)
_DOTTED = re.compile(r"(?=[0-9_-]*[A-Za-z])[A-Za-z0-9_-]+\.[a-z][a-z0-9]+|\.[a-z][a-z0-9]+", re.ASCII)  # main.py, .env
_PIECES = re.compile(r"[^\W_]+|.")


def read_address(word: str, language: str) -> str | None:
    """How `word` is said if it is an address or a file's name, else None. No marks around it."""
    if language not in _WORDS:
        return None
    scheme = _SCHEME.match(word)
    rest = word[scheme.end() :] if scheme else word
    if _MAIL.fullmatch(rest):
        return _spell(rest, language)
    bare = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = bare.partition("/")
    known = _HOST.fullmatch(host)
    if scheme or (known and (known.group(1).lower() in _TOP_LEVEL or host.lower().startswith("www."))):
        path = path.rstrip("/")
        return _spell(f"{host}/{path}" if slash and 0 < len(path) <= _LONGEST_PATH else host, language)
    return _spell(word, language) if _DOTTED.fullmatch(word) else None


def _spell(address: str, language: str) -> str:
    words = dict(zip(_MARKS, _WORDS[language], strict=True)) | (_ENGLISH_MARKS if language == "en" else {})
    return " ".join(words.get(piece, piece) for piece in _PIECES.findall(address))
