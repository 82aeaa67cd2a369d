"""Who speaks in a conversation that the host leads: its policy, its bounds, and where it stands.

Folded from the log like everything else. A wake is a recorded word to a member that it is its turn;
each ends once, by what the member says, by its silence, or by a person.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from moot.core.state.council_policy import SMALL, THREADED, Policy, read
from moot.core.text.names import full_name, is_person

Task = Literal["speak", "hand", "choose", "synthesise", "vote", "summarise"]

#: tasks whose answer is a turn
SPOKEN = frozenset({"speak", "synthesise", "summarise"})

#: two agents have answered one another too often
PAIR = "pair"
#: stops that a person's turn lifts; the others need a word of their own
LIFTED = frozenset({"consecutive", PAIR, "nobody-answered"})
#: a tenant has used up what it may in a day
DAY = "budget of the day"
#: the time that a person has given agents to go on by themselves
RUNWAY = "ttl"
#: stops at which a conversation is meant to end
NATURAL = frozenset({"rounds", "consensus", "moderator"})
#: everybody who was asked failed, declined or was silent; the moderator did when it was to sum up
NOBODY, SYNTHESIS = "nobody-answered", "synthesis"

#: ways to have the floor and not to use it, and those of them that nobody has chosen
FAILED = frozenset({"silent", "failed", "refused", "muted"})
QUIET = FAILED | {"passed", "done"}

#: turns that wait for a person to let them in
MOST_HELD = 32

#: the end of the year 9999
NEVER = 253_402_300_799_999


class Member(Struct, omit_defaults=True):
    """Somebody who is given the floor."""

    profile: dict[str, Any] = {}
    #: the host speaks for it when it knows the agent; otherwise it is waited for
    driven: bool = True
    #: a program that reads by itself: in a thread it is called, and not waited for
    outside: bool = False
    #: an agent has brought it along, and it has not spoken yet
    guest: bool = False


class Ask(Struct, omit_defaults=True):
    """Somebody is to be given the floor out of turn."""

    why: str
    #: the member that asked for it
    by: str | None = None
    #: where the turn stands that asked, and whether it was for this member alone
    seq: int = 0
    direct: bool = False
    #: it is a task, whose answer is its result
    task: bool = False


class Spent(Struct, omit_defaults=True):
    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class Unpaid(Struct):
    """A wake that ended in the middle of a call, whose cost is not known yet."""

    agent: str
    seq: int


class Wake(Struct, omit_defaults=True):
    agent: str
    task: Task
    #: the newest turn it is to answer
    turn: int
    seq: int
    since: int
    due: int
    #: hears nothing that was said after this turn by the others
    blind: int | None = None
    #: type of event -> how often its agent has said it
    said: dict[str, int] = {}
    #: tool call that has not come back -> where it stands
    calls: dict[str, int] = {}
    #: the turns that are to be summed up, from and to
    of: tuple[int, int] | None = None
    #: what is known of its cost, and whether it waits for a model
    spent: Spent = msgspec.field(default_factory=Spent)
    asking: bool = False
    #: where the turn stands that it answers, and whether that is a task
    reply: int | None = None
    result: bool = False


class ToolAsk(Struct, omit_defaults=True):
    """A member wants to use a tool that needs a person's word."""

    agent: str
    tool: str
    wake: str
    since: int
    seq: int
    #: what it is to be given, in brief
    given: str = ""
    allowed: bool | None = None


class Summary(Struct, omit_defaults=True):
    """The newest one: the turn it is, and the turns it is of."""

    turn: int
    first: int
    until: int


class Floor(Struct, omit_defaults=True):
    """Where a led conversation stands."""

    policy: Policy = Policy()
    members: dict[str, Member] = {}
    phase: Literal["talk", "synthesis", "vote", "over"] = "talk"
    round: int = 1
    #: who had the floor in this round, with what came of it
    had: dict[str, str] = {}
    #: who is to be given the floor out of turn
    asked: dict[str, Ask] = {}
    #: who was asked for while he was muted
    later: dict[str, Ask] = {}
    #: words of a person that could mean several, with whom, or everybody; and who said them
    unclear: dict[str, list[str]] = {}
    unclear_to: str = ""
    #: it was said that nobody is woken by what is said to all, since there are so many
    hushed: bool = False
    wakes: dict[str, Wake] = {}
    #: of this round: member -> how much it wants to speak; 0 is not at all
    hands: dict[str, float] | None = None
    #: whom the moderator has chosen
    chosen: str | None = None
    choices: int = 0
    votes: dict[str, dict[str, Any]] = {}
    #: the moderator's proposal, and the turn it was made in
    proposal: str | None = None
    proposed_in: int = 0
    #: the moderator was to sum up and did not
    unsummed: bool = False
    #: the person in whose name it is closed once everybody has voted
    closer: str | None = None
    #: a person has said something to all that has not been answered in this round
    called: bool = False
    called_seq: int = 0
    #: turns of members since a person spoke; wakes of one member by another since then
    streak: int = 0
    pairs: dict[str, int] = {}
    spent: Spent = msgspec.field(default_factory=Spent)
    by_agent: dict[str, Spent] = {}
    unpaid: dict[str, Unpaid] = {}
    since: int = 0
    stopped: str | None = None
    #: the first turn of a blind round
    opened_turn: int = 0
    #: what the newest summary is, and up to which turn one was asked for
    summary: Summary | None = None
    summed_up: int = 0
    #: dangerous tools that members want to use: number -> what, and whether a person agrees
    asks: dict[str, ToolAsk] = {}
    #: turns that were finished while their speaker might not speak: name -> turn
    held: dict[str, dict[str, Any]] = {}

    @property
    def mode(self) -> str:
        """How turns are taken just now."""
        if self.policy.mode != "auto":
            return self.policy.mode
        here = sum(not member.guest for member in self.members.values())
        return "small" if here <= SMALL else "large"

    @property
    def threaded(self) -> bool:
        return self.policy.mode in THREADED

    @property
    def speakers(self) -> list[str]:
        """Those who take part in rounds: not the moderator, unless nobody else is there."""
        moderator = self.policy.moderator
        return [name for name in self.members if name != moderator] or list(self.members)


#: no word of a person, but what he said to all where too many are there
TO_MANY = ""
#: why somebody is asked whom nobody named
TO_ALL = "a person spoke to all"


def pair(one: str, other: str) -> str:
    return "|".join(sorted((one, other)))


# -- the fold ---------------------------------------------------------------------------------


def was_set(floor: Floor | None, said: dict[str, Any], turn: int, at: int) -> Floor | None:
    """``moot.participation.set``: a policy, and whom it leads."""
    policy = read(said.get("policy", {}))
    if policy is None:
        return floor
    members = {
        str(item.get("agentId", "")): Member(
            profile=item.get("profile", {}),
            driven=item.get("driven") is not False,
            outside=item.get("outside") is True,
        )
        for item in said.get("members", [])
        if not is_person(str(item.get("agentId", "")))
    }
    if floor is None:
        floor = Floor(policy=policy, members=members, since=at, opened_turn=turn)
        begun = said.get("called") is not False
        floor.called = begun and floor.mode != "large"
        if begun:
            hush(floor)
        return floor
    anew = policy.mode != floor.policy.mode and floor.phase != "vote"
    floor.policy, floor.members = policy, members
    if anew:  # another way of taking turns begins with its first round
        floor.phase, floor.round, floor.opened_turn = "talk", 1, turn
        floor.had, floor.hands, floor.chosen, floor.choices = {}, None, None, 0
        floor.called = False
    floor.unsummed = False
    return floor


def hush(floor: Floor, who: str = "") -> None:
    """A person has said something to all of a thread that has grown large: who said it is told
    once that nobody is woken by that."""
    if floor.policy.mode == "auto" and floor.mode == "large" and not floor.hushed:
        floor.unclear, floor.unclear_to, floor.hushed = {TO_MANY: []}, who, True


def decided(floor: Floor, said: dict[str, Any], sequence: int, at: int) -> None:
    """``moot.participation.decided``: the floor is given."""
    if said.get("round", floor.round) != floor.round:
        floor.round, floor.had, floor.hands = said["round"], {}, None
    if said.get("phase", floor.phase) != floor.phase:
        floor.phase = said["phase"]
    for item in said.get("skipped", []):
        floor.had[str(item["agentId"])] = str(item["reason"])
        _settled(floor, str(item["agentId"]))
    for item in said.get("called", []):
        floor.had[str(item["agentId"])] = "called"
        _settled(floor, str(item["agentId"]))
    if "unclear" in said:
        floor.unclear = {}
    limit = floor.policy.limits.silence * 1000
    for item in said.get("wakes", []):
        name, task = item["agentId"], item["task"]
        floor.wakes[item["wakeId"]] = Wake(
            agent=name, task=task, turn=item.get("turn", 0), seq=sequence, since=at,
            due=at + limit, blind=item.get("blind"), of=_span(item.get("of")),
            reply=item.get("replyTo"), result=item.get("result") is True,
        )  # fmt: skip
        if task != "summarise":
            _settled(floor, name)


def _span(said: Any) -> tuple[int, int] | None:
    if not isinstance(said, list) or len(said) != 2 or not all(type(n) is int for n in said):
        return None
    return said[0], said[1]


def _settled(floor: Floor, name: str) -> None:
    floor.asked.pop(name, None)
    if name == floor.chosen:
        floor.chosen = None


def answered(floor: Floor, said: dict[str, Any]) -> None:
    """``moot.participation.answered``: a wake is over."""
    wake_id = str(said.get("wakeId", ""))
    wake = floor.wakes.pop(wake_id, None)
    floor.asks = {name: ask for name, ask in floor.asks.items() if ask.wake != wake_id}
    if wake is None:
        return
    outcome = said.get("outcome", "failed")
    if outcome == "superseded" and wake.task != "speak":
        return  # it is asked no longer
    answer = said.get("answer")
    answer = answer if isinstance(answer, dict) else {}
    match wake.task:
        case "speak":
            floor.had[wake.agent] = outcome
            if outcome == "superseded":
                floor.had.pop(wake.agent, None)
                again = Ask("was interrupted", seq=wake.reply or 0, task=wake.result)
                floor.asked.setdefault(wake.agent, again)
        case "hand":
            _hand(floor, wake.agent, answer, outcome)
        case "choose":
            floor.choices += 1
            _chosen(floor, answer)
        case "synthesise":
            _synthesised(floor, answer, outcome)
        case "summarise":
            _summed_up(floor, wake, outcome)
        case "vote":
            floor.votes[wake.agent] = answer if outcome == "answered" else {"vote": "abstain"}


def _hand(floor: Floor, name: str, answer: dict[str, Any], outcome: str) -> None:
    floor.hands = floor.hands or {}
    wants = answer.get("urgency") if answer.get("raised") is True else 0
    floor.hands[name] = float(wants) if isinstance(wants, int | float) else 0.0
    if outcome in FAILED:
        floor.had[name] = outcome


def _synthesised(floor: Floor, answer: dict[str, Any], outcome: str) -> None:
    floor.unsummed = outcome in FAILED
    if not floor.unsummed:
        floor.proposal = str(answer.get("decision") or "") or None
        floor.proposed_in = -1 if outcome == "spoke" else 0  # its turn comes right after this
        floor.phase = "vote" if floor.policy.vote and floor.proposal else "over"


def _summed_up(floor: Floor, wake: Wake, outcome: str) -> None:
    first, until = wake.of or (0, 0)
    floor.summed_up = until
    if outcome == "spoke":  # its turn comes right after this
        floor.summary = Summary(-1, first, until)


def _chosen(floor: Floor, answer: dict[str, Any]) -> None:
    """A choice that is none falls back to the declared order: the next in it."""
    if answer.get("stop") is True:
        floor.had = dict.fromkeys(floor.speakers, "moderator")
        floor.round = floor.policy.rounds + 1
        return
    wanted = answer.get("next")
    floor.chosen = wanted if wanted in floor.speakers else next_in_order(floor)


def next_in_order(floor: Floor) -> str | None:
    """Everybody once, in the declared order; then from the beginning."""
    waiting = [name for name in floor.speakers if name not in floor.had]
    if not waiting:
        floor.had = {}
    return next(iter(waiting or floor.speakers), None)


def stirred(floor: Floor, wake: Wake, at: int, silent_ms: int = 0) -> None:
    """Somebody who has the floor was heard: its silence counts from then."""
    if wake.due != NEVER:
        wake.due = max(wake.due, at + floor.policy.limits.silence * 1000 - silent_ms)


def number(value: Any) -> int:
    return value if type(value) is int and 0 < value < 2**53 else 0


def stopped(floor: Floor, said: dict[str, Any]) -> None:
    """``moot.participation.stopped``: nobody is woken until somebody says so."""
    reason = str(said.get("reason", ""))
    if reason in NATURAL:
        floor.phase = "synthesis" if floor.policy.moderator in floor.members else "over"
    else:
        floor.stopped = reason


def joined(floor: Floor, name: str, profile: dict[str, Any], outside: bool, by: str) -> None:
    """Somebody new is given the floor like the others; people take it when they like. In a thread
    he is not meant by what was said before. Agents that bring others do not make it larger."""
    if is_person(name):
        return
    known = floor.members.get(name)
    if floor.threaded and known is None:
        floor.had[name] = "joined"
    guest = not is_person(by) and full_name(by) != name
    guest = guest if known is None else known.guest and guest
    floor.members[name] = Member(profile=profile, outside=outside, guest=guest)


def left(floor: Floor, name: str) -> None:
    floor.members.pop(name, None)
    floor.later.pop(name, None)
    _settled(floor, name)
    floor.asks = {ask_id: ask for ask_id, ask in floor.asks.items() if ask.agent != name}
    floor.wakes = {wake_id: wake for wake_id, wake in floor.wakes.items() if wake.agent != name}
