"""Undo a control while it still has an effect."""

from collections.abc import Callable
from typing import Any

from moot.core.events import micros
from moot.core.state.control_content import control_targets, is_duration, is_switch
from moot.core.state.conversation import Conversation
from moot.core.state.mutes import is_muted
from moot.core.state.participants import find_participant
from moot.core.text.names import full_name, handle_from_name
from moot.core.threads.rendered_event import RenderedEvent

#: milliseconds by which equal times may differ
TOLERANCE_MS = 1000


def undo_control(
    event: RenderedEvent, conversation: Conversation, at: int
) -> dict[str, object] | None:
    """Return the control that reverts this event, or None. ``at`` is in milliseconds."""
    content = event.content
    if not conversation.open or event.type != "control" or not isinstance(content, dict):
        return None
    control: dict[str, object] = {}
    for word, value in content.items():
        if (action := UNDO_ACTIONS.get(word)) is not None:
            control |= action(conversation, value, event, at) or {}
    return control or None


def _undo_mute(
    conversation: Conversation, value: Any, event: RenderedEvent, at: int
) -> dict[str, object] | None:
    muted = [name for name in control_targets(value) if is_muted(conversation.state, name, at)]
    return {"unmute": list(map(handle_from_name, muted))} if muted else None


def _undo_unmute(
    conversation: Conversation, value: Any, event: RenderedEvent, at: int
) -> dict[str, object] | None:
    """Mute again for the rest of the time, the shortest one of several."""
    targets = [name for name in control_targets(value) if name not in conversation.state.muted]
    until = {
        name: conversation.state.lifted[name]
        for name in targets
        if name in conversation.state.lifted
    }
    names = [name for name, mute_end in until.items() if mute_end == 0 or mute_end > at]
    remaining = [(until[name] - at) / 1000 for name in names if until[name]]
    if not names:
        return None
    handles = list(map(handle_from_name, names))
    return {"mute": {"targets": handles, "seconds": min(remaining)} if remaining else handles}


def _is_on(value: Any) -> bool:
    return value.get("on", True) is True if isinstance(value, dict) else value is True


def _undo_switch(
    word: str, current: Callable[[Conversation], bool]
) -> Callable[..., dict[str, object] | None]:
    def undo(
        conversation: Conversation, value: Any, event: RenderedEvent, at: int
    ) -> dict[str, object] | None:
        is_current = is_switch(value) and _is_on(value) == current(conversation)
        return {word: {"on": not _is_on(value)}} if is_current else None

    return undo


def _undo_ttl(
    conversation: Conversation, value: Any, event: RenderedEvent, at: int
) -> dict[str, object] | None:
    until = conversation.state.ttl_until
    if until is None or not is_duration(value):
        return None
    deadline = micros(event.ts) // 1000 + int(value * 1000)
    return {"ttl_seconds": None} if abs(deadline - until) < TOLERANCE_MS else None


def _participant_handle(value: Any) -> str:
    return handle_from_name(value.get("participant_id") if isinstance(value, dict) else value)


def _undo_invite(
    conversation: Conversation, value: Any, event: RenderedEvent, at: int
) -> dict[str, object] | None:
    is_member = find_participant(conversation, full_name(_participant_handle(value))).joined
    return {"uninvite": {"participant_id": _participant_handle(value)}} if is_member else None


def _undo_uninvite(
    conversation: Conversation, value: Any, event: RenderedEvent, at: int
) -> dict[str, object] | None:
    if find_participant(conversation, full_name(_participant_handle(value))).joined:
        return None
    profile = conversation.state.gone.get(full_name(_participant_handle(value)))
    fields = {"profile": profile} if profile else {}
    return {"invite": {"participant_id": _participant_handle(value), **fields}}


UNDO_ACTIONS: dict[
    str, Callable[[Conversation, Any, RenderedEvent, int], dict[str, object] | None]
] = {
    "mute": _undo_mute,
    "unmute": _undo_unmute,
    "pause": _undo_switch("pause", lambda conversation: conversation.state.paused),
    "discussion": _undo_switch("discussion", lambda conversation: conversation.state.discussion),
    "invited_auto": _undo_switch(
        "invited_auto", lambda conversation: conversation.state.invited_auto
    ),
    "ttl_seconds": _undo_ttl,
    "invite": _undo_invite,
    "uninvite": _undo_uninvite,
}
