"""Reply text in, 24 kHz speech out, by the hibari voice: a small ONNX model with its own reading rules for English.

A chunk is read sentence by sentence, one piece each; the pieces' texts lie end to end and make up the chunk.
Threads: `load` blocks for about a second, call it off the loop; `speak` and `warm_up` compute on the lane that they
were given, everything of one voice may run on several of its threads at once.
What it never does: reach for the network. hibari would fetch a voice by itself; here the file is handed in.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from antiphon.audio.level import audible_span
from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import TextChunk
from antiphon.speak.alignment import chars_said
from antiphon.speak.edges import trimmed_piece
from antiphon.speak.on_lane import speak_on
from antiphon.speak.onnx_output import with_output
from antiphon.speak.reading import Utterance, Word, utterances

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    import numpy.typing as npt
    from hibari import Hibari

    from antiphon.core.flow import Pcm, SpeechPiece
    from antiphon.scheduling.lanes import Lane

LONGEST_PHONEMES = 400  # hibari's own bound on an utterance, about 23 s of speech
LONGEST_SLICE_NS = 450 * MILLISECOND_NS  # 359 phonemes took 374-454 ms, 1 thread of a 2-core machine under load
# Reading and synthesis together: 17, 30 and 75 characters took 27, 39 and 57 ms on the same machine.
NS_PER_CHUNK = 10 * MILLISECOND_NS
NS_PER_CHAR = MILLISECOND_NS
NOISE_SEED = 0  # of the breathy part of the sound: with a fixed seed a chunk sounds the same every time

# The model adds up its phonemes' durations inside its graph and gives only the sound. This tensor, (ids,) int64, is
# where each phoneme ends; declared as one more output it costs nothing and puts every word in its place. Against the
# silence at a dozen commas it lies about 50 ms behind the sound, so that no word counts before it was said.
_PHONEME_ENDS = b"/CumSum_output_0"
_PAD_ID = 0  # before and after an utterance
_MARKS = ' ;:,.!?—…"“”()'  # phonemes that have rhythm but no sound of their own


class HibariVoice:
    """A loaded voice."""

    longest_slice_ns = LONGEST_SLICE_NS

    def __init__(self, engine: Hibari, *, lane: Lane) -> None:
        self.name = f"hibari-{engine.voice}"
        self.rate_hz: int = engine.sample_rate
        self._engine = engine
        self._lane = lane
        self._space_id: int = engine.vocab[" "]

    @classmethod
    def load(cls, path: Path | None, *, voice: str = "heart", lane: Lane, threads: int = 1) -> Self:
        """Load the voice from `path`, or the one inside hibari's own package if that is None.

        `voice` chooses the accent that text is read in.

        Raises:
            CallerError: no such voice, no such file, or not a model.
        """
        from hibari import Hibari  # noqa: PLC0415 - heavy, and only who speaks needs it

        file = _model_file(path, voice)
        try:
            model = file.read_bytes()
            engine = Hibari(model=with_output(model, _PHONEME_ENDS), voice=voice, threads=threads)
        except OSError as error:
            raise CallerError(f"cannot read the voice at {file}: {error.strerror}", hint="check the path") from error
        except Exception as error:  # onnxruntime's errors have no common root of their own
            hint = "fetch it again, or check that it is a hibari voice"
            raise CallerError(f"{file} is not a voice: {type(error).__name__}", hint=hint) from error
        if not {"ids", "speed"} <= {entry.name for entry in engine.sess.get_inputs()}:
            raise CallerError(f"{file} is a model, but not a voice", hint="check that it is a hibari voice")
        _ = engine.g2p.oov  # loads the reading rules and the net for unknown words, both lazy
        return cls(engine, lane=lane)

    def speak(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None]:
        """As `Synthesizer.speak`; one piece per sentence.

        Raises:
            EngineError: the voice cannot read the text, or the model failed.
        """
        estimate_ns = NS_PER_CHUNK + len(chunk.text) * NS_PER_CHAR
        return speak_on(self._lane, self._pieces(chunk), chunk, name=self.name, estimate_ns=estimate_ns)

    async def warm_up(self) -> None:
        """Pay for the first run of the model and of the transforms behind it."""
        async for _ in self.speak(TextChunk(text="One moment, please.", index=0, start_chars=0, is_last=True)):
            pass

    def close(self) -> None:
        """Nothing to free before the voice itself is; the lane is its giver's to close."""

    def _pieces(self, chunk: TextChunk) -> Iterator[SpeechPiece]:
        found = self._read(chunk.text)
        if not found and any(map(str.isalnum, chunk.text)):
            message = f"{self.name} knows no sound for any of the {len(chunk.text)} characters of a chunk"
            raise EngineError(message, hint="choose a voice of the text's language")
        borders = [0, *(utterance.start for utterance in found[1:]), len(chunk.text)]
        for number, utterance in enumerate(found, 1):
            start, end = borders[number - 1 : number + 1]
            part = TextChunk(
                text=chunk.text[start:end],
                index=chunk.index,
                start_chars=chunk.start_chars + start,
                is_last=chunk.is_last and number == len(found),
            )
            yield self._piece(utterance, part, chunk.start_chars)

    def _read(self, text: str) -> list[Utterance]:
        """The utterances of `text`: its sentences, without those that have nothing to say."""
        found: list[Utterance] = []
        position = 0
        for sentence in self._engine.split_sentences(text):
            start = text.index(sentence, position)
            position = start + len(sentence)
            if any(map(str.isalnum, sentence)):
                words = self._words(sentence, start)
                found += utterances(words, start=start, space_id=self._space_id, longest=LONGEST_PHONEMES)
        return found

    def _words(self, sentence: str, start: int) -> list[Word]:
        """`sentence`, which begins at `start` of the chunk, as hibari reads it."""
        from hibari.g2p import normalize  # noqa: PLC0415

        g2p, vocab = self._engine.g2p, self._engine.vocab
        readings: list[tuple[str, str]] = []  # (text, phonemes)
        text = phonemes = ""
        for token in g2p.phonemize_tokens(g2p.tokenize(normalize(sentence))):
            text += token.text
            phonemes += token.phonemes or ""
            if token.whitespace:
                readings.append((text, phonemes))
                text = phonemes = ""
        readings.append((text, phonemes))
        words = []
        for (_, phonemes), said in zip(readings, chars_said(sentence, [text for text, _ in readings]), strict=True):
            known = "".join(phoneme for phoneme in phonemes if phoneme in vocab)
            sounding = len(known.rstrip(_MARKS))
            words.append(
                Word(
                    ids=tuple(vocab[phoneme] for phoneme in known),
                    sounding=sounding,
                    said=None if said is None else start + said,
                    ends_clause=known.endswith((",", ";", ":", "—")),
                )
            )
        return [word for word in words if word.ids]

    def _piece(self, utterance: Utterance, part: TextChunk, chunk_start: int) -> SpeechPiece:
        pcm, phoneme_ends = self._synthesise(utterance.ids)
        span = audible_span(pcm, self.rate_hz)
        if span[1] <= span[0]:
            raise EngineError(f"{self.name} gave {len(pcm)} samples of silence for {len(utterance.ids)} phonemes")
        if phoneme_ends is None:
            phoneme_ends = np.linspace(*span, len(utterance.ids) + 1)[1:]
        ends = [(float(phoneme_ends[count - 1]), chunk_start + said) for count, said in utterance.ends]
        return trimmed_piece(pcm, self.rate_hz, part, span=span, ends=ends)

    def _synthesise(self, ids: Sequence[int]) -> tuple[Pcm, npt.NDArray[np.float64] | None]:
        """The sound of the phonemes, silence around it included, and the samples at which each of them ends.

        The latter is None if the model does not tell.
        """
        from hibari import dsp  # noqa: PLC0415

        padded = np.asarray([[_PAD_ID, *ids, _PAD_ID]], np.int64)  # (1, phonemes + 2)
        outputs = self._engine.sess.run(None, {"ids": padded, "speed": np.ones(1, np.float32)})
        spectrum = [output[0] for output in outputs[:6]]  # five of (601, frames), one of (frames,)
        pcm = dsp.synth(*spectrum, np.random.default_rng(NOISE_SEED))  # (samples,) f32
        if not np.isfinite(pcm).all():
            raise EngineError(f"{self.name} gave sound that is not finite for {len(ids)} phonemes")
        if len(outputs) == 6:
            return pcm, None
        ends = outputs[6].reshape(-1)  # (phonemes + 2,) in the model's own steps of 25 ms
        return pcm, ends[1:-1] * (len(pcm) / ends[-1])


def _model_file(path: Path | None, voice: str) -> Path:
    from hibari.voices import ASSETS, VOICES  # noqa: PLC0415

    if voice not in VOICES:
        near = get_close_matches(voice, VOICES, n=1, cutoff=0.0)[0]
        raise CallerError(f"there is no voice {voice!r}", hint=f"did you mean {near!r}? There are {', '.join(VOICES)}")
    if path is not None:
        return path
    if not VOICES[voice].get("bundled"):
        raise CallerError(f"the voice {voice!r} is not part of hibari's package", hint="say where its file is")
    return Path(ASSETS, VOICES[voice]["file"])
