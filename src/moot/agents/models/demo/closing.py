"""How a conversation ends: what each one wants, where they agree, a decision, votes."""

import re
from collections.abc import Sequence

from msgspec import Struct

from moot.agents.models.demo.choice import Draw
from moot.agents.models.demo.scene import Scene, capital, listed, same, shown
from moot.agents.models.protocol import Said


class Wish(Struct, frozen=True):
    """Something people want, how it is recognised, and what it becomes in a decision."""

    words: str
    #: after "wants"
    wanted: str
    #: as a part of a decision to go on, and of one to wait
    going: str
    waiting: str


#: in the order in which they stand in a decision
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


def wishes(heard: Sequence[Said], without: str = "") -> dict[str, list[str]]:
    """Agent -> what it has asked for, most often first."""
    texts: dict[str, list[str]] = {}
    for said in heard:
        name = shown(said.name)
        if said.kind == "agent" and name and not same(name, without):
            texts.setdefault(name, []).append(said.text)
    found = {}
    for name, parts in texts.items():
        text = " ".join(parts)
        counts = {key: len(re.findall(wish.words, text, re.I)) for key, wish in WISHES.items()}
        present = [key for key in WISHES if counts[key]]
        found[name] = sorted(present, key=lambda key: -counts[key])
    return found


def hears(heard: Sequence[Said], me: str) -> str | None:
    """``So far I hear Ada on figures and Bo on a small start.``"""
    found = {name: keys[0] for name, keys in wishes(heard, me).items() if keys}
    if len(found) < 2:
        return None
    parts = [f"{name} on {WISHES[key].wanted}" for name, key in found.items()]
    return f"So far I hear {listed(parts)}."


def agreements(found: dict[str, list[str]]) -> list[str]:
    shared = []
    for key, wish in WISHES.items():
        names = [name for name, keys in found.items() if key in keys]
        if len(names) > 1:
            both = "all want" if len(names) == len(found) > 2 else "want"
            shared.append(f"{listed(names)} {both} {wish.wanted}")
    return shared


def disagreements(found: dict[str, list[str]]) -> list[str]:
    """What comes first for some and is not asked for by others, by name."""
    firsts: dict[str, list[str]] = {}
    for name, keys in found.items():
        if keys:
            firsts.setdefault(keys[0], []).append(name)
    rows = []
    for key, names in firsts.items():
        others = [name for name, keys in found.items() if key not in keys]
        want = "want" if len(names) > 1 else "wants"
        if others:
            do = "do" if len(others) > 1 else "does"
            wanted = WISHES[key].wanted
            rows.append(
                f"{listed(names)} {want} {wanted}, on which {listed(others)} {do} not insist"
            )
    if rows or len(firsts) < 2:
        return rows
    return [
        f"{listed(names)} would put {WISHES[key].wanted} first" for key, names in firsts.items()
    ]


def differences(found: dict[str, list[str]]) -> list[dict[str, str]]:
    """The same for each of them: who, and what is wanted that not all ask for."""
    rows = []
    for name, keys in found.items():
        others = [other for other, theirs in found.items() if keys and keys[0] not in theirs]
        if others:
            do = "do" if len(others) > 1 else "does"
            text = f"wants {WISHES[keys[0]].wanted}, on which {listed(others)} {do} not insist"
            rows.append({"by": name, "text": text})
    return rows


def unheard(scene: Scene, names: list[str]) -> list[str]:
    return [name for name in names if not _times_heard(scene, name)]


def least_heard(scene: Scene, names: list[str]) -> str:
    """Who has spoken least, the first of them in the order they are given in."""
    return min(names, key=lambda name: _times_heard(scene, name))


def _times_heard(scene: Scene, name: str) -> int:
    called = scene.context.called.get(name, name)
    return sum(said.kind == "agent" and same(said.name, called) for said in scene.heard)


def decision(scene: Scene) -> str:
    """A proposal everybody has a part in."""
    wanted = {key for keys in wishes(scene.heard, scene.me).values() for key in keys}
    present = [WISHES[key] for key in WISHES if key in wanted]
    if "start" in wanted or not present:
        clauses = [wish.going for wish in present or [WISHES["start"], WISHES["back"]]]
    else:
        clauses = ["do not {do} yet", *(wish.waiting for wish in present)]
    topic = scene.topic
    filled = [clause.format(do=topic.do, doing=topic.doing) for clause in clauses]
    return f"{capital(listed(filled))}; look at it again in two weeks."


def synthesis(scene: Scene) -> str:
    """Agreements, disagreements by name, a proposed decision: one paragraph each."""
    found = wishes(scene.heard, scene.me)
    agreed = "; ".join(agreements(found)) or "only on the question so far"
    differ = "; ".join(disagreements(found)) or "nobody has said anything against it"
    return (
        f"Where we agree: {agreed}.\n"
        f"Where we differ: {differ}.\n"
        f"Proposed decision: {decision(scene)}"
    )


def vote(scene: Scene) -> tuple[str, str]:
    """yes, no or abstain, and why. The same one has the same opinion however often it is asked."""
    return Draw(scene.me, scene.context.conversation_id, "vote").pick(scene.stance.votes)


def spoken_vote(scene: Scene) -> str:
    choice, reason = vote(scene)
    return f"{SENTENCE_OF_VOTE[choice]} {reason}"
