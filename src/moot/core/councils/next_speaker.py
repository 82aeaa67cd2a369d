"""Decide who speaks next in a council or thread, with one function for each mode.

The functions are pure and total: a council that is not at rest has a next step at any time. A step
that would change nothing is not a step.

In small threads every member answers a person's turn to all. In large ones the person must mention
members, unless the thread lets all of them answer. Programs outside the host are called; the host
does not wait for them.
"""

from collections.abc import Callable

from moot.core.councils.invitations import CouncilStep, PlannedInvitation
from moot.core.councils.limits import (
    chain_stop,
    fit_to_limits,
    limit_stop,
    loop_stop,
    pair_stop,
)
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.floor import (
    FAILED_OUTCOMES,
    NOBODY_ANSWERED,
    QUIET_OUTCOMES,
    RUNWAY,
    SYNTHESIS_FAILED,
    TO_ALL,
    Floor,
    FloorRequest,
)
from moot.core.state.mutes import is_muted
from moot.core.state.participants import find_participant, is_led, led_members, round_speakers

#: turns that one summary covers at most
MAX_SUMMARISED_TURNS = 200


def next_step(conversation: Conversation, at: int) -> CouncilStep | None:
    """Return the next step, or None while the council waits for a turn."""
    floor = conversation.floor
    if floor is None:
        return chain_stop(conversation.chain) if conversation.open else None
    if not conversation.open or conversation.state.paused or floor.stopped:
        return None
    if floor.wakes:
        return _call_outside_members(conversation, floor, at) if floor.threaded else None
    step = _step_in_phase(conversation, floor, at)
    if step is None or not _changes_state(conversation, floor, step):
        return None
    if step.stop == NOBODY_ANSWERED:
        return limit_stop(floor, step, at) or step  # the limit is the real reason
    if step.stop or step.close or not step.wakes:
        return step
    step = _summary_step(conversation, floor, at) or step
    return limit_stop(floor, step, at) or fit_to_limits(floor, step)


def _changes_state(conversation: Conversation, floor: Floor, step: CouncilStep) -> bool:
    """Return whether recording the step changes the state; otherwise it would be due again."""
    if step.wakes or step.stop or step.close or step.called or step.unclear:
        return True
    if (step.round, step.phase) != (floor.round, floor.phase):
        return True
    waiting = {*conversation.state.prodded, *floor.asked, floor.chosen}
    return any(name in waiting or name not in floor.had for name in step.skipped)


def _summary_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Invite the summariser when members would miss too many turns.

    There is no summary in a blind first round.
    """
    name, window = floor.policy.summarise, floor.policy.window
    is_blind = floor.policy.blind and floor.round == 1 and floor.phase == "talk"
    if name is None or not is_led(conversation, name) or is_blind or conversation.turns <= 0:
        return None
    if conversation.turns - floor.summed_up <= 2 * window or is_muted(conversation.state, name, at):
        return None
    first_turn = floor.summed_up + 1
    turns = (first_turn, min(conversation.turns - window, first_turn + MAX_SUMMARISED_TURNS - 1))
    planned = PlannedInvitation(name, "summarise", "more was said than can be told", of=turns)
    return CouncilStep(wakes=(planned,), round=floor.round, phase=floor.phase)


def _step_in_phase(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    if floor.threaded and floor.phase == "talk":
        return _thread_step(conversation, floor, at)
    if prodded := _prodded_members(conversation):
        return _invite_first(conversation, floor, prodded[:1], at, "prodded", forced=True)
    if floor.asked:
        name, request = next(iter(floor.asked.items()))
        if request.by is not None and (stop := pair_stop(floor, name, request.by)):
            return stop
        return _invite_first(conversation, floor, [name], at, request.why)
    match floor.phase:
        case "talk":
            return _discussion_step(conversation, floor, at) if led_members(conversation) else None
        case "synthesis":
            return _synthesis_step(conversation, floor)
        case "vote":
            return _vote_step(conversation, floor, at)
        case "over":
            return _close_step(floor)


def _prodded_members(conversation: Conversation) -> list[str]:
    return [name for name in conversation.state.prodded if is_led(conversation, name)]


def _discussion_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Return the step of the mode. The time decides only whether the step becomes a stop."""
    step = MODES[floor.policy.mode](conversation, floor, at)
    if step is not None and step.wakes and thread_controls.is_ttl_over(conversation.state, at):
        return CouncilStep(stop=RUNWAY)
    return step


def _synthesis_step(conversation: Conversation, floor: Floor) -> CouncilStep:
    moderator = floor.policy.moderator
    if moderator is None or moderator not in led_members(conversation):
        return CouncilStep(round=floor.round, phase="over")
    if floor.unsummed:
        return CouncilStep(stop=SYNTHESIS_FAILED)
    planned = PlannedInvitation(moderator, "synthesise", "all have spoken")
    return CouncilStep(wakes=(planned,), round=floor.round, phase="synthesis")


def _invite_first(
    conversation: Conversation,
    floor: Floor,
    names: list[str],
    at: int,
    reason: str,
    forced: bool = False,
) -> CouncilStep:
    """Invite the first of these members that may speak, and skip those before it."""
    skipped: dict[str, str] = {}
    for name in names:
        if is_muted(conversation.state, name, at):
            skipped[name] = "muted"
        elif name in conversation.state.done and not forced and name not in floor.asked:
            skipped[name] = "done"
        else:
            planned = PlannedInvitation(name, "speak", reason)
            return CouncilStep(
                wakes=(planned,), skipped=skipped, round=floor.round, phase=floor.phase
            )
    return CouncilStep(skipped=skipped, round=floor.round, phase=floor.phase)


def _step_in_round(
    conversation: Conversation, floor: Floor, at: int, order: list[str], reason: str
) -> CouncilStep:
    """Invite the next member that has not had the floor in this round, or begin the next round."""
    waiting = [name for name in order if name not in floor.had]
    if waiting:
        if floor.policy.blind and floor.round == 1:
            return _invite_blind(conversation, floor, waiting, at)
        return _invite_first(conversation, floor, waiting, at, reason)
    if floor.had and all(outcome in QUIET_OUTCOMES for outcome in floor.had.values()):
        return CouncilStep(stop=_quiet_reason(floor))
    if floor.round >= floor.policy.rounds:
        by_moderator = "moderator" in floor.had.values()
        return CouncilStep(
            stop="moderator" if by_moderator else "rounds", limit=floor.policy.rounds
        )
    return CouncilStep(round=floor.round + 1)


def _quiet_reason(floor: Floor) -> str:
    """Return whether the members agree or could not answer."""
    return (
        NOBODY_ANSWERED
        if all(outcome in FAILED_OUTCOMES for outcome in floor.had.values())
        else "consensus"
    )


def _invite_blind(
    conversation: Conversation, floor: Floor, names: list[str], at: int
) -> CouncilStep:
    """Invite all members at once. None of them sees the turns of the others."""
    muted = {name: "muted" for name in names if is_muted(conversation.state, name, at)}
    wakes = tuple(
        PlannedInvitation(
            name, "speak", "first round, unheard by the others", blind=floor.opened_turn
        )
        for name in names
        if name not in muted
    )
    return CouncilStep(wakes=wakes, skipped=muted)


def _round_robin_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep:
    return _step_in_round(
        conversation, floor, at, round_speakers(conversation), f"round {floor.round}"
    )


def _declared_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Invite every member once for each turn of a person to all."""
    waiting = [name for name in round_speakers(conversation) if name not in floor.had]
    if not floor.called or not waiting:
        return None
    return _invite_first(conversation, floor, waiting, at, TO_ALL)


def _addressed_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    return None  # members that were addressed, prodded or requested are invited before this


def _raise_hand_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep:
    hands, order = floor.hands or {}, round_speakers(conversation)
    if unasked := [name for name in order if name not in hands]:
        wakes = tuple(PlannedInvitation(name, "hand", f"round {floor.round}") for name in unasked)
        return CouncilStep(wakes=wakes, round=floor.round)
    raised = [name for name in order if hands.get(name, 0) > 0]
    if not raised:
        failed = bool(hands) and all(floor.had.get(name) in FAILED_OUTCOMES for name in hands)
        return CouncilStep(stop=NOBODY_ANSWERED if failed else "consensus")
    raised.sort(key=lambda name: (-hands.get(name, 0), order.index(name)))
    return _step_in_round(conversation, floor, at, raised, "raised a hand")


def _moderated_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep:
    moderator = floor.policy.moderator
    if moderator not in led_members(conversation):
        return _round_robin_step(conversation, floor, at)  # no moderator is present
    if floor.chosen is not None:
        return _invite_first(conversation, floor, [floor.chosen], at, f"chosen by {moderator}")
    if floor.round > floor.policy.rounds:
        return CouncilStep(stop="moderator")
    if floor.choices >= floor.policy.rounds * len(round_speakers(conversation)):
        all_failed = floor.had and all(outcome in FAILED_OUTCOMES for outcome in floor.had.values())
        return CouncilStep(
            stop=NOBODY_ANSWERED if all_failed else "rounds", limit=floor.policy.rounds
        )
    return CouncilStep(
        wakes=(PlannedInvitation(str(moderator), "choose", "who is next"),), round=floor.round
    )


def _vote_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep:
    """Invite the members that have not voted.

    Muted members have no vote. Programs outside the host have none either, because the host only
    calls them and would wait in vain.
    """
    waiting = [name for name in round_speakers(conversation) if name not in floor.votes]
    skipped = {name: "muted" for name in waiting if is_muted(conversation.state, name, at)}
    skipped |= {name: "outside" for name in waiting if find_participant(conversation, name).outside}
    reason = "the proposal is put to the vote"
    wakes = tuple(
        PlannedInvitation(name, "vote", reason) for name in waiting if name not in skipped
    )
    if not wakes:
        return CouncilStep(round=floor.round, phase="over")
    return CouncilStep(wakes=wakes, skipped=skipped, round=floor.round, phase="vote")


def _close_step(floor: Floor) -> CouncilStep | None:
    closes = floor.closer is not None or floor.policy.close == "moderator"
    ends = closes and floor.proposal is not None
    return CouncilStep(close=True, phase="over") if ends else None


MODES: dict[str, Callable[[Conversation, Floor, int], CouncilStep | None]] = {
    "declared": _declared_step,
    "round-robin": _round_robin_step,
    "addressed": _addressed_step,
    "raise-hand": _raise_hand_step,
    "moderated": _moderated_step,
}


# -- in a thread ----------------------------------------------------------------------------------


def _thread_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Return the next invitation, and every member that is skipped or called before it."""
    if floor.unclear:
        return CouncilStep(unclear=floor.unclear, round=floor.round)
    skipped: dict[str, str] = {}
    called: dict[str, str] = {}
    planned: PlannedInvitation | None = None
    for name, request in _waiting_requests(conversation, floor).items():
        if (reason := _skip_reason(conversation, floor, name, request, at)) is not None:
            skipped[name] = reason
        elif planned is not None and not find_participant(conversation, name).outside:
            continue
        elif stop := loop_stop(floor, name, request):
            if planned is None:
                return _skip_or_call(floor, skipped, called) or stop
        elif find_participant(conversation, name).outside:
            called[name] = request.why
        else:
            planned = PlannedInvitation(
                name, "speak", request.why, reply=request.seq or None, result=request.task
            )
    if planned is None:
        return _skip_or_call(floor, skipped, called)
    return CouncilStep(wakes=(planned,), skipped=skipped, called=called, round=floor.round)


def _call_outside_members(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Return the calls to programs outside while a member of the host has the floor."""
    if floor.phase != "talk":
        return None
    called = {
        name: request.why
        for name, request in _waiting_requests(conversation, floor).items()
        if find_participant(conversation, name).outside
        and _skip_reason(conversation, floor, name, request, at) is None
        and loop_stop(floor, name, request) is None
    }
    return _skip_or_call(floor, {}, called)


def _skip_or_call(
    floor: Floor, skipped: dict[str, str], called: dict[str, str]
) -> CouncilStep | None:
    if not skipped and not called:
        return None
    return CouncilStep(skipped=skipped, called=called, round=floor.round)


def _waiting_requests(conversation: Conversation, floor: Floor) -> dict[str, FloorRequest]:
    """Return prodded members, then requested ones, then those a turn to all is for."""
    prodded = _prodded_members(conversation)
    requests = {name: FloorRequest("prodded", direct=True) for name in prodded}
    requests |= {name: each for name, each in floor.asked.items() if name not in requests}
    if floor.called:
        to_all = FloorRequest(TO_ALL, seq=floor.called_seq)
        others = [name for name in round_speakers(conversation) if name not in floor.had]
        requests |= {name: to_all for name in others if name not in requests}
    return requests


def _skip_reason(
    conversation: Conversation, floor: Floor, name: str, request: FloorRequest, at: int
) -> str | None:
    if is_muted(conversation.state, name, at):
        return "muted"
    if request.direct:
        return None
    if thread_controls.is_ttl_over(conversation.state, at):
        return RUNWAY
    return "done" if name in conversation.state.done and name not in floor.asked else None
