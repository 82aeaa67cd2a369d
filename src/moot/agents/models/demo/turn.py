"""Write a turn: a reply and a point, or the agreements and a vote at the end."""

import re
from collections.abc import Sequence

from moot.agents.models.demo.scene import (
    Scene,
    SeededChoice,
    capitalize_first,
    display_name,
    is_same_name,
    join_names,
    split_sentences,
)
from moot.agents.models.demo.sentences import SENTENCES
from moot.agents.models.protocol import HeardTurn

#: the longest quotation of a person, in characters
LONGEST_QUOTE = 60
WISHES = SENTENCES.wishes
SENTENCE_OF_VOTE = {"yes": "Yes.", "no": "No.", "abstain": "I abstain."}


def write_turn(scene: Scene) -> str:
    """Write two or three sentences."""
    sentences: list[str] = []
    last = scene.last
    to_me = any(is_same_name(name, scene.me) for name in scene.context.addressed)
    if scene.context.addressed and not to_me:
        addressees = join_names([display_name(name) or "you" for name in scene.context.addressed])
        sentences.append(f"That was for {addressees}, so only this from me.")
    elif (objection := scene.objection) is not None:
        sentences.append(_reply_to_objection(scene, objection))
    elif last is not None and (last.kind == "agent" or to_me):
        sentences.extend(_reply(scene, to_me))
    sentences.extend(_own_points(scene, len(sentences)))
    if question := _question(scene, sentences):
        sentences.append(question)
    return " ".join(capitalize_first(sentence) for sentence in sentences)


def _reply(scene: Scene, to_me: bool) -> list[str]:
    """Answer a question, or react to a statement."""
    last = scene.last
    assert last is not None
    name = display_name(last.name)
    questions = [sentence for sentence in split_sentences(last.text) if sentence.endswith("?")]
    is_for_me = questions and (to_me or _mentions(questions[-1], scene.me))
    if is_for_me:
        answer = _unused_sentence(scene, _answers_to(questions[-1]), "answer")
        return [f"{name}, {_lower_first(answer)}" if name else answer]
    if not name:
        return []
    return [_unused_sentence(scene, scene.stance.leads, "lead", prev=name)]


def _reply_to_objection(scene: Scene, objection: HeardTurn) -> str:
    """Reply to a person first, and quote or answer the objection."""
    name = display_name(objection.name)
    questions = [sentence for sentence in split_sentences(objection.text) if sentence.endswith("?")]
    if questions:
        reply = _unused_sentence(scene, _answers_to(questions[-1]), "answer")
    else:
        quote = _quote(objection.text)
        reply = _unused_sentence(scene, SENTENCES.taken_up, "taken-up", quote=quote)
    return f"{name}, {_lower_first(reply)}" if name else reply


def _quote(text: str) -> str:
    """Return the start of the first sentence. It has no mentions, so that it addresses no one."""
    first = re.sub(r"^(@\S+[\s,:]*)+", "", split_sentences(text)[0]).rstrip(".!… ").replace("“", "")
    words = first.replace("”", "").replace('"', "").replace("@", "").split()
    quoted = words
    while len(quoted) > 1 and len(" ".join(quoted)) > LONGEST_QUOTE:
        quoted = quoted[:-1]
    return " ".join(quoted)[:LONGEST_QUOTE] + ("…" if len(quoted) < len(words) else "")


def _mentions(sentence: str, me: str) -> bool:
    """Return whether the sentence contains the name of the speaker."""
    return re.search(rf"\b{re.escape(display_name(me))}\b", sentence, re.I) is not None


def _answers_to(question: str) -> Sequence[str]:
    for bank in SENTENCES.answers:
        if re.search(bank.question, question, re.I):
            return bank.sentences
    return SENTENCES.open_answers


def _own_points(scene: Scene, already: int) -> list[str]:
    stance, sentences = scene.stance, []
    is_moderator = stance.name == "moderator" and scene.round
    if is_moderator and (summary := summarise_wishes(scene.heard, scene.me)):
        sentences.append(summary)
    if scene.round == 0:
        themed = stance.themed.get(scene.topic.theme, ())
        if themed and not already:
            sentences.append(_unused_sentence(scene, themed, "theme"))
        bank = stance.open
    elif scene.round == 1:
        bank = stance.argue
    else:
        bank = stance.settle if scene.round % 2 == 0 else stance.argue
    sentences.append(_unused_sentence(scene, bank, "point"))
    return sentences


def _question(scene: Scene, sentences: list[str]) -> str | None:
    """Sometimes ask a question of a participant other than the last speaker."""
    others = scene.others()
    if not others or sentences[-1].endswith("?") or not scene.draw.chance(3):
        return None
    question = _unused_sentence(scene, scene.stance.asks, "ask", other=others[0])
    return None if scene.was_said(question) else question


def _unused_sentence(scene: Scene, bank: Sequence[str], purpose: str, **names: str) -> str:
    """Return a sentence that no turn contains yet, if one is left."""
    context = scene.context
    choice = SeededChoice(scene.me, context.conversation_id, context.turn_index, purpose)
    order = choice.shuffled(bank)
    topic = scene.topic
    slots = {"do": topic.do, "doing": topic.doing, "thing": topic.thing, **names}
    filled = [sentence.format_map(slots) for sentence in order]
    return next((sentence for sentence in filled if not scene.was_said(sentence)), filled[0])


def _lower_first(sentence: str) -> str:
    """Lower the first letter of a sentence after a name, unless it begins with I."""
    return sentence if re.match(r"I\b", sentence) else sentence[:1].lower() + sentence[1:]


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
        rows_of_others = wishes.items() if keys else ()
        others = [other for other, theirs in rows_of_others if keys[0] not in theirs]
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
