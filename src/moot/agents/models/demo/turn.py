"""Write a turn: a reply to the last speaker, a point, sometimes a question."""

import re
from collections.abc import Sequence

from moot.agents.models.demo.closing import summarise_wishes
from moot.agents.models.demo.scene import (
    Scene,
    capitalize_first,
    display_name,
    is_same_name,
    join_names,
    split_sentences,
)
from moot.agents.models.demo.seeded_choice import SeededChoice
from moot.agents.models.protocol import HeardTurn

#: pattern of a question -> answers that fit any speaker
ANSWERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"\b(number|figure|percent|how (much|many)|threshold|cost)\b",
        (
            "Complaints under 2 % in a pilot of 200 would do for me.",
            "A tenth less effort each week, over a month, would be enough.",
            "If fewer than one case in fifty goes wrong, I am satisfied.",
            "Anything that pays for itself within two quarters.",
        ),
    ),
    (
        r"\b(when|how (long|soon)|date|deadline)\b",
        (
            "Two weeks for a first look, and a decision on the day after.",
            "Not before the month is closed, and not later than the next one.",
            "As soon as one person can be free for it, for ten days.",
        ),
    ),
    (
        r"\b(who|whom|whose)\b",
        (
            "One person, by name, and not a committee.",
            "Whoever has to live with the result.",
            "Those it affects first, and before they find out by themselves.",
        ),
    ),
    (
        r"\bwhy\b",
        (
            "Because the other order costs more and teaches less.",
            "Because what we have can wait a week, and a wrong turn cannot be sold as a plan.",
            "Because I would have to explain it afterwards.",
        ),
    ),
    (
        r"\b(smallest|first|which (part|piece|step))\b",
        (
            "The one part that causes most of the work today.",
            "A single case, end to end, with the old way still there.",
            "The piece we could throw away without tears.",
        ),
    ),
    (
        r"\b(worst|wrong|risk|breaks?)\b",
        (
            "The worst is half a change that nobody finishes.",
            "That we pay for it twice: once in work and once in trust.",
            "That it nearly works, which is harder to leave than what fails.",
        ),
    ),
    (
        r"\b(stop|undo|give up)\b",
        (
            "If nothing is better after two weeks, we go back; that is the whole exit.",
            "I would stop the moment it needs a second exception.",
            "One customer who has to call us twice about it.",
        ),
    ),
    (
        r"\b(do|would|could|can|will|is|are|shall|should) (you|we|it|that|this)\b",
        (
            "Yes, with one condition.",
            "Rather yes, if it stays small.",
            "Not as it stands, but nearly.",
        ),
    ),
)  # fmt: skip

#: answers to all other questions
OPEN_ANSWERS = (
    "My answer is short.",
    "Let me take that first.",
    "A fair question.",
)

#: replies to an objection of a person
TAKEN_UP = (
    "“{quote}” changes the order of things for me.",
    "I take “{quote}” as a condition for whatever we decide.",
    "If “{quote}” holds, it weighs more than my first point.",
    "“{quote}”: that has to be in the decision, whichever way it goes.",
)
#: the longest quotation of a person, in characters
LONGEST_QUOTE = 60


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
        reply = _unused_sentence(scene, TAKEN_UP, "taken-up", quote=_quote(objection.text))
    return f"{name}, {_lower_first(reply)}" if name else reply


def _quote(text: str) -> str:
    """Return the start of the first sentence, without mentions, because a quotation must address
    no one."""
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
    for pattern, answers in ANSWERS:
        if re.search(pattern, question, re.I):
            return answers
    return OPEN_ANSWERS


def _own_points(scene: Scene, already: int) -> list[str]:
    stance, sentences = scene.stance, []
    if (
        stance.name == "moderator"
        and scene.round
        and (summary := summarise_wishes(scene.heard, scene.me))
    ):
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
    order = SeededChoice(scene.me, context.conversation_id, context.turn_index, purpose).shuffled(
        bank
    )
    topic = scene.topic
    slots = {"do": topic.do, "doing": topic.doing, "thing": topic.thing, **names}
    filled = [sentence.format_map(slots) for sentence in order]
    return next((sentence for sentence in filled if not scene.was_said(sentence)), filled[0])


def _lower_first(sentence: str) -> str:
    """Lower the first letter of a sentence after a name, unless it begins with I."""
    return sentence if re.match(r"I\b", sentence) else sentence[:1].lower() + sentence[1:]
