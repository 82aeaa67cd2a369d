"""A council, questions beside it, work beside them, and everything that may be done to them."""

from typing import Any

import hypothesis.strategies as st

from moot.core.commands import CancelRun, PauseRun, ResumeRun, TimePassed
from moot.core.runs.start import RunLimits
from moot.core.speaker import Speaker
from moot.core.state.council_policy import ENDLESS_MODES, ROUND_SETTINGS
from tests.support.core.gates import ROSTER
from tests.support.core.random_gates import ANSWERS
from tests.support.core.simulator import ADA, BOT, CHAIR, Life, World, compiled, definition, node


def meaningful(policy: dict[str, Any]) -> dict[str, Any]:
    """Without what its mode has no use for, which no workflow may ask for."""
    if policy.get("mode") not in ENDLESS_MODES:
        return policy
    return {name: said for name, said in policy.items() if name not in ROUND_SETTINGS}


#: keys by principal: two agents in one key, a person, an administrator, nobody in particular
KEYS = {
    who.principal: who
    for who in (CHAIR, ADA, BOT, Speaker("key_two", ("host:cfo", "host:cto")), Speaker("key_eve"))
}
NAMES = (
    "host:cfo", "host:cto", "host:chair", "host:bot", "userbot", "user", "user:ada", "user:key_eve",
    "user:bob", "system", "", 5,
)  # fmt: skip
CONTENTS: tuple[Any, ...] = ("hello", "", None, 1, ["x"], {"vote": "yes"})
NOISE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2.5, 1e308, 10**40, "", "x", "host:cfo", [], ["host:cfo"],
    ["host:cto", 1, "host:bot"], {}, {"on": True}, {"on": False}, {"on": "no"},
    {"targets": ["host:cfo"]}, {"targets": ["user:ada"], "seconds": 1},
    {"targets": "host:bot", "seconds": 1e308}, {"on": True, "allow_agent_mentions": False},
    {"participant_id": "host:bot"}, {"participant_id": "host:cfo", "profile": {"model": "m"}},
    {"participant_id": "user:bob", "profile": 1}, {"participant_id": ["x"]},
)  # fmt: skip
WORDS = (
    "mute", "unmute", "pause", "prod", "done", "ttl_seconds", "discussion", "invited_auto",
    "invite", "uninvite", "dance",
)  # fmt: skip

keys = st.sampled_from(list(KEYS.values()))
names = st.sampled_from(NAMES)
members = st.sampled_from(NAMES[:5])
people = st.sampled_from(("user", "user:ada"))


@st.composite
def turns(draw: st.DrawFn) -> dict[str, Any]:
    """A turn; mostly one that somebody may take."""
    turn: dict[str, Any] = {"content": draw(st.sampled_from(CONTENTS))}
    if draw(st.integers(0, 2)):
        turn |= {"role": "agent", "speakerId": draw(st.one_of(members, members, names))}
    elif draw(st.booleans()):
        turn |= {"role": draw(st.sampled_from(["user", "user", "system"])), "from": draw(names)}
    if draw(st.booleans()):
        turn["to"] = draw(st.one_of(people, names))
    if draw(st.integers(0, 5)) == 0:
        turn["turnIndex"] = draw(st.integers(0, 3))
    if draw(st.integers(0, 5)) == 0:
        made = [f"run0:convo:1:{index}:agent" for index in range(3)]
        turn["messageId"] = draw(st.sampled_from(["m1", "m2", *made]))
    if draw(st.integers(0, 5)) == 0:
        turn["ts"] = draw(st.sampled_from([0, 5, True, -1, 10**15, 10**30]))
    return turn


#: turns that anybody on the roster may take
sound = st.builds(
    lambda speaker, to: {"role": "agent", "speakerId": speaker, "content": "x", **to},
    members, st.sampled_from([{}, {"to": "user"}, {"to": "user:ada"}]),
)  # fmt: skip
#: controls that make sense, and any others
sensible = st.sampled_from(
    [{"invite": "host:bot"}, {"invite": "host:cfo"}, {"uninvite": "host:bot"},
     {"uninvite": "host:cfo"}, {"mute": ["host:cfo", "host:bot"]}, {"prod": ["host:bot"]},
     {"unmute": ["host:cfo", "host:bot"]}, {"pause": True}, {"pause": False}, {"pause": False}]
)  # fmt: skip
controls = st.dictionaries(st.sampled_from(WORDS), st.sampled_from(NOISE), max_size=2)

#: a decision or another outcome, and whether there is a last turn
closes = st.builds(
    lambda said, turn: {"operation": "close", **said, **({"turn": turn} if turn else {})},
    st.sampled_from(
        [{}, {"outcome": 1}, {"decision": "June"}, {"decision": {"text": "x", "citedTurns": [1]}},
         {"decision": {"text": "x", "votes": {"host:bot": "yes"}}}, {"outcome": {"decision": 5}}]
    ),
    st.one_of(st.none(), turns()),
)  # fmt: skip

#: a move: its name, whose key, the value, a number
moves = st.one_of(
    st.tuples(st.just("say"), keys, turns(), st.just(0)),
    st.tuples(st.just("say"), st.just(CHAIR), turns(), st.just(0)),
    st.tuples(st.just("say"), st.just(CHAIR), sound, st.just(0)),
    st.tuples(st.just("say"), st.just(ADA), st.just({"content": "hm"}), st.just(0)),
    st.tuples(st.just("steer"), keys, st.tuples(controls, st.one_of(st.none(), names)), st.just(0)),
    st.tuples(st.just("steer"), st.just(CHAIR), st.tuples(controls, st.none()), st.just(0)),
    st.tuples(st.just("steer"), st.just(CHAIR), st.tuples(sensible, st.none()), st.just(0)),
    st.tuples(st.just("answer"), keys, st.sampled_from(ANSWERS), st.integers(0, 4)),
    st.tuples(st.just("wake"), keys, st.none(), st.sampled_from([0, 1, 20, 1000])),
    st.tuples(st.just("run"), keys, st.none(), st.integers(0, 24)),
    st.tuples(st.just("close"), keys, closes, st.integers(0, 9)),
)
Move = tuple[str, Speaker, Any, int]
stories = st.lists(moves, min_size=10, max_size=50)

QUESTIONS = {
    "ok": node("ok", "core.approvalGate", config={
        "actions": ["accept", "reject", "refine", "edit", "ask"], "requiredApprovals": 2,
        "rejectionPolicy": "majority"}),
    "ask": node("ask", "core.clarificationGate", config={
        "questions": [{"id": "q", "question": "?", "schema": {"type": "integer"}}]}),
    "event": node("event", "core.interrupt", config={
        "kind": "external-event", "data": {"eventType": "e", "correlation": {"id": 1}}}),
    "own": node("own", "core.interrupt", config={"profile": "openwop-interrupt-auth-required"}),
    "late": node("late", "core.approvalGate", config={"timeoutMs": 25}),
    "work": node("work", "acme.work"),
}  # fmt: skip


@st.composite
def councils(draw: st.DrawFn) -> dict[str, Any]:
    config: dict[str, Any] = {"prompt": draw(st.sampled_from([None, "Ship?"]))}
    if draw(st.booleans()):
        config["participants"] = ROSTER
    if draw(st.booleans()):
        config["agentId"] = draw(st.sampled_from(["host:chair"] * 5 + ["host:outsider"]))
    if draw(st.integers(0, 7)) == 0:
        config |= {"lifecycle": "open-exchange-close", "turnCount": draw(st.integers(1, 3))}
    if draw(st.integers(0, 3)) == 0:
        config["timeoutMs"] = 5000
    if draw(st.integers(0, 3)) == 0:
        config["schema"] = {"type": ["string", "null"]}
    beside = draw(st.lists(st.sampled_from(sorted(QUESTIONS)), unique=True))
    channels = {"conversation": {"reducer": "message"}} if draw(st.booleans()) else {}
    gate = node("convo", "core.conversationGate", config=config)
    return definition([gate, *(QUESTIONS[name] for name in beside)], channels=channels)


class Council:
    """Lets moves happen; what is refused has changed nothing (the world sees to it)."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.world = World(limits=RunLimits(duration_ms=5000))
        self.life: Life = self.world.start(compiled(body))

    def happen(self, move: Move) -> None:
        name, who, value, number = move
        world, life = self.world, self.life
        if name == "say" or (name == "close" and number == 0):
            world.refused(life, world.answering("convo", value, who))
        elif name == "steer":
            content, sender = value
            if sender is None or isinstance(sender, str):
                world.refused(life, world.controlling(content, who, sender))
        elif name == "answer":
            place = ("ok", "ask", "event", "own", "late")[number]
            world.refused(life, world.answering(place, value, who))
        elif name == "wake":
            world.pass_time(number)
            world.take(life, TimePassed(world.at))
        elif name == "run":
            self._run(number)

    def _run(self, number: int) -> None:
        world, life = self.world, self.life
        if number == 0:
            world.take(life, CancelRun(world.at))
        elif number < 6:
            policy = "immediate" if number < 3 else "drain-current-node"
            world.refused(life, PauseRun(world.at, policy))
        elif number < 20:
            world.refused(life, ResumeRun(world.at))
        elif any(node_id == "work" for node_id, _ in world.owed(life).activities):
            world.finish(life, "work")
