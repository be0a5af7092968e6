"""What happens in a pause: evidence arrives, and decides whether the turn is over or goes on."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue import acting, correcting, hearing
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    Command,
    ConfirmTurn,
    DropDraft,
    JudgeVoice,
    PlayDraft,
    ResumeReply,
    SetTimer,
)
from antiphon.dialogue.floor import (
    Outcome,
    answer_expected,
    caller_pauses,
    drafting,
    let_go,
    longest,
    next_look,
    next_turn_by_hand,
    next_turn_if_speaking,
    write_reply,
    yield_floor,
)
from antiphon.dialogue.history import said, turn_item, unanswered
from antiphon.dialogue.interruption import says_something
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
    Timer,
    TimerFired,
    ToolsWanted,
    VoiceStarted,
    VoiceStopped,
    WordsCorrected,
)
from antiphon.dialogue.turn_end import wait_ns


def turn_goes_on(state: Dialogue, happened: VoiceStarted) -> Outcome:
    draft = drafting(state)
    commands: tuple[Command, ...] = (
        DropDraft(draft=draft.number),
        CancelTimer(timer=Timer.CONFIRM),
        next_look(state, happened.at_ns),
    )
    if state.forced:  # it had lasted too long, and does so again
        commands = (*commands, longest(state, happened.at_ns))
    after = replace(state, phase=Phase.HEARING, draft=None, pauses=state.pauses + 1, voice_active=True, forced=False)
    return after, commands


def words_known(state: Dialogue, happened: DraftTranscribed) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number or draft.transcript is not None:
        return state, ()
    draft = replace(
        draft,
        transcript=happened.transcript,
        provisional=happened.provisional,
        end_mass=happened.end_mass,
        prosody=happened.prosody,
        voice_asked=happened.prosody is not None,
    )
    if _says_nothing(state, draft):
        return nothing_was_said(state, happened.at_ns)
    if state.held:  # what was heard of it belongs into the prompt, and ReplyEnded will tell
        return let_go(replace(state, draft=replace(draft, wants_words=False)))  # it is given up for whatever was said
    return weigh(replace(state, draft=draft), happened.at_ns)


def words_corrected(state: Dialogue, happened: WordsCorrected) -> Outcome:
    """A careful ear has heard the draft's turn; it may find that nothing was said, as the quick one might have."""
    before = drafting(state)
    if happened.draft != before.number:
        return correcting.turn_corrected(state, happened)
    if not before.is_provisional:
        return state, ()
    draft = replace(before, corrected=happened.transcript)
    if draft.words != before.words and _says_nothing(state, draft):
        return nothing_was_said(state, happened.at_ns)
    return correcting.write_on(replace(state, draft=draft), ())


def _says_nothing(state: Dialogue, draft: Draft) -> bool:
    """Whether a draft's words are no turn, and none waits for an answer."""
    if not draft.words and (state.held or state.by_hand or not unanswered(state.history)):
        return True
    return draft.wants_words and not says_something(draft.words, state.settings.backchannels)


def stopped_reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    """What was heard of the reply before is known, if that is what the draft waited for."""
    after, commands = hearing.stopped_reply_ends(state, happened)
    draft = drafting(after)
    if after.stopping or draft.transcript is None or draft.weighed:
        return after, commands
    return weigh(after, happened.at_ns)


def weigh(state: Dialogue, at_ns: int) -> Outcome:
    """The words are known: is the turn over, and what is there to reply?"""
    draft = drafting(state)
    assert draft.evidence is not None
    writes = state.settings.speculate and answer_expected(state)
    posterior = state.turn_end.posterior(draft.evidence)
    # The model gives one opinion after the other: where the words are enough, the reply must not wait for another.
    is_unsure = not _is_over(state, draft, posterior, at_ns) and _is_in_doubt(state, posterior)
    asks = writes and draft.end_mass is None and is_unsure
    draft = replace(
        draft,
        weighed=True,
        written=writes,
        mass_asked=asks,
        half_written=writes and draft.is_provisional,
        options=state.requested or draft.options,
    )
    state = replace(state, draft=draft)
    after, commands = judge(state, at_ns)
    if not writes:
        return after, commands
    return after, (write_reply(state, draft, draft.words, measures_end=asks), *commands)


def nothing_was_said(state: Dialogue, at_ns: int) -> Outcome:
    """A cough or a door, and no turn of the caller's waits for an answer: it is as if it had not been."""
    draft = drafting(state)
    commands: tuple[Command, ...] = (
        DropDraft(draft=draft.number),
        AbandonTurn(turn=state.turn),
        CancelTimer(timer=Timer.CONFIRM),
        CancelTimer(timer=Timer.LONGEST_TURN),
    )
    state = replace(state, draft=None, forced=False)
    state, commands = next_turn_by_hand(*next_turn_if_speaking(state, draft, commands), draft)
    if state.held and not state.voice_active:
        resumed = replace(state, phase=Phase.SPEAKING, draft=state.held, held=None)
        return correcting.write_on(*acting.go_on(resumed, (*commands, ResumeReply(draft=state.held.number)), at_ns))
    if state.held:
        state, stop = let_go(state)
        commands = (*commands, *stop)
    return yield_floor(state, commands, at_ns)


def draft_voiced(state: Dialogue, happened: DraftVoiced) -> Outcome:
    draft = drafting(state)
    if happened.draft != draft.number:
        return state, ()
    return _ask_for_voice(replace(state, draft=replace(draft, voiced=True)))


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
        return hearing.held_reply_fails(state, happened)
    if draft.transcript is None:  # the recognizer failed: there is nothing to answer
        return nothing_was_said(state, happened.at_ns)
    return _ask_for_voice(replace(state, draft=replace(draft, failed=True)))


def tools_wanted(state: Dialogue, happened: ToolsWanted) -> Outcome:
    after, commands = acting.tools_wanted(state, happened)
    after, judged = _ask_for_voice(after)
    return after, (*commands, *judged)


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
    if draft.evidence is None or not draft.weighed:
        return state, ()
    posterior = state.turn_end.posterior(draft.evidence)
    if not _is_over(state, draft, posterior, at_ns):
        at = _confirm_at_ns(state, draft, posterior)
        wait = SetTimer(timer=Timer.CONFIRM, at_ns=at, generation=draft.number)
        after, judged = _ask_for_voice(state)
        return after, (wait, *judged)
    return confirm(state, draft, posterior, at_ns)


def _ask_for_voice(state: Dialogue) -> Outcome:
    """Have the voice judged if the end of the turn is in doubt, and neither the reply nor a cheaper opinion waits.

    Where nothing else tells anything, the reply comes no sooner for being written first.
    """
    draft = drafting(state)
    if state.phase is not Phase.DRAFTING or draft.evidence is None or not draft.weighed or draft.voice_asked:
        return state, ()
    mass_may_come = draft.mass_asked and draft.end_mass is None and not draft.failed
    waits = draft.is_awaited and not state.turn_end.is_by_voice_alone
    if waits or mass_may_come or not _is_in_doubt(state, state.turn_end.posterior(draft.evidence)):
        return state, ()
    return replace(state, draft=replace(draft, voice_asked=True)), (JudgeVoice(draft=draft.number),)


def _confirm_at_ns(state: Dialogue, draft: Draft, posterior: float) -> int:
    return draft.ended_ns + wait_ns(posterior, state.settings)


def _is_over(state: Dialogue, draft: Draft, posterior: float, at_ns: int) -> bool:
    """Whether nothing more is waited for."""
    return state.forced or at_ns >= _confirm_at_ns(state, draft, posterior)


def _is_in_doubt(state: Dialogue, posterior: float) -> bool:
    """Whether so much silence would be waited for that further opinions, which take their time, can save some of it."""
    return (
        state.settings.waits_by_opinion
        and wait_ns(posterior, state.settings) > state.settings.doubt_ms * MILLISECOND_NS
    )


def confirm(state: Dialogue, draft: Draft, posterior: float, at_ns: int) -> Outcome:
    assert draft.evidence is not None
    text = draft.words
    commands: tuple[Command, ...] = (CancelTimer(timer=Timer.CONFIRM), CancelTimer(timer=Timer.LONGEST_TURN))
    if text:  # without words it is the turn before that is answered again, and that was confirmed already
        confirmed = ConfirmTurn(
            turn=state.turn,
            draft=draft.number,
            text=text,
            posterior=posterior,
            evidence=draft.evidence,
            forced=state.forced,
            provisional=draft.is_provisional,
        )
        state, settled = correcting.expect_words(state, draft)
        commands = (*commands, confirmed, *settled)
    else:
        commands = (*commands, AbandonTurn(turn=state.turn))
    history = said(state.history, "user", text, turn_item(state.turn))
    wanted = answer_expected(state) and unanswered(history)
    asked_late = state.requested is not None and state.requested is not draft.options
    state = replace(state, history=history, forced=False)
    state, commands = next_turn_by_hand(*next_turn_if_speaking(state, draft, commands), draft)
    if draft.failed or not wanted or (asked_late and draft.written):  # what the owner asked for comes then, or never
        return yield_floor(replace(state, draft=None), (*commands, DropDraft(draft=draft.number)), at_ns)
    draft = replace(draft, options=state.requested or draft.options)
    if not draft.written:
        draft = replace(draft, written=True, half_written=draft.is_provisional)
        commands = (*commands, write_reply(state, draft))
    state = replace(state, draft=draft, requested=None)
    return acting.go_on(
        replace(state, phase=Phase.SPEAKING), (*commands, PlayDraft(draft=draft.number, options=draft.options)), at_ns
    )
