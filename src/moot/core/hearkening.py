"""What a turn does to a led conversation: whom it is for, what it lifts, who is woken by it."""

from typing import Any

from moot.core import mentions, thread
from moot.core.participation import FAILED, LIFTED, NOBODY, Floor, once_more, pair


def heard(floor: Floor, turn: dict[str, Any], discussion: bool) -> None:
    """Somebody has spoken."""
    speaker, role = thread.full_name(str(turn.get("from", ""))), turn.get("role")
    if role == "user":
        _person(floor, turn)
    elif role == "agent" and floor.summary is not None and floor.summary.turn < 0:
        floor.summary.turn = turn.get("turnIndex", 0)
    elif role == "agent":
        floor.streak += 1
        if floor.proposed_in < 0:
            floor.proposed_in = turn.get("turnIndex", 0)
        if floor.had.get(speaker, "failed") in FAILED:
            floor.had[speaker] = "spoke"
        if discussion or floor.policy.mode in ("addressed", "small"):
            for name in addressed(floor, turn):
                _ask(floor, name, speaker)


def _person(floor: Floor, turn: dict[str, Any]) -> None:
    floor.streak, floor.pairs = 0, {}
    if floor.stopped in LIFTED:
        if floor.stopped == NOBODY:
            once_more(floor)
        floor.stopped = None
        floor.asked = {name: why for name, why in floor.asked.items() if why[1] is None}
    meta = turn.get("meta")
    if (isinstance(meta, dict) and meta.get("note") is True) or floor.policy.interject == "note":
        return
    names = addressed(floor, turn)
    first = {name: (f"addressed by {turn.get('from')}", None) for name in names}
    floor.asked = {**first, **{name: why for name, why in floor.asked.items() if name not in first}}
    if not names and floor.policy.mode in ("declared", "small"):
        floor.called, floor.had = True, {}


def addressed(floor: Floor, turn: dict[str, Any]) -> list[str]:
    """Members a turn is for: by its address, or by name in its text."""
    to = turn.get("to")
    if isinstance(to, str) and to != "all":
        return [to] if to in floor.members else []
    profiles = {name: member.profile for name, member in floor.members.items()}
    return mentions.mentioned(turn.get("content"), profiles).names


def _ask(floor: Floor, name: str, by: str) -> None:
    if name != by and name not in floor.asked:  # nobody wakes itself
        key = pair(by, name)
        floor.pairs[key] = floor.pairs.get(key, 0) + 1
        floor.asked[name] = (f"addressed by {by}", by)
