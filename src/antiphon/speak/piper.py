"""Reply text in, speech out, by a Piper voice: a VITS model as ONNX, and espeak-ng's rules for many languages.

The one file that imports piper-tts, which is GPL-3.0-or-later and no part of the base install. Voices are files with
licences of their own: NAME.onnx with NAME.onnx.json beside it.
A chunk is read sentence by sentence, one piece each; the pieces' texts lie end to end and make up the chunk.
Threads: `load` blocks for about a second, call it off the loop; `speak` and `warm_up` compute on the lane that they
were given. espeak-ng reads one text at a time in a process, Piper holds a lock for it.
What it never does: reach for the network, which Piper does for languages that espeak-ng does not read well; voices
that need this are refused. Nor does it call `synthesize`, which would write what is said into a debug log.
"""

from __future__ import annotations

import json
import re
import unicodedata
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from antiphon.audio.level import audible_span
from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, EngineError, MachineError
from antiphon.core.flow import SpeechPiece, TextChunk
from antiphon.speak.edges import trimmed_piece
from antiphon.speak.on_lane import speak_on
from antiphon.speak.onnx_output import with_output
from antiphon.speak.sentences import spans
from antiphon.speak.voices import INSTALL_PIPER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from antiphon.core.flow import Pcm
    from antiphon.scheduling.lanes import Lane

LONGEST_CHARS = 120  # said in one go; about 7 s
LONGEST_WORD_PHONEMES = 190  # espeak-ng stops at 200 of one word, and says nothing of what it left out
LONGEST_SLICE_NS = 1_400 * MILLISECOND_NS  # 118 characters took 1.0-1.4 s, 1 thread of a 2-core machine under load
# Reading and synthesis together: 19, 45 and 118 characters took 264, 428 and 995 ms on the same machine.
NS_PER_CHUNK = 120 * MILLISECOND_NS
NS_PER_CHAR = 7_500_000

_READ_OFFLINE = ("espeak", "text")
_DURATIONS = re.compile(rb"/[A-Za-z0-9_/.]*Ceil_output_0")  # steps of each phoneme; VITS rounds them up once
_RAW = "[]{}"  # Piper takes what stands in double brackets for phonemes
_MARKUP = "*_`~|^<>\\"
_JOINERS = "\u200d\ufe0e\ufe0f"
_TITLE_DOT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs)\.(?=\s)")  # espeak-ng would end a sentence there
_UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SILENT = "ˈˌː"  # letters in Unicode's eyes, but no sound of their own
_FIRST_ID = 2  # before a sentence's phonemes: its beginning, and the pause that lies between any two


class PiperVoice:
    """A loaded voice."""

    longest_slice_ns = LONGEST_SLICE_NS

    def __init__(self, engine: Any, *, name: str, lane: Lane) -> None:
        from piper import SynthesisConfig  # noqa: PLC0415

        self.name = name
        self.rate_hz: int = engine.config.sample_rate
        self._engine = engine
        self._lane = lane
        # Without noise a chunk sounds the same every time. With it, the model draws afresh at every call.
        self._how = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)

    @classmethod
    def load(cls, path: Path, *, name: str = "", lane: Lane, threads: int = 1) -> Self:
        """Load the voice from `path`, its settings from the file beside it whose name ends in .onnx.json.

        Raises:
            MachineError: piper-tts is not installed.
            CallerError: a file is missing, is no Piper voice, or needs the network to read its language.
        """
        settings = _settings(path)
        kind = settings.get("phoneme_type", "espeak")
        if kind not in _READ_OFFLINE:
            hint = "choose a voice whose .onnx.json has the phoneme_type espeak or text"
            raise CallerError(f"{path.name} reads by {kind!r}, which needs more than Piper itself", hint=hint)
        try:
            import piper  # noqa: PLC0415 - heavy, GPL, and only who chose this voice needs it
            from piper.config import PiperConfig  # noqa: PLC0415
        except ImportError as error:
            raise MachineError("piper-tts is not installed", hint=INSTALL_PIPER) from error
        try:
            engine = piper.PiperVoice(session=_session(path, threads), config=PiperConfig.from_dict(settings))
            inputs = {entry.name for entry in engine.session.get_inputs()}
        except OSError as error:
            raise CallerError(f"cannot read the voice at {path}: {error.strerror}", hint="check the path") from error
        except Exception as error:  # onnxruntime's errors have no common root of their own
            hint = "fetch it again, or check that it is a Piper voice"
            raise CallerError(f"{path} is not a voice: {type(error).__name__}", hint=hint) from error
        if not {"input", "input_lengths", "scales"} <= inputs:
            raise CallerError(f"{path} is a model, but not a voice", hint="check that it is a Piper voice")
        return cls(engine, name=name or f"piper:{path.stem}", lane=lane)

    def speak(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None]:
        """As `Synthesizer.speak`; one piece per sentence.

        Raises:
            EngineError: the voice cannot read the text, or the model failed.
        """
        estimate_ns = NS_PER_CHUNK + len(chunk.text) * NS_PER_CHAR
        return speak_on(self._lane, self._pieces(chunk), chunk, name=self.name, estimate_ns=estimate_ns)

    async def warm_up(self) -> None:
        """Pay for the first reading and the first run of the model."""
        async for _ in self.speak(TextChunk(text="One moment, please.", index=0, start_chars=0, is_last=True)):
            pass

    def close(self) -> None:
        """Nothing to free before the voice itself is; the lane is its giver's to close."""

    def _pieces(self, chunk: TextChunk) -> Iterator[SpeechPiece]:
        found = spans(chunk.text, longest=LONGEST_CHARS)
        for number, (start, end) in enumerate(found, 1):
            part = TextChunk(
                text=chunk.text[start:end],
                index=chunk.index,
                start_chars=chunk.start_chars + start,
                is_last=chunk.is_last and number == len(found),
            )
            yield self._piece(part)

    def _piece(self, part: TextChunk) -> SpeechPiece:
        text = readable(part.text)
        phonemes = self._phonemes(text)
        if not any(map(is_sounding, phonemes)):
            message = f"{self.name} knows no sound for any of {len(part.text)} characters"
            raise EngineError(message, hint="choose a voice of the text's language")
        words = self._words(part.text, text)
        pcm, phoneme_ends = self._synthesise(phonemes)
        span = audible_span(pcm, self.rate_hz)
        if span[1] <= span[0]:
            raise EngineError(f"{self.name} gave {len(pcm)} samples of silence for {len(phonemes)} phonemes")
        if phoneme_ends is None:  # a word's share of the phonemes is its share of the time, which is only an estimate
            phoneme_ends = np.linspace(*span, len(phonemes) + 1)[1:]
        ends = [
            (float(phoneme_ends[count - 1]), part.start_chars + said)
            for (said, _), count in zip(words, word_ends([word for _, word in words], phonemes), strict=True)
            if count
        ]
        return trimmed_piece(pcm, self.rate_hz, part, span=span, ends=ends)

    def _phonemes(self, text: str) -> list[str]:
        """What espeak-ng takes for sentences is said in one go: where a sentence ends was decided before."""
        phonemes: list[str] = []
        for sentence in self._engine.phonemize(text):
            phonemes += [" ", *sentence] if phonemes and sentence else sentence
        return phonemes

    def _words(self, written: str, text: str) -> list[tuple[int, list[str]]]:
        """Each word of `written`, or Han character: where it ends, and how `text`, which is read for it, is read alone.

        Raises:
            EngineError: one is so long that part of it would be lost.
        """
        words = []
        for match in _UNIT.finditer(written):
            alone = self._phonemes(text[slice(*match.span())]) if any(map(str.isalnum, match.group())) else []
            if len(alone) > LONGEST_WORD_PHONEMES:
                raise EngineError(f"{self.name} cannot say a word of {len(match.group())} characters")
            words.append((match.end(), alone))
        return words

    def _synthesise(self, phonemes: Sequence[str]) -> tuple[Pcm, npt.NDArray[np.float64] | None]:
        """The sound of the phonemes, silence around it included, and the samples at which each of them ends.

        The latter is None if the model does not tell.
        """
        ids = self._engine.phonemes_to_ids(list(phonemes))
        pcm, durations = self._engine.phoneme_ids_to_audio(ids, self._how, include_alignments=True)
        if not np.isfinite(pcm).all():
            raise EngineError(f"{self.name} gave sound that is not finite for {len(ids)} phonemes")
        if durations is None or durations.shape != (len(ids),) or not durations.sum():
            return pcm, None
        ends = np.cumsum(durations) * (len(pcm) / durations.sum())  # (ids,) samples
        table = self._engine.config.phoneme_id_map
        counts = [len(table[phoneme]) + 1 if phoneme in table else 0 for phoneme in phonemes]  # and the pause behind
        last = np.cumsum(counts) + (_FIRST_ID - 1)  # (phonemes,) the id that each one ends with
        if int(last[-1]) != len(ids) - 2:
            return pcm, None  # this voice does not put a pause between phonemes
        return pcm, ends[last]


def readable(text: str) -> str:
    """`text` without what espeak-ng would read out though no person would, each character replaced by a space."""
    text = _TITLE_DOT.sub(lambda match: match.group().replace(".", " "), text)
    return "".join(" " if _is_unread(character) else character for character in text)


def is_sounding(phoneme: str) -> bool:
    """Whether it has a sound of its own, as no mark, space or stress has."""
    return phoneme not in _SILENT and unicodedata.category(phoneme[0])[0] in "LN"


def word_ends(words: Sequence[Sequence[str]], phonemes: Sequence[str]) -> list[int]:
    """For each word, read alone, how many of the whole's `phonemes` have been said at its end; 0 if it has none.

    In company words change a little and some grow together, so both are laid side by side. Where they differ,
    a word's end lies as far in as it lies in the words' own readings.
    """
    said = [place for place, phoneme in enumerate(phonemes) if is_sounding(phoneme)]
    alone = [[phoneme for phoneme in word if is_sounding(phoneme)] for word in words]
    matcher = SequenceMatcher(
        None, [phoneme for word in alone for phoneme in word], [phonemes[place] for place in said], autojunk=False
    )
    opcodes = matcher.get_opcodes()
    result = []
    border = 0
    for word in alone:
        border += len(word)
        _, first, last, start, end = next(code for code in opcodes if border <= code[2]) if word else ("", 0, 0, 0, 0)
        reached = start + round((border - first) / max(last - first, 1) * (end - start))
        result.append(said[reached - 1] + 1 if reached else 0)
    return result


def _is_unread(character: str) -> bool:
    if character in _RAW or character in _MARKUP or character in _JOINERS:
        return True
    return unicodedata.category(character) in {"So", "Sk", "Cn", "Co"} and character != "°"


def _settings(path: Path) -> dict[str, Any]:
    beside = path.with_name(f"{path.name}.json")
    if not path.is_file():
        raise CallerError(f"there is no voice at {path}", hint="check the path; it ends in .onnx")
    try:
        settings = json.loads(beside.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = f"a Piper voice is two files: put {beside.name} beside it"
        raise CallerError(f"{path} has no {beside.name}", hint=hint) from error
    except (OSError, ValueError) as error:
        raise CallerError(f"cannot read {beside}: {type(error).__name__}", hint="fetch it again") from error
    if not isinstance(settings, dict) or not {"audio", "phoneme_id_map", "num_symbols"} <= settings.keys():
        raise CallerError(f"{beside} does not describe a voice", hint="fetch it again")
    return settings


def _session(path: Path, threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other engines need the cores meanwhile
    model = path.read_bytes()
    names = set(_DURATIONS.findall(model))
    if len(names) == 1:
        model = with_output(model, names.pop())
    return onnxruntime.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])
