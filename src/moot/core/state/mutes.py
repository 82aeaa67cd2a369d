"""Mutes: muted participants, requests put off meanwhile, and turns held back.

A request to a muted member waits until the mute ends. A message to everyone that the member missed
is not repeated.
"""

from typing import TYPE_CHECKING, Any

from moot.core.payloads.conversations import ThreadControlled
from moot.core.payloads.councils import MembersInvited, TurnAdmitted, TurnDropped, TurnHeld
from moot.core.state.control_content import MOST_NAMES, control_targets, duration_ms
from moot.core.state.floor import MOST_HELD, Floor, FloorRequest
from moot.core.text.names import full_name

if TYPE_CHECKING:
    from moot.core.state.conversation import Conversation
    from moot.core.state.thread_controls import ThreadControls

MUTED_REASON = "muted"


def is_muted(state: "ThreadControls", name: str, at: int) -> bool:
    until = state.muted.get(full_name(name))
    return until is not None and (until == 0 or at < until)


def apply_mute(state: "ThreadControls", value: Any, payload: ThreadControlled, at: int) -> None:
    if isinstance(value, dict) and value.get("mode", "hard") != "hard":
        return
    is_timed = isinstance(value, dict) and "seconds" in value
    duration = duration_ms(value["seconds"]) if is_timed else None
    if is_timed and duration is None:
        return
    for name in control_targets(value):
        if len(state.muted) < MOST_NAMES or name in state.muted:
            state.muted[name] = at + duration if duration is not None else 0
            state.lifted.pop(name, None)


def apply_unmute(state: "ThreadControls", value: Any, payload: ThreadControlled, at: int) -> None:
    for name in control_targets(value):
        until = state.muted.pop(name, None)
        if until is not None and (until == 0 or at < until) and len(state.lifted) < MOST_NAMES:
            state.lifted[name] = until


def put_off_muted_requests(floor: Floor, state: "ThreadControls", payload: MembersInvited) -> None:
    """Keep the requests that ``moot.participation.decided`` skips because of a mute.

    Call this before the event is applied, which removes the requests.
    """
    for item in payload.skipped or []:
        name = item.agent_id
        request = floor.asked.get(name)
        if request is None and name in state.prodded:
            request = FloorRequest("prodded", direct=True)
        if request is not None and item.reason == MUTED_REASON:
            floor.later[name] = request


def resume_put_off_requests(floor: Floor, state: "ThreadControls") -> None:
    """Request the members whose mute has ended, unless there is a newer request."""
    for name in [name for name in floor.later if name not in state.muted]:
        request = floor.later.pop(name)
        if name in floor.members:
            floor.asked.setdefault(name, request)


def put_off_until(conversation: "Conversation") -> dict[str, int]:
    """Return the end of the mute (ms) for each member with a request that waits for it."""
    floor = conversation.floor
    later = floor.later if floor is not None and conversation.open else {}
    return {name: until for name in later if (until := conversation.state.muted.get(name, 0))}


def apply_turn_held(floor: Floor, payload: TurnHeld) -> None:
    """Hold a turn back until a person admits or drops it."""
    if len(floor.held) < MOST_HELD:
        floor.held[payload.held] = payload.turn


def apply_turn_settled(floor: Floor, payload: TurnAdmitted | TurnDropped) -> None:
    """Apply ``moot.turn.admitted`` or ``moot.turn.dropped``."""
    floor.held.pop(payload.held, None)
