"""Decide which member of a thread speaks next.

In small threads every member answers a person's turn to all. In large ones the person must mention
members, unless the thread lets all of them answer. Programs outside the host are called; the host
does not wait for them.
"""

from moot.core.councils.answer_loops import loop_stop
from moot.core.councils.steps import CouncilStep, PlannedInvitation
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.floor import RUNWAY, TO_ALL, Floor, FloorRequest
from moot.core.state.mutes import is_muted


def next_thread_step(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Return the next invitation, and every member that is skipped or called before it."""
    if floor.unclear:
        return CouncilStep(unclear=floor.unclear, round=floor.round)
    skipped: dict[str, str] = {}
    called: dict[str, str] = {}
    planned: PlannedInvitation | None = None
    for name, request in _waiting_requests(conversation, floor).items():
        if (reason := _skip_reason(conversation, floor, name, request, at)) is not None:
            skipped[name] = reason
        elif planned is not None and not floor.members[name].outside:
            continue
        elif stop := loop_stop(floor, name, request):
            if planned is None:
                return _skip_or_call(floor, skipped, called) or stop
        elif floor.members[name].outside:
            called[name] = request.why
        else:
            planned = PlannedInvitation(
                name, "speak", request.why, reply=request.seq or None, result=request.task
            )
    if planned is None:
        return _skip_or_call(floor, skipped, called)
    return CouncilStep(wakes=(planned,), skipped=skipped, called=called, round=floor.round)


def call_outside_members(conversation: Conversation, floor: Floor, at: int) -> CouncilStep | None:
    """Return the calls to programs outside while a member of the host has the floor."""
    if floor.phase != "talk":
        return None
    called = {
        name: request.why
        for name, request in _waiting_requests(conversation, floor).items()
        if floor.members[name].outside
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
    prodded = [name for name in conversation.state.prodded if name in floor.members]
    requests = {name: FloorRequest("prodded", direct=True) for name in prodded}
    requests |= {name: each for name, each in floor.asked.items() if name not in requests}
    if floor.called:
        to_all = FloorRequest(TO_ALL, seq=floor.called_seq)
        others = [name for name in floor.speakers if name not in floor.had and name not in requests]
        requests |= dict.fromkeys(others, to_all)
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
