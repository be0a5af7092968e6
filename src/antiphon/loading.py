"""The chosen models and the plan in -> the engines, loaded side by side, each on a lane of its own, out.

Each engine loads on its lane's thread, so that the threads that its library starts are as nice as the lane is.
Threads: the event loop; reading models takes place on the lanes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from antiphon.core.clock import MILLISECOND_NS
from antiphon.gpu.machine import why_no_cuda
from antiphon.hardware.plan import Role
from antiphon.scheduling.cpu_lanes import CpuScheduler
from antiphon.scheduling.lanes import ThreadLane
from antiphon.scheduling.ticket import LaneFacts
from antiphon.session import Engines
from antiphon.think.chat_address import is_address

if TYPE_CHECKING:
    from antiphon.config import Config
    from antiphon.core.clock import Clock
    from antiphon.gpu.engine_lane import Gpu
    from antiphon.hardware.plan import Plan
    from antiphon.hardware.stage_plans import StagePlan
    from antiphon.hear.prosody import ProsodyJudge
    from antiphon.hear.recognizer import Recognizer
    from antiphon.hear.voice_detector import VoiceDetector
    from antiphon.models.store import Store
    from antiphon.scheduling.lanes import Lane
    from antiphon.scheduling.shares import Signs
    from antiphon.speak.synthesizer import Synthesizer
    from antiphon.think.language_model import LanguageModel

    _Loaded: TypeAlias = tuple[
        VoiceDetector, ProsodyJudge | None, Recognizer, Recognizer | None, LanguageModel, Synthesizer
    ]


_LOG = logging.getLogger(__name__)
_SENSE_EVERY_NS = 10 * MILLISECOND_NS  # however many callers speak


@dataclass(slots=True, kw_only=True)
class Lanes:
    """A lane for each engine that computes here, and who decides between them; None: nobody does."""

    scheduler: CpuScheduler | None
    by_role: dict[Role, Lane] = field(default_factory=dict)
    gpu: Gpu | None = None  # once an engine on one is loaded
    _sense_ns: int = field(default=0, init=False)  # when the GPU is to be told of the moment again

    @classmethod
    def of(cls, plan: Plan, config: Config, clock: Clock) -> Lanes:
        """The lanes as the plan has them."""
        if not config.scheduling.enabled:
            lanes = cls(scheduler=None)
            for facts in lane_facts(plan):
                threads = _width_on(plan, facts)
                lanes.by_role[Role(facts.name)] = ThreadLane(facts.name, threads=threads)
            return lanes
        # As stages' threads are counted: a second thread of a core is no place for dense arithmetic, so an engine that
        # is planned on all four cores of a laptop has no room beside it, though the system counts eight.
        scheduler = CpuScheduler(config.scheduling, cores=max(1, int(plan.computing_cores)), clock=clock)
        lanes = cls(scheduler=scheduler)
        for facts in lane_facts(plan):
            role = Role(facts.name)
            if is_on_gpu(plan, role):  # its threads wait for the GPU and take no core from anybody
                if role is Role.LANGUAGE_MODEL:  # the engine itself puts its callers together
                    lanes.by_role[role] = ThreadLane(facts.name, threads=facts.width)
                else:
                    lanes.by_role[role] = scheduler.lane(
                        replace(facts, cores=0, width=_width_on(plan, facts)), cores=plan.stage(role).cores
                    )
            else:
                lanes.by_role[role] = scheduler.lane(facts, cores=plan.stage(role).cores)
        return lanes

    def hears(self, caller: int, signs: Signs) -> None:
        """What a caller's microphone gives just now: it moves the shares of the cores, and of the GPU's parts."""
        if self.scheduler is None:
            return
        self.scheduler.hears(caller, signs)
        if self.gpu is not None and time.monotonic_ns() >= self._sense_ns:
            self._sense_ns = time.monotonic_ns() + _SENSE_EVERY_NS
            self.gpu.lane.sense(self.scheduler.signs())

    def close(self) -> None:
        """Accept no more work."""
        for lane in self.by_role.values():
            lane.close()
        if self.gpu is not None:
            self.gpu.close()


def is_on_gpu(plan: Plan, role: Role) -> bool:
    """Whether the plan has the stage on a GPU of this machine."""
    return plan.stage(role).device.startswith("cuda")


def _width_on(plan: Plan, facts: LaneFacts) -> int:
    """Calls at once: one, where a model's buffers lie on a GPU, since its batches take the place of more."""
    role = Role(facts.name)
    return 1 if is_on_gpu(plan, role) and role is not Role.LANGUAGE_MODEL else facts.width


def on_usable_device(config: Config) -> tuple[Config, str]:
    """The settings with a device that can be used, and why it is another than the one asked for; "" if it is not.

    Importing torch takes seconds, so it is done only where a GPU is asked for.
    """
    if config.gpu.device != "cuda":
        return config, ""
    reason = why_no_cuda()
    return (replace(config, gpu=replace(config.gpu, device="cpu")), reason) if reason else (config, "")


def settled_device(config: Config) -> Config:
    """The settings with a device that can be used; says so in the log if that is another than was asked for."""
    usable, reason = on_usable_device(config)
    if reason:
        _LOG.warning("no GPU is used: %s; everything computes on the processor", reason)
    return usable


def lane_facts(plan: Plan) -> tuple[LaneFacts, ...]:
    """What the policy is to know of each lane."""
    quick = (Role.QUICK_RECOGNIZER,) if plan.has_quick_recognizer else ()
    return tuple(
        LaneFacts(
            name=str(role),
            # The model computes all its replies as one batch. A call more is one that makes way for the next.
            width=2 * plan.callers if role is Role.LANGUAGE_MODEL else plan.stage(role).width,
            cores=plan.stage(role).threads,
            shares_cores=role is Role.LANGUAGE_MODEL,
            nice=plan.stage(role).nice,
        )
        for role in (Role.RECOGNIZER, *quick, Role.PROSODY, Role.LANGUAGE_MODEL, Role.VOICE)
    )


async def load_engines(config: Config, store: Store, plan: Plan, lanes: Lanes) -> Engines:
    """Load them all.

    Raises: as `Runtime.load`.
    """
    models, lane = config.models, lanes.by_role
    threads = {role: plan.stage(role).threads for role in lane}
    lanes.gpu = gpu = await asyncio.to_thread(_open_gpu, config, plan)

    def voice_detector() -> VoiceDetector:
        from antiphon.hear.silero import SileroDetector  # noqa: PLC0415 - each engine's library loads in its thread

        return SileroDetector.load(store.file(models.voice_detector))

    def prosody() -> ProsodyJudge | None:
        if not models.prosody:
            return None
        from antiphon.hear.smart_turn import SmartTurnJudge  # noqa: PLC0415

        return SmartTurnJudge.load(store.file(models.prosody), lane=lane[Role.PROSODY], threads=threads[Role.PROSODY])

    async def recognizer(name: str, role: Role) -> Recognizer | None:
        if not name:
            return None
        return await lane[role].load(partial(_recognizer, name, config, store, lane[role], plan.stage(role), gpu))

    def voice() -> Synthesizer:
        from antiphon.speak.voices import load_voice  # noqa: PLC0415

        return load_voice(models.voice, store=store, lane=lane[Role.VOICE], threads=threads[Role.VOICE])

    loading = (
        asyncio.to_thread(voice_detector),  # it computes on the event loop
        lane[Role.PROSODY].load(prosody),
        recognizer(models.recognizer, Role.RECOGNIZER),
        recognizer(models.quick_name, Role.QUICK_RECOGNIZER),
        lane[Role.LANGUAGE_MODEL].load(partial(_language_model, config, store, plan, lane[Role.LANGUAGE_MODEL], gpu)),
        lane[Role.VOICE].load(voice),
    )
    loaded = await asyncio.gather(*loading, return_exceptions=True)
    failures = [each for each in loaded if isinstance(each, BaseException)]
    if failures:
        for each in loaded:
            if each is not None and not isinstance(each, BaseException):
                each.close()
        raise failures[0]
    if gpu is not None:  # all weights are in place: captures run by themselves
        await asyncio.to_thread(gpu.prepare)
    detector, judge, ears, quick_ears, mind, mouth = cast("_Loaded", tuple(loaded))
    return Engines(
        voice_detector=detector,
        prosody=judge,
        recognizer=ears,
        quick_recognizer=quick_ears,
        language_model=mind,
        synthesizer=mouth,
    )


def _open_gpu(config: Config, plan: Plan) -> Gpu | None:
    """The GPU that the plan has stages on, shared as it says; None if none is.

    Raises:
        MachineError: torch does not see it.
    """
    name = next((stage.device for stage in plan.stages if stage.device.startswith("cuda")), None)
    if name is None:
        return None
    from antiphon.gpu.engine_lane import open_gpu  # noqa: PLC0415 - imports torch there

    shared = next((each for each in plan.gpus if each.device == name), None)
    return open_gpu(
        name,
        rules=config.scheduling,
        gpu=config.gpu,
        reply_batch=shared.reply_batch if shared else 0,
        context_bytes=shared.context_bytes if shared else None,
    )


def _language_model(config: Config, store: Store, plan: Plan, lane: Lane, gpu: Gpu | None) -> LanguageModel:
    name = config.models.language_model
    if is_address(name):
        from antiphon.think.chat_server import ChatServer  # noqa: PLC0415

        return ChatServer.load(name, settings=config.chat_server)
    path = Path(name).expanduser() if name.endswith(".gguf") or is_folder(name) else store.file(name)
    if gpu is not None and is_on_gpu(plan, Role.LANGUAGE_MODEL):
        from antiphon.think.llama_torch import load_torch_model  # noqa: PLC0415

        return load_torch_model(
            path,
            lane=lane,
            conversations=plan.callers,
            context_tokens=config.capacity.context_tokens,
            settings=config.llama,
            gpu=gpu,
        )
    from antiphon.think.llama import LlamaModel  # noqa: PLC0415

    return LlamaModel.load(
        path,
        lane=lane,
        threads=plan.stage(Role.LANGUAGE_MODEL).threads,
        conversations=plan.callers,
        context_tokens=config.capacity.context_tokens,
        settings=config.llama,
    )


def is_folder(name: str) -> bool:
    """Whether a language model's name is a folder's path; names of the catalogue hold no slash."""
    return "/" in name and Path(name).expanduser().is_dir()


def _recognizer(
    name: str, config: Config, store: Store, lane: Lane, stage: StagePlan, gpu: Gpu | None = None
) -> Recognizer:
    from antiphon.hear.recognizers import load_recognizer  # noqa: PLC0415 - in the lane's thread, as the others
    from antiphon.hear.whisper_settings import own_folder  # noqa: PLC0415

    return load_recognizer(
        own_folder(name) or store.locate(name),
        lane=lane,
        threads=stage.threads,
        gpu=gpu if stage.device.startswith("cuda") else None,
        whisper=config.whisper,
        moonshine=config.moonshine,
    )
