"""Who is woken in a thread: who is meant by what was said, one after another.

Small threads answer whatever a person says to all; in large ones somebody must be named, unless
all who are invited shall answer. Programs outside are called and not waited for.
"""

from moot.core.councils.answer_loops import pair_stop
from moot.core.councils.steps import Give, Step
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.floor import RUNWAY, TO_ALL, Ask, Floor


def _too_far(floor: Floor, name: str, ask: Ask) -> Step | None:
    """What agents ask of one another ends somewhere, whether the host speaks for them or not."""
    if ask.by is None:
        return None
    seen, limit = floor.streak, floor.policy.limits.consecutive
    over = Step(stop="consecutive", limit=limit, observed=seen) if seen >= limit else None
    return pair_stop(floor, name, ask.by) or over


def step(talk: Conversation, floor: Floor, at: int) -> Step | None:
    """The next one the host speaks for, with everybody who is passed by or called before."""
    if floor.unclear:
        return Step(unclear=floor.unclear, round=floor.round)
    skipped: dict[str, str] = {}
    called: dict[str, str] = {}
    give: Give | None = None
    for name, ask in _waiting(talk, floor).items():
        if (why := _held_back(talk, floor, name, ask, at)) is not None:
            skipped[name] = why
        elif give is not None and not floor.members[name].outside:
            continue
        elif over := _too_far(floor, name, ask):
            if give is None:
                return _told(floor, skipped, called) or over
        elif floor.members[name].outside:
            called[name] = ask.why
        else:
            give = Give(name, "speak", ask.why, reply=ask.seq or None, result=ask.task)
    if give is None:
        return _told(floor, skipped, called)
    return Step(wakes=(give,), skipped=skipped, called=called, round=floor.round)


def outside(talk: Conversation, floor: Floor, at: int) -> Step | None:
    """While somebody speaks for the host, those outside are called all the same."""
    if floor.phase != "talk":
        return None
    called = {
        name: ask.why
        for name, ask in _waiting(talk, floor).items()
        if floor.members[name].outside
        and _held_back(talk, floor, name, ask, at) is None
        and _too_far(floor, name, ask) is None
    }
    return _told(floor, {}, called)


def _told(floor: Floor, skipped: dict[str, str], called: dict[str, str]) -> Step | None:
    if not skipped and not called:
        return None
    return Step(skipped=skipped, called=called, round=floor.round)


def _waiting(talk: Conversation, floor: Floor) -> dict[str, Ask]:
    """Who is prodded, who was named, and where all are meant who has not had the floor."""
    prodded = [name for name in talk.state.prodded if name in floor.members]
    found = {name: Ask("prodded", direct=True) for name in prodded}
    found |= {name: ask for name, ask in floor.asked.items() if name not in found}
    if floor.called:
        ask = Ask(TO_ALL, seq=floor.called_seq)
        rest = [name for name in floor.speakers if name not in floor.had and name not in found]
        found |= dict.fromkeys(rest, ask)
    return found


def _held_back(talk: Conversation, floor: Floor, name: str, ask: Ask, at: int) -> str | None:
    """Why somebody is passed by."""
    if thread_controls.is_muted(talk.state, name, at):
        return "muted"
    if ask.direct:
        return None
    if thread_controls.run_out(talk.state, at):
        return RUNWAY
    return "done" if name in talk.state.done and name not in floor.asked else None
