"""Everything that moves a conversation, in one table: what is known and what happens decide what comes next.

`step` looks a stimulus up under the present phase. What has no entry changes nothing: it is either stale (a result
of a draft that was dropped) or says nothing new (a voice that stops while nobody listens). Each rule names the
phases it may lead to; the diagram in docs/architecture.md is drawn from this table, and a test holds the rules to it.

A turn goes LISTENING -> HEARING -> DRAFTING, back to HEARING as often as the caller goes on, then SPEAKING, and
LISTENING again. A draft may be begun in every pause; it is heard only if `confirm` is reached before the caller
speaks again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    Command,
    ConfirmTurn,
    DropDraft,
    EndSession,
    Listen,
    PlayDraft,
    Prefill,
    SetTimer,
    StartDraft,
    StopReply,
    Transcribe,
    WriteReply,
)
from antiphon.dialogue.history import prompt, said, unanswered
from antiphon.dialogue.state import Dialogue, Draft, Phase
from antiphon.dialogue.stimuli import (
    DraftFailed,
    DraftTranscribed,
    DraftVoiced,
    EndMassMeasured,
    InputEnded,
    InputStalled,
    ProsodyJudged,
    ReplyEnded,
    Stimulus,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
)
from antiphon.dialogue.turn_end import wait_ns

if TYPE_CHECKING:
    from collections.abc import Callable

Outcome: TypeAlias = tuple[Dialogue, tuple[Command, ...]]
Silence: TypeAlias = VoiceStopped | InputStalled | InputEnded  # how a caller falls silent
EVERYTHING = 2**62  # a position no stream reaches: all that was heard so far
Happening = TypeVar("Happening", bound=Stimulus)


def step(state: Dialogue, stimulus: Stimulus) -> Outcome:
    """The next state and what to do, given what happened."""
    rule = TRANSITIONS.get((state.phase, type(stimulus)))
    if rule is None:
        return state, ()
    after, commands = rule.apply(state, stimulus)
    assert after.phase in rule.leads_to, f"{rule.apply.__name__} led to {after.phase}"
    return after, commands


# The caller begins, goes on, pauses.


def turn_begins(state: Dialogue, happened: VoiceStarted) -> Outcome:
    turn = state.turn + 1
    after = replace(state, turn=turn, draft=None, voice_active=True)
    return hear(after, happened.at_ns, (Listen(turn=turn, from_samples=happened.start_samples),))


def hear(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """The caller has the floor, for a new turn."""
    hop_ns, longest_ns = state.settings.hop_ms * MILLISECOND_NS, state.settings.longest_turn_s * SECOND_NS
    return replace(state, phase=Phase.HEARING, forced=False), (
        *commands,
        SetTimer(timer=Timer.HOP, at_ns=at_ns + hop_ns, generation=state.turn),
        SetTimer(timer=Timer.LONGEST_TURN, at_ns=at_ns + longest_ns, generation=state.turn),
    )


def turn_goes_on(state: Dialogue, happened: VoiceStarted) -> Outcome:
    draft = drafting(state)
    hop_ns = state.settings.hop_ms * MILLISECOND_NS
    return replace(state, phase=Phase.HEARING, draft=None, voice_active=True), (
        DropDraft(draft=draft.number),
        CancelTimer(timer=Timer.CONFIRM),
        SetTimer(timer=Timer.HOP, at_ns=happened.at_ns + hop_ns, generation=state.turn),
    )


def caller_pauses(state: Dialogue, happened: Silence) -> Outcome:
    number = state.drafts + 1
    draft = Draft(number=number, ended_ns=happened.ended_ns, end_samples=happened.end_samples)
    after = replace(state, phase=Phase.DRAFTING, draft=draft, drafts=number, voice_active=False)
    return after, (
        CancelTimer(timer=Timer.HOP),
        StartDraft(draft=number, turn=state.turn, until_samples=happened.end_samples),
    )


def input_ends_in_speech(state: Dialogue, happened: InputEnded) -> Outcome:
    return caller_pauses(replace(state, input_ended=True, forced=True), happened)


def input_ends_in_silence(state: Dialogue, _: InputEnded) -> Outcome:
    return replace(state, phase=Phase.ENDED, input_ended=True, voice_active=False), (EndSession(),)


def input_ends_in_pause(state: Dialogue, happened: InputEnded) -> Outcome:
    return judge(replace(state, input_ended=True, forced=True), happened.at_ns)


def input_ends_in_reply(state: Dialogue, _: InputEnded) -> Outcome:
    return replace(state, input_ended=True), (CancelTimer(timer=Timer.INTERRUPT),)


# What the caller says, while they say it.


def words_grow(state: Dialogue, happened: TranscriptGrew) -> Outcome:
    if happened.turn != state.turn:
        return state, ()
    again = SetTimer(
        timer=Timer.HOP, at_ns=happened.at_ns + state.settings.hop_ms * MILLISECOND_NS, generation=state.turn
    )
    stable = happened.transcript.text[: happened.transcript.stable_chars]
    if not stable.strip():
        return state, (again,)
    return state, (Prefill(messages=prompt(state.instructions, state.history, stable)), again)


def timer_fires_in_speech(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.generation != state.turn:
        return state, ()
    if happened.timer is Timer.HOP:
        return state, (Transcribe(turn=state.turn),)
    if happened.timer is Timer.LONGEST_TURN:
        return turn_lasts_too_long(state, happened)
    return state, ()


def turn_lasts_too_long(state: Dialogue, happened: TimerFired) -> Outcome:
    """Answer what was said so far; what the caller says meanwhile belongs to their next turn."""
    after, commands = caller_pauses(
        replace(state, forced=True),
        VoiceStopped(at_ns=happened.at_ns, end_samples=EVERYTHING, ended_ns=happened.at_ns),
    )
    return replace(after, voice_active=True), commands


# The pause: evidence arrives, and decides.


def words_known(state: Dialogue, happened: DraftTranscribed) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    text = happened.transcript.text.strip()
    if not text and not unanswered(state.history):
        return nothing_was_said(state, happened.at_ns)
    state = replace(state, draft=replace(draft, transcript=happened.transcript))
    write = WriteReply(draft=draft.number, messages=prompt(state.instructions, state.history, text))
    after, commands = judge(state, happened.at_ns)
    return after, (write, *commands)


def nothing_was_said(state: Dialogue, at_ns: int) -> Outcome:
    """A cough or a door, and no turn of the caller's waits for an answer: it is as if it had not been."""
    draft = drafting(state)
    commands: tuple[Command, ...] = (
        DropDraft(draft=draft.number),
        AbandonTurn(turn=state.turn),
        CancelTimer(timer=Timer.CONFIRM),
        CancelTimer(timer=Timer.LONGEST_TURN),
    )
    return yield_floor(*next_turn_if_speaking(replace(state, draft=None), draft, commands), at_ns)


def next_turn_if_speaking(
    state: Dialogue, draft: Draft, commands: tuple[Command, ...]
) -> tuple[Dialogue, tuple[Command, ...]]:
    """Who went on speaking through the end of a turn that lasted too long is in the next one already."""
    if not state.voice_active:
        return state, commands
    start = draft.transcript.heard_samples if draft.transcript else draft.end_samples
    turn = state.turn + 1
    return replace(state, turn=turn), (*commands, Listen(turn=turn, from_samples=start))


def draft_voiced(state: Dialogue, happened: DraftVoiced) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    return replace(state, draft=replace(draft, voiced=True)), ()


def voice_judged(state: Dialogue, happened: ProsodyJudged) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    return judge(replace(state, draft=replace(draft, prosody=happened.probability)), happened.at_ns)


def mass_measured(state: Dialogue, happened: EndMassMeasured) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    return judge(replace(state, draft=replace(draft, end_mass=happened.mass)), happened.at_ns)


def draft_fails(state: Dialogue, happened: DraftFailed) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    if draft.transcript is None:  # the recognizer failed: there is nothing to answer
        return nothing_was_said(state, happened.at_ns)
    return replace(state, draft=replace(draft, failed=True)), ()


def timer_fires_in_pause(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.timer is Timer.CONFIRM and happened.generation == drafting(state).number:
        return judge(state, happened.at_ns)
    if happened.timer is Timer.LONGEST_TURN and happened.generation == state.turn:
        return judge(replace(state, forced=True), happened.at_ns)
    return state, ()


def judge(state: Dialogue, at_ns: int) -> Outcome:
    """Is it over? Confirm now, or wait as long as the evidence asks for; without words there is nothing to judge."""
    draft = drafting(state)
    if draft.evidence is None:
        return state, ()
    posterior = state.turn_end.posterior(draft.evidence)
    confirm_at_ns = draft.ended_ns + wait_ns(posterior, state.settings)
    if not state.forced and at_ns < confirm_at_ns:
        return state, (SetTimer(timer=Timer.CONFIRM, at_ns=confirm_at_ns, generation=draft.number),)
    return confirm(state, draft, posterior, at_ns)


def confirm(state: Dialogue, draft: Draft, posterior: float, at_ns: int) -> Outcome:
    assert draft.evidence is not None
    text = draft.evidence.text.strip()
    commands: tuple[Command, ...] = (CancelTimer(timer=Timer.CONFIRM), CancelTimer(timer=Timer.LONGEST_TURN))
    if text:  # without words it is the turn before that is answered again, and that was confirmed already
        confirmed = ConfirmTurn(
            turn=state.turn,
            draft=draft.number,
            text=text,
            posterior=posterior,
            evidence=draft.evidence,
            forced=state.forced,
        )
        commands = (*commands, confirmed)
    else:
        commands = (*commands, AbandonTurn(turn=state.turn))
    state = replace(state, history=said(state.history, "user", text), forced=False)
    state, commands = next_turn_if_speaking(state, draft, commands)
    if draft.failed:
        return yield_floor(replace(state, draft=None), commands, at_ns)
    return replace(state, phase=Phase.SPEAKING), (*commands, PlayDraft(draft=draft.number))


# The reply, and the caller speaking over it.


def voice_over_reply(state: Dialogue, happened: VoiceStarted) -> Outcome:
    """It may be a cough or an "mhm": listen, and take it for an interruption only if it lasts.

    Before the reply's first sound there is nothing to talk over: the turn was not over, or goes on.
    """
    turn = state.turn + 1
    state = replace(state, turn=turn, voice_active=True)
    listen = Listen(turn=turn, from_samples=happened.start_samples)
    if not drafting(state).voiced:
        return take_turn_back(state, happened.at_ns, (listen,))
    at_ns = happened.at_ns + state.settings.interrupt_ms * MILLISECOND_NS
    return state, (listen, SetTimer(timer=Timer.INTERRUPT, at_ns=at_ns, generation=turn))


def take_turn_back(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """What was heard of the reply until now is told by ReplyEnded, whatever phase it arrives in."""
    number = drafting(state).number
    return hear(replace(state, draft=None, stopping=number), at_ns, (*commands, StopReply(draft=number)))


def voice_over_reply_stops(state: Dialogue, _: VoiceStopped | InputStalled) -> Outcome:
    """Too short to mean it; who goes on through the end of a turn that lasted too long has begun no other."""
    after = replace(state, voice_active=False)
    if not state.voice_active:
        return after, ()
    return after, (CancelTimer(timer=Timer.INTERRUPT), AbandonTurn(turn=state.turn))


def voice_stops(state: Dialogue, _: VoiceStopped | InputStalled) -> Outcome:
    return replace(state, voice_active=False), ()


def timer_fires_in_reply(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.timer is not Timer.INTERRUPT or happened.generation != state.turn or not state.voice_active:
        return state, ()
    return take_turn_back(state, happened.at_ns, ())


def reply_fails(state: Dialogue, happened: DraftFailed) -> Outcome:
    return reply_ends(state, ReplyEnded(at_ns=happened.at_ns, draft=happened.draft, heard=""))


def reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    if happened.draft != drafting(state).number:
        return state, ()
    history = said(state.history, "assistant", happened.heard)
    state = replace(state, history=history, draft=None)
    return yield_floor(state, (CancelTimer(timer=Timer.INTERRUPT),), happened.at_ns)


def stopped_reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    """The caller has the floor already; remember what they had heard before they took it."""
    if happened.draft != state.stopping:
        return state, ()
    return replace(state, history=said(state.history, "assistant", happened.heard), stopping=None), ()


def yield_floor(state: Dialogue, commands: tuple[Command, ...], at_ns: int) -> Outcome:
    """We have nothing more to say: the caller has the floor if they speak; without input nobody ever will."""
    if state.voice_active and state.input_ended:  # they spoke over our reply until the sound ended: answer that
        after, more = caller_pauses(
            replace(state, forced=True), VoiceStopped(at_ns=at_ns, end_samples=EVERYTHING, ended_ns=at_ns)
        )
        return after, (*commands, *more)
    if state.voice_active:
        return hear(state, at_ns, commands)
    if state.input_ended:
        return replace(state, phase=Phase.ENDED), (*commands, EndSession())
    return replace(state, phase=Phase.LISTENING, forced=False), commands


def drafting(state: Dialogue) -> Draft:
    assert state.draft is not None, f"no draft while {state.phase.value}"
    return state.draft


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do, and which phases it may lead to."""

    apply: Callable[[Dialogue, Stimulus], Outcome]
    leads_to: frozenset[Phase]


def rule(apply: Callable[[Dialogue, Happening], Outcome], *leads_to: Phase) -> Rule:
    # The table's key guarantees the stimulus type that `apply` takes.
    return Rule(cast("Callable[[Dialogue, Stimulus], Outcome]", apply), frozenset(leads_to))


LISTENING, HEARING, DRAFTING, SPEAKING, ENDED = Phase

TRANSITIONS: dict[tuple[Phase, type[Stimulus]], Rule] = {
    (LISTENING, VoiceStarted): rule(turn_begins, HEARING),
    (LISTENING, InputEnded): rule(input_ends_in_silence, ENDED),
    (HEARING, VoiceStopped): rule(caller_pauses, DRAFTING),
    (HEARING, InputStalled): rule(caller_pauses, DRAFTING),
    (HEARING, InputEnded): rule(input_ends_in_speech, DRAFTING),
    (HEARING, TranscriptGrew): rule(words_grow, HEARING),
    (HEARING, TimerFired): rule(timer_fires_in_speech, HEARING, DRAFTING),
    (HEARING, ReplyEnded): rule(stopped_reply_ends, HEARING),
    (DRAFTING, VoiceStarted): rule(turn_goes_on, HEARING),
    (DRAFTING, VoiceStopped): rule(voice_stops, DRAFTING),
    (DRAFTING, InputStalled): rule(voice_stops, DRAFTING),
    (DRAFTING, InputEnded): rule(input_ends_in_pause, DRAFTING, SPEAKING, LISTENING, ENDED),
    (DRAFTING, DraftTranscribed): rule(words_known, DRAFTING, SPEAKING, LISTENING, HEARING, ENDED),
    (DRAFTING, ProsodyJudged): rule(voice_judged, DRAFTING, SPEAKING, LISTENING, HEARING, ENDED),
    (DRAFTING, EndMassMeasured): rule(mass_measured, DRAFTING, SPEAKING, LISTENING, HEARING, ENDED),
    (DRAFTING, DraftVoiced): rule(draft_voiced, DRAFTING),
    (DRAFTING, DraftFailed): rule(draft_fails, DRAFTING, LISTENING, HEARING, ENDED),
    (DRAFTING, TimerFired): rule(timer_fires_in_pause, DRAFTING, SPEAKING, LISTENING, HEARING, ENDED),
    (DRAFTING, ReplyEnded): rule(stopped_reply_ends, DRAFTING),
    (SPEAKING, VoiceStarted): rule(voice_over_reply, SPEAKING, HEARING),
    (SPEAKING, VoiceStopped): rule(voice_over_reply_stops, SPEAKING),
    (SPEAKING, InputStalled): rule(voice_over_reply_stops, SPEAKING),
    (SPEAKING, InputEnded): rule(input_ends_in_reply, SPEAKING),
    (SPEAKING, TimerFired): rule(timer_fires_in_reply, SPEAKING, HEARING),
    (SPEAKING, DraftVoiced): rule(draft_voiced, SPEAKING),
    (SPEAKING, DraftFailed): rule(reply_fails, SPEAKING, LISTENING, HEARING, DRAFTING, ENDED),
    (SPEAKING, ReplyEnded): rule(reply_ends, SPEAKING, LISTENING, HEARING, DRAFTING, ENDED),
}
