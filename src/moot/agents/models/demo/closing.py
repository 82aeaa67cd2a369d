"""End a conversation: wishes of the agents, agreements, a decision, votes."""

import re
from collections.abc import Sequence

from msgspec import Struct

from moot.agents.models.demo.scene import (
    Scene,
    capitalize_first,
    display_name,
    is_same_name,
    join_names,
)
from moot.agents.models.demo.seeded_choice import SeededChoice
from moot.agents.models.protocol import HeardTurn


class Wish(Struct, frozen=True):
    """A wish, how to recognise it, and its clause in a decision."""

    words: str
    #: follows "wants"
    wanted: str
    #: the clause in a decision to proceed, and in one to wait
    going: str
    waiting: str


#: in the order of a decision
WISHES = {
    "start": Wish(
        r"\b(begin|start|slice|pilot|trial|try it|narrow piece|first piece|smaller version"
        r"|small(est)? (part|step|one)|(one|first) (part|case|piece|step)|piece that hurts)\b",
        "a small start",
        "take one small step towards {doing}",
        "",
    ),
    "measure": Wish(
        r"measur|figure|number|baseline|how (much|many|often)|percent|%|threshold",
        "figures",
        "measure before and after",
        "measure for two weeks",
    ),
    "tell": Wish(
        r"notice (given|in writing|period)|\btold\b|\btell ten|announce|customers (who|hear)"
        r"|in writing|contract|written down|surprise",
        "nobody taken by surprise",
        "tell everybody concerned beforehand",
        "ask everybody concerned",
    ),
    "back": Wish(
        r"way back|\bundo\b|(be|is|each be) undone|taken? (it )?back|behind a switch",
        "a way back",
        "keep a way back",
        "find out how it could be undone",
    ),
    "limit": Wish(
        r"\bcap\b|fixed (sum|date|limit)|budget|pays? back|in two parts|half of it|the bill\b",
        "a limit on the cost",
        "set a limit on the cost",
        "work out what it costs",
    ),
    "wait": Wish(
        r"not convinced|burden of proof|nothing changes|goes wrong today|not yet the problem"
        r"|tidy is not a reason|nobody has seen|prove us wrong|\bdoubt|stands still"
        r"|what is different",
        "a reason before any change",
        "stop if it does not help",
        "look for a reason that holds up",
    ),
}

SENTENCE_OF_VOTE = {"yes": "Yes.", "no": "No.", "abstain": "I abstain."}


def find_wishes(turns: Sequence[HeardTurn], without: str = "") -> dict[str, list[str]]:
    """Return the wishes of each agent, most frequent first."""
    texts: dict[str, list[str]] = {}
    for turn in turns:
        name = display_name(turn.name)
        if turn.kind == "agent" and name and not is_same_name(name, without):
            texts.setdefault(name, []).append(turn.text)
    wishes = {}
    for name, parts in texts.items():
        text = " ".join(parts)
        counts = {key: len(re.findall(wish.words, text, re.I)) for key, wish in WISHES.items()}
        present = [key for key in WISHES if counts[key]]
        wishes[name] = sorted(present, key=lambda key: -counts[key])
    return wishes


def summarise_wishes(turns: Sequence[HeardTurn], me: str) -> str | None:
    """Return ``So far I hear Ada on figures and Bo on a small start.``"""
    first_wishes = {name: keys[0] for name, keys in find_wishes(turns, me).items() if keys}
    if len(first_wishes) < 2:
        return None
    parts = [f"{name} on {WISHES[key].wanted}" for name, key in first_wishes.items()]
    return f"So far I hear {join_names(parts)}."


def list_agreements(wishes: dict[str, list[str]]) -> list[str]:
    shared = []
    for key, wish in WISHES.items():
        names = [name for name, keys in wishes.items() if key in keys]
        if len(names) > 1:
            verb = "all want" if len(names) == len(wishes) > 2 else "want"
            shared.append(f"{join_names(names)} {verb} {wish.wanted}")
    return shared


def list_disagreements(wishes: dict[str, list[str]]) -> list[str]:
    """List the first wishes of some agents that others do not share."""
    names_by_wish: dict[str, list[str]] = {}
    for name, keys in wishes.items():
        if keys:
            names_by_wish.setdefault(keys[0], []).append(name)
    rows = []
    for key, names in names_by_wish.items():
        others = [name for name, keys in wishes.items() if key not in keys]
        want = "want" if len(names) > 1 else "wants"
        if others:
            do = "do" if len(others) > 1 else "does"
            wish_text = WISHES[key].wanted
            rows.append(
                f"{join_names(names)} {want} {wish_text},"
                f" on which {join_names(others)} {do} not insist"
            )
    if rows or len(names_by_wish) < 2:
        return rows
    return [
        f"{join_names(names)} would put {WISHES[key].wanted} first"
        for key, names in names_by_wish.items()
    ]


def differences_by_agent(wishes: dict[str, list[str]]) -> list[dict[str, str]]:
    """List for each agent its first wish, if others do not share it."""
    rows = []
    for name, keys in wishes.items():
        others = [
            other for other, other_wishes in wishes.items() if keys and keys[0] not in other_wishes
        ]
        if others:
            do = "do" if len(others) > 1 else "does"
            text = f"wants {WISHES[keys[0]].wanted}, on which {join_names(others)} {do} not insist"
            rows.append({"by": name, "text": text})
    return rows


def silent_agents(scene: Scene, names: list[str]) -> list[str]:
    return [name for name in names if not _count_turns(scene, name)]


def least_heard_agent(scene: Scene, names: list[str]) -> str:
    """Return the agent with the fewest turns, the first of them in the order of ``names``."""
    return min(names, key=lambda name: _count_turns(scene, name))


def _count_turns(scene: Scene, name: str) -> int:
    called = scene.context.called.get(name, name)
    return sum(turn.kind == "agent" and is_same_name(turn.name, called) for turn in scene.heard)


def propose_decision(scene: Scene) -> str:
    """Return a proposal with a clause for every wish."""
    wish_keys = {key for keys in find_wishes(scene.heard, scene.me).values() for key in keys}
    present = [WISHES[key] for key in WISHES if key in wish_keys]
    if "start" in wish_keys or not present:
        clauses = [wish.going for wish in present or [WISHES["start"], WISHES["back"]]]
    else:
        clauses = ["do not {do} yet", *(wish.waiting for wish in present)]
    topic = scene.topic
    filled = [clause.format(do=topic.do, doing=topic.doing) for clause in clauses]
    return f"{capitalize_first(join_names(filled))}; look at it again in two weeks."


def write_synthesis(scene: Scene) -> str:
    """Write agreements, disagreements and a proposed decision, one paragraph each."""
    wishes = find_wishes(scene.heard, scene.me)
    agreed = "; ".join(list_agreements(wishes)) or "only on the question so far"
    disagreed = "; ".join(list_disagreements(wishes)) or "nobody has said anything against it"
    return (
        f"Where we agree: {agreed}.\n"
        f"Where we differ: {disagreed}.\n"
        f"Proposed decision: {propose_decision(scene)}"
    )


def choose_vote(scene: Scene) -> tuple[str, str]:
    """Return yes, no or abstain, and the reason. An agent votes the same each time."""
    return SeededChoice(scene.me, scene.context.conversation_id, "vote").pick(scene.stance.votes)


def write_vote(scene: Scene) -> str:
    choice, reason = choose_vote(scene)
    return f"{SENTENCE_OF_VOTE[choice]} {reason}"
