"""An agent and a configuration in -> what a server serves: names, models to load, conversations' settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.serve.metrics import Metrics
from antiphon.serve.reception import Offer
from antiphon.serve.server import House
from antiphon.think.chat_address import is_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.agent import Agent
    from antiphon.config import Config


def build(agent: Agent, config: Config, *, name: str, reread: Callable[[], Config] | None = None) -> House:
    """What `agent` offers under `name` and under its language model's name; `reread` gives the settings anew."""
    from antiphon.serve.protocol import pick_up  # noqa: PLC0415

    config = agent.configured(config)
    return House(
        offer=Offer(
            models=tuple(dict.fromkeys((name, language_model_name(config)))),
            voices=(config.models.voice,),
            language=config.whisper.language,
            settings=lambda runtime: agent.settings(runtime, config),
        ),
        config=config,
        load=lambda: agent.load(config),
        pick_up=pick_up,
        metrics=Metrics(),
        reread=reread,
    )


def language_model_name(config: Config) -> str:
    """What clients may call the language model: no path and no address, which are nobody else's business."""
    name = config.models.language_model
    if is_address(name):
        return config.chat_server.model or "language-model"
    return Path(name).stem if name.endswith(".gguf") else name
