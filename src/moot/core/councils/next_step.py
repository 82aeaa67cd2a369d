"""Who is given the floor next: one small function for each way of taking turns.

Pure, and total: for a conversation that is not at rest there is always a next step, whatever the
time, so that nothing waits for a step that does not come. A step that would change nothing is none.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from moot.core.councils import next_in_thread
from moot.core.councils.answer_loops import chain_stop, pair_stop
from moot.core.councils.steps import Give, Step
from moot.core.state import thread_controls
from moot.core.state.conversation import Conversation
from moot.core.state.floor import FAILED, NOBODY, QUIET, RUNWAY, SYNTHESIS, TO_ALL, Floor, Spent

#: turns that one summary is of, at most
MOST_SUMMED = 200
#: tokens a call is thought to take before one has been made
FIRST_GUESS = 1000


def step(talk: Conversation, at: int) -> Step | None:
    """None: it is at rest, until somebody says something."""
    floor = talk.floor
    if floor is None:
        return chain_stop(talk.chain) if talk.open else None
    if not talk.open or talk.state.paused or floor.stopped:
        return None
    if floor.wakes:
        return next_in_thread.outside(talk, floor, at) if floor.threaded else None
    found = _in_phase(talk, floor, at)
    if found is None or not _moves(talk, floor, found):
        return None
    if found.stop == NOBODY:
        return _breach(floor, found, at) or found  # a limit that was reached is the reason
    if found.stop or found.close or not found.wakes:
        return found
    found = _summary(talk, floor, at) or found
    return _breach(floor, found, at) or _fewer(floor, found)


def _moves(talk: Conversation, floor: Floor, found: Step) -> bool:
    """Whether anything is other than before once this is recorded; else it would be owed again."""
    if found.wakes or found.stop or found.close or found.called or found.unclear:
        return True
    if (found.round, found.phase) != (floor.round, floor.phase):
        return True
    waiting = {*talk.state.prodded, *floor.asked, floor.chosen}
    return any(name in waiting or name not in floor.had for name in found.skipped)


def _summary(talk: Conversation, floor: Floor, at: int) -> Step | None:
    """Before anybody speaks to whom too much would be hidden, somebody sums it up. Not before all
    may hear what was said."""
    name, window = floor.policy.summarise, floor.policy.window
    blind = floor.policy.blind and floor.round == 1 and floor.phase == "talk"
    if name is None or name not in floor.members or blind or talk.turns <= 0:
        return None
    if talk.turns - floor.summed_up <= 2 * window or thread_controls.is_muted(talk.state, name, at):
        return None
    first = floor.summed_up + 1
    of = (first, min(talk.turns - window, first + MOST_SUMMED - 1))
    give = Give(name, "summarise", "more was said than can be told", of=of)
    return Step(wakes=(give,), round=floor.round, phase=floor.phase)


def _in_phase(talk: Conversation, floor: Floor, at: int) -> Step | None:
    if floor.threaded and floor.phase == "talk":
        return next_in_thread.step(talk, floor, at)
    prodded = [name for name in talk.state.prodded if name in floor.members]
    if prodded:
        return _give(talk, floor, prodded[:1], at, "prodded", forced=True)
    if floor.asked:
        name, ask = next(iter(floor.asked.items()))
        if ask.by is not None and (over := pair_stop(floor, name, ask.by)):
            return over
        return _give(talk, floor, [name], at, ask.why)
    match floor.phase:
        case "talk":
            return _talk(talk, floor, at) if floor.members else None
        case "synthesis":
            return _synthesis(floor)
        case "vote":
            return _vote(talk, floor, at)
        case "over":
            return _over(floor)


def _talk(talk: Conversation, floor: Floor, at: int) -> Step | None:
    """Whether there is a step does not hang on the time; whether it is the last one may."""
    found = MODES[floor.policy.mode](talk, floor, at)
    if found is not None and found.wakes and thread_controls.run_out(talk.state, at):
        return Step(stop=RUNWAY)
    return found


def _synthesis(floor: Floor) -> Step:
    moderator = floor.policy.moderator
    if moderator is None or moderator not in floor.members:
        return Step(round=floor.round, phase="over")
    if floor.unsummed:
        return Step(stop=SYNTHESIS)
    give = Give(moderator, "synthesise", "all have spoken")
    return Step(wakes=(give,), round=floor.round, phase="synthesis")


def _breach(floor: Floor, wanted: Step, at: int) -> Step | None:
    """A hard stop before the next call."""
    limits, spent = floor.policy.limits, floor.spent
    checks: list[tuple[str, float, float | None]] = [
        ("consecutive", floor.streak, limits.consecutive),
        ("calls", spent.calls, limits.calls),
        ("tokens", spent.tokens, limits.tokens),
        ("money", spent.money, limits.money),
        ("minutes", max(0, at - floor.since) / 60_000, limits.minutes),
    ]
    for give in wanted.wakes:
        own = floor.by_agent.get(give.agent)
        if own is not None:
            checks.append((f"calls of {give.agent}", own.calls, limits.agent_calls))
            checks.append((f"tokens of {give.agent}", own.tokens, limits.agent_tokens))
    for name, seen, limit in checks:
        if limit is not None and seen >= limit:
            return Step(stop=name, limit=limit, observed=seen)
    return None


def _fewer(floor: Floor, wanted: Step) -> Step:
    """As many at once as can each make a call before a limit is reached; the others come next."""
    limits, spent = floor.policy.limits, floor.spent
    most = min(limits.calls - spent.calls, limits.consecutive - floor.streak)
    usual = spent.tokens / spent.calls if spent.calls and spent.tokens else FIRST_GUESS
    most = min(most, int((limits.tokens - spent.tokens) / usual))
    if limits.money is not None:
        most = min(most, _affordable(limits.money, spent))
    return replace(wanted, wakes=wanted.wakes[: max(1, most)])


def _affordable(money: float, spent: Spent) -> int:
    """What a call costs is not known before the first one."""
    if not spent.calls:
        return 1
    usual = spent.money / spent.calls
    return int((money - spent.money) / usual) if usual > 0 else spent.calls + 1_000_000


class Left(Struct, frozen=True, kw_only=True):
    """What one member may still use before a limit is reached."""

    calls: int
    tokens: int
    money: float | None = None


def left(floor: Floor, agent: str) -> Left:
    """Shared out among those who have the floor at the same time."""
    limits, spent, sharing = floor.policy.limits, floor.spent, max(1, len(floor.wakes))
    own = floor.by_agent.get(agent, Spent())
    calls, tokens = (
        (limits.calls - spent.calls) // sharing,
        (limits.tokens - spent.tokens) // sharing,
    )
    money = None if limits.money is None else max(0.0, limits.money - spent.money) / sharing
    return Left(
        calls=max(1, min(calls, limits.agent_calls - own.calls)),
        tokens=max(1, min(tokens, limits.agent_tokens - own.tokens)),
        money=money,
    )


def _give(
    talk: Conversation, floor: Floor, names: list[str], at: int, why: str, forced: bool = False
) -> Step:
    """To the first of these that may have it; those before it are passed by, visibly."""
    skipped: dict[str, str] = {}
    for name in names:
        if thread_controls.is_muted(talk.state, name, at):
            skipped[name] = "muted"
        elif name in talk.state.done and not forced and name not in floor.asked:
            skipped[name] = "done"
        else:
            give = Give(name, "speak", why)
            return Step(wakes=(give,), skipped=skipped, round=floor.round, phase=floor.phase)
    return Step(skipped=skipped, round=floor.round, phase=floor.phase)


def _turns(talk: Conversation, floor: Floor, at: int, order: list[str], why: str) -> Step:
    """The next of these who has not had the floor in this round; then the next round."""
    waiting = [name for name in order if name not in floor.had]
    if waiting:
        if floor.policy.blind and floor.round == 1:
            return _blind(talk, floor, waiting, at)
        return _give(talk, floor, waiting, at, why)
    if floor.had and all(came in QUIET for came in floor.had.values()):
        return Step(stop=_quiet(floor))
    if floor.round >= floor.policy.rounds:
        chosen = "moderator" in floor.had.values()
        return Step(stop="moderator" if chosen else "rounds", limit=floor.policy.rounds)
    return Step(round=floor.round + 1)


def _quiet(floor: Floor) -> str:
    """Nobody has anything to add; or nobody could say so."""
    return NOBODY if all(came in FAILED for came in floor.had.values()) else "consensus"


def _blind(talk: Conversation, floor: Floor, names: list[str], at: int) -> Step:
    """All at once, and nobody hears the others."""
    muted = {name: "muted" for name in names if thread_controls.is_muted(talk.state, name, at)}
    wakes = tuple(
        Give(name, "speak", "first round, unheard by the others", blind=floor.opened_turn)
        for name in names
        if name not in muted
    )
    return Step(wakes=wakes, skipped=muted)


def _round_robin(talk: Conversation, floor: Floor, at: int) -> Step:
    return _turns(talk, floor, at, floor.speakers, f"round {floor.round}")


def _declared(talk: Conversation, floor: Floor, at: int) -> Step | None:
    """Everybody once for each thing a person says to all."""
    waiting = [name for name in floor.speakers if name not in floor.had]
    if not floor.called or not waiting:
        return None
    return _give(talk, floor, waiting, at, TO_ALL)


def _addressed(talk: Conversation, floor: Floor, at: int) -> Step | None:
    return None  # who is addressed, prodded or asked was given the floor already


def _raise_hand(talk: Conversation, floor: Floor, at: int) -> Step:
    hands, order = floor.hands or {}, floor.speakers
    if unasked := [name for name in order if name not in hands]:
        wakes = tuple(Give(name, "hand", f"round {floor.round}") for name in unasked)
        return Step(wakes=wakes, round=floor.round)
    raised = [name for name in order if hands.get(name, 0) > 0]
    if not raised:
        failed = bool(hands) and all(floor.had.get(name) in FAILED for name in hands)
        return Step(stop=NOBODY if failed else "consensus")
    raised.sort(key=lambda name: (-hands.get(name, 0), order.index(name)))
    return _turns(talk, floor, at, raised, "raised a hand")


def _moderated(talk: Conversation, floor: Floor, at: int) -> Step:
    moderator = floor.policy.moderator
    if moderator not in floor.members:
        return _round_robin(talk, floor, at)  # nobody is there to choose
    if floor.chosen is not None:
        return _give(talk, floor, [floor.chosen], at, f"chosen by {moderator}")
    if floor.round > floor.policy.rounds:
        return Step(stop="moderator")
    if floor.choices >= floor.policy.rounds * len(floor.speakers):
        quiet = floor.had and all(came in FAILED for came in floor.had.values())
        return Step(stop=NOBODY if quiet else "rounds", limit=floor.policy.rounds)
    return Step(wakes=(Give(str(moderator), "choose", "who is next"),), round=floor.round)


def _vote(talk: Conversation, floor: Floor, at: int) -> Step:
    """Who is muted has no voice, and no vote. Nor has a program outside: it speaks when it is
    called and is asked nothing else, so that it would be waited for in vain."""
    waiting = [name for name in floor.speakers if name not in floor.votes]
    passed = {name: "muted" for name in waiting if thread_controls.is_muted(talk.state, name, at)}
    passed |= {name: "outside" for name in waiting if floor.members[name].outside}
    why = "the proposal is put to the vote"
    wakes = tuple(Give(name, "vote", why) for name in waiting if name not in passed)
    if not wakes:
        return Step(round=floor.round, phase="over")
    return Step(wakes=wakes, skipped=passed, round=floor.round, phase="vote")


def _over(floor: Floor) -> Step | None:
    closes = floor.closer is not None or floor.policy.close == "moderator"
    ends = closes and floor.proposal is not None
    return Step(close=True, phase="over") if ends else None


MODES: dict[str, Callable[[Conversation, Floor, int], Step | None]] = {
    "declared": _declared,
    "round-robin": _round_robin,
    "addressed": _addressed,
    "raise-hand": _raise_hand,
    "moderated": _moderated,
}
