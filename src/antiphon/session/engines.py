"""The five models that a conversation needs, loaded and shared."""

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
    """One of each; only the prosody judge can be done without."""

    voice_detector: VoiceDetector
    recognizer: Recognizer
    language_model: LanguageModel
    synthesizer: Synthesizer
    prosody: ProsodyJudge | None = None

    async def warm_up(self) -> None:
        """Pay now for whatever only a first call pays for, so that turn one is as fast as turn ten."""
        warming = [self.recognizer.warm_up(), self.language_model.warm_up(), self.synthesizer.warm_up()]
        if self.prosody is not None:
            warming.append(self.prosody.warm_up())
        await asyncio.gather(*warming)

    def close(self) -> None:
        """Free them all."""
        for engine in (self.voice_detector, self.recognizer, self.language_model, self.synthesizer, self.prosody):
            if engine is not None:
                engine.close()
