"""What happens in a pause: evidence arrives, and decides whether the turn is over or goes on."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    Command,
    ConfirmTurn,
    DropDraft,
    JudgeVoice,
    PlayDraft,
    SetTimer,
    WriteReply,
)
from antiphon.dialogue.floor import Outcome, caller_pauses, drafting, next_turn_if_speaking, yield_floor
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
    Timer,
    TimerFired,
    VoiceStarted,
    VoiceStopped,
)
from antiphon.dialogue.turn_end import wait_ns


def turn_goes_on(state: Dialogue, happened: VoiceStarted) -> Outcome:
    draft = drafting(state)
    hop_ns = state.settings.hop_ms * MILLISECOND_NS
    return replace(state, phase=Phase.HEARING, draft=None, voice_active=True), (
        DropDraft(draft=draft.number),
        CancelTimer(timer=Timer.CONFIRM),
        SetTimer(timer=Timer.HOP, at_ns=happened.at_ns + hop_ns, generation=state.turn),
    )


def words_known(state: Dialogue, happened: DraftTranscribed) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    text = happened.transcript.text.strip()
    if not text and not unanswered(state.history):
        return nothing_was_said(state, happened.at_ns)
    state = replace(state, draft=replace(draft, transcript=happened.transcript))
    after, commands = judge(state, happened.at_ns)
    if not state.settings.speculate:
        return after, commands
    write = WriteReply(draft=draft.number, messages=prompt(state.instructions, state.history, text))
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


def voice_stops(state: Dialogue, happened: VoiceStopped | InputStalled) -> Outcome:
    """Who was to be answered in mid-speech has paused after all: answer all of it."""
    if not state.voice_active:
        return state, ()
    after, commands = caller_pauses(state, happened)
    return after, (DropDraft(draft=drafting(state).number), *commands)


def input_ends_in_pause(state: Dialogue, happened: InputEnded) -> Outcome:
    return judge(replace(state, input_ended=True, forced=True), happened.at_ns)


def judge(state: Dialogue, at_ns: int) -> Outcome:
    """Is it over? Confirm now, or wait as long as the evidence asks for; without words there is nothing to judge."""
    draft = drafting(state)
    if draft.evidence is None:
        return state, ()
    posterior = state.turn_end.posterior(draft.evidence)
    confirm_at_ns = draft.ended_ns + wait_ns(posterior, state.settings)
    if not state.forced and at_ns < confirm_at_ns:
        wait = SetTimer(timer=Timer.CONFIRM, at_ns=confirm_at_ns, generation=draft.number)
        mass_may_come = draft.end_mass is None and state.settings.speculate  # and costs less
        if draft.voice_asked or mass_may_come:
            return state, (wait,)
        return replace(state, draft=replace(draft, voice_asked=True)), (wait, JudgeVoice(draft=draft.number))
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
    if not state.settings.speculate:
        write = WriteReply(draft=draft.number, messages=prompt(state.instructions, state.history))
        commands = (*commands, write)
    state, commands = next_turn_if_speaking(state, draft, commands)
    if draft.failed:
        return yield_floor(replace(state, draft=None), (*commands, DropDraft(draft=draft.number)), at_ns)
    return replace(state, phase=Phase.SPEAKING), (*commands, PlayDraft(draft=draft.number))
