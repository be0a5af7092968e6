"""The models that a conversation needs, loaded and shared."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.hear.prosody import ProsodyJudge
    from antiphon.hear.recognizer import Recognizer
    from antiphon.hear.voice_detector import VoiceDetector
    from antiphon.speak.synthesizer import Synthesizer
    from antiphon.think.language_model import LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """One of each; the prosody judge and the quick recognizer can be done without."""

    voice_detector: VoiceDetector
    recognizer: Recognizer
    language_model: LanguageModel
    synthesizer: Synthesizer
    prosody: ProsodyJudge | None = None
    quick_recognizer: Recognizer | None = None

    async def warm_up(self) -> None:
        """Pay now for whatever only a first call pays for, so that turn one is as fast as turn ten."""
        warming = [self.recognizer.warm_up(), self.language_model.warm_up(), self.synthesizer.warm_up()]
        warming += [engine.warm_up() for engine in (self.prosody, self.quick_recognizer) if engine is not None]
        await asyncio.gather(*warming)

    def close(self) -> None:
        """Free them all."""
        ears = (self.voice_detector, self.recognizer, self.quick_recognizer, self.prosody)
        for engine in (*ears, self.language_model, self.synthesizer):
            if engine is not None:
                engine.close()
