"""Whom a turn means: by its address, by name in its text, or everybody.

Part of the fold: what somebody says is remembered as whom it asks for, never as what was said.
"""

from typing import Any

from msgspec.structs import replace

from moot.core.state import thread_controls
from moot.core.state.floor import DAY, FAILED, LIFTED, NOBODY, TO_ALL, Ask, Floor, Spent, hush, pair
from moot.core.state.floor_continuation import once_more
from moot.core.state.thread_controls import ThreadState
from moot.core.text import mentions
from moot.core.text.names import full_name

Turn = dict[str, Any]

#: stops that need a word of their own, whatever a person says
LASTING = frozenset({DAY, "close"})


def heard(floor: Floor, turn: Turn, state: ThreadState, seq: int, at: int) -> None:
    """Somebody has spoken."""
    role = turn.get("role")
    if role == "user":
        _person(floor, turn, state, seq, at)
    elif role == "agent" and floor.summary is not None and floor.summary.turn < 0:
        floor.summary.turn = turn.get("turnIndex", 0)
    elif role == "agent":
        _member(floor, turn, state, seq)


def opened(floor: Floor, said: dict[str, Any], who: str, seq: int) -> None:
    """The turn it was opened with names somebody: these are asked, and not everybody. Where it is
    not clear who is meant, that is asked first."""
    names, words = said.get("asked"), said.get("unclear")
    known = names if isinstance(names, list) else []
    several = words.items() if isinstance(words, dict) else ()
    unclear = {str(word): list(map(str, of)) for word, of in several if isinstance(of, list)}
    why = f"addressed by {who}"
    asked = {name: Ask(why, seq=seq) for name in floor.members if name in known}
    if asked or unclear:
        floor.asked, floor.called, floor.hushed = asked, False, False
        floor.unclear, floor.unclear_to = unclear, who if unclear else ""


def _member(floor: Floor, turn: Turn, state: ThreadState, seq: int) -> None:
    speaker = full_name(str(turn.get("from", "")))
    floor.streak += 1
    if speaker in floor.members:
        floor.members[speaker].guest = False
    if floor.proposed_in < 0:
        floor.proposed_in = turn.get("turnIndex", 0)
    if floor.had.get(speaker, "failed") in FAILED:
        floor.had[speaker] = "spoke"
    to = _address(turn)
    if to is not None:
        may = state.allow_agent_mentions or floor.threaded or floor.mode == "addressed"
        names = [to] if may and to in floor.members else []
    else:
        may = state.allow_agent_mentions or floor.mode == "addressed"
        names = _mentioned(floor, turn, state).names if may else []
    for name in names:
        _ask(floor, name, speaker, Ask(f"addressed by {speaker}", speaker, seq, to is not None))
        if name in floor.asked and is_task(turn):
            floor.asked[name].task = True


def _ask(floor: Floor, name: str, by: str, ask: Ask) -> None:
    if name != by and name not in floor.asked:  # nobody wakes itself
        key = pair(by, name)
        floor.pairs[key] = floor.pairs.get(key, 0) + 1
        floor.asked[name] = ask


def _person(floor: Floor, turn: Turn, state: ThreadState, seq: int, at: int) -> None:
    floor.streak, floor.pairs = 0, {}
    if floor.policy.renews:
        floor.spent, floor.by_agent, floor.since = Spent(), {}, at
    lifted = floor.stopped not in LASTING if floor.policy.renews else floor.stopped in LIFTED
    if floor.stopped is not None and lifted:
        if floor.stopped == NOBODY:
            once_more(floor)
        floor.stopped = None
        floor.asked = {name: ask for name, ask in floor.asked.items() if ask.by is None}
    meta = turn.get("meta")
    if (isinstance(meta, dict) and meta.get("note") is True) or floor.policy.interject == "note":
        return
    _asks(floor, turn, state, seq)


def _asks(floor: Floor, turn: Turn, state: ThreadState, seq: int) -> None:
    """Who is named comes first; where nobody is, everybody may be meant."""
    to, who = _address(turn), turn.get("from")
    found = _mentioned(floor, turn, state) if to is None else mentions.Mentions([])
    names = found.names if to is None else [to] if to in floor.members else []
    direct = to is not None
    first = {name: Ask(f"addressed by {who}", None, seq, direct, is_task(turn)) for name in names}
    rest = {name: ask for name, ask in floor.asked.items() if name not in first}
    floor.asked = {**first, **rest}
    if floor.threaded and found.unclear:
        floor.unclear = found.unclear
        floor.unclear_to = str(who)
    elif to is None and not names and _to_all(floor, state):
        floor.called, floor.had, floor.called_seq, floor.hushed = True, {}, seq, False
        _ask_who_speaks(floor, state, seq)
    elif to is None and not names and "@" not in str(turn.get("content")):
        hush(floor, str(who))


def _ask_who_speaks(floor: Floor, state: ThreadState, seq: int) -> None:
    """Whoever is at an answer does not hear this: it is asked once more when it is done."""
    if floor.policy.interject == "interrupt":
        return  # it begins anew, and hears it then
    for wake in floor.wakes.values():
        if wake.task == "speak" and wake.agent not in state.done:
            floor.asked.setdefault(wake.agent, Ask(TO_ALL, seq=seq))


def _to_all(floor: Floor, state: ThreadState) -> bool:
    """Whether everybody is asked when nobody in particular is."""
    return floor.mode in ("declared", "small") or (floor.threaded and state.invited_auto)


def _address(turn: Turn) -> str | None:
    to = turn.get("to")
    return to if isinstance(to, str) and to != "all" else None


def is_task(turn: Turn) -> bool:
    meta = turn.get("meta")
    return isinstance(meta, dict) and meta.get("kind") == "task"


def _mentioned(floor: Floor, turn: Turn, state: ThreadState) -> mentions.Mentions:
    """The members; a person's name is no member's, whatever that one is called."""
    profiles: dict[str, dict[str, Any]] = {name: {} for name in thread_controls.people_of(state)}
    profiles |= {name: member.profile for name, member in floor.members.items()}
    found = mentions.mentioned(turn.get("content"), profiles)
    return replace(found, names=[name for name in found.names if name in floor.members])
