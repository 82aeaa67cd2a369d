"""One turn in words: an answer to who spoke last, a point of one's own, sometimes a question."""

import re
from collections.abc import Sequence

from moot.agents.models.demo.choice import Draw
from moot.agents.models.demo.closing import hears
from moot.agents.models.demo.scene import Scene, capital, listed, same, sentences, shown
from moot.agents.models.protocol import Said

#: what a question asks for -> answers that fit it, whoever gives them
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

#: for questions that fit none of these
OPEN_ANSWERS = (
    "My answer is short.",
    "Let me take that first.",
    "A fair question.",
)

#: to a person who put something in
TAKEN_UP = (
    "“{quote}” changes the order of things for me.",
    "I take “{quote}” as a condition for whatever we decide.",
    "If “{quote}” holds, it weighs more than my first point.",
    "“{quote}”: that has to be in the decision, whichever way it goes.",
)
#: characters of a person's words that are quoted
LONGEST_QUOTE = 60


def turn(scene: Scene) -> str:
    """Two or three sentences."""
    said: list[str] = []
    last = scene.last
    to_me = any(same(name, scene.me) for name in scene.context.addressed)
    if scene.context.addressed and not to_me:
        meant = listed([shown(name) or "you" for name in scene.context.addressed])
        said.append(f"That was for {meant}, so only this from me.")
    elif (objection := scene.objection) is not None:
        said.append(_taken_up(scene, objection))
    elif last is not None and (last.kind == "agent" or to_me):
        said.extend(_reply(scene, to_me))
    said.extend(_points(scene, len(said)))
    if question := _asked(scene, said):
        said.append(question)
    return " ".join(capital(sentence) for sentence in said)


def _reply(scene: Scene, to_me: bool) -> list[str]:
    """To somebody who asked, an answer; to somebody who said something, what one makes of it."""
    last = scene.last
    assert last is not None
    name = shown(last.name)
    asked = [sentence for sentence in sentences(last.text) if sentence.endswith("?")]
    mine = asked and (to_me or _names(asked[-1], scene.me))
    if mine:
        answer = _fresh(scene, _answers_to(asked[-1]), "answer")
        return [f"{name}, {_lower(answer)}" if name else answer]
    if not name:
        return []
    return [_fresh(scene, scene.stance.leads, "lead", prev=name)]


def _taken_up(scene: Scene, objection: Said) -> str:
    """What a person said is answered first, in words that show it was heard."""
    name = shown(objection.name)
    asked = [sentence for sentence in sentences(objection.text) if sentence.endswith("?")]
    if asked:
        words = _fresh(scene, _answers_to(asked[-1]), "answer")
    else:
        words = _fresh(scene, TAKEN_UP, "taken-up", quote=_quote(objection.text))
    return f"{name}, {_lower(words)}" if name else words


def _quote(text: str) -> str:
    """The first sentence, as far as it is short, without the name of whom it is put to. Who is
    quoted calls nobody a second time."""
    first = re.sub(r"^(@\S+[\s,:]*)+", "", sentences(text)[0]).rstrip(".!… ").replace("“", "")
    words = first.replace("”", "").replace('"', "").replace("@", "").split()
    kept = words
    while len(kept) > 1 and len(" ".join(kept)) > LONGEST_QUOTE:
        kept = kept[:-1]
    return " ".join(kept)[:LONGEST_QUOTE] + ("…" if len(kept) < len(words) else "")


def _names(sentence: str, me: str) -> bool:
    """Whether a question is put to me; by a name in it, as people do in a room."""
    return re.search(rf"\b{re.escape(shown(me))}\b", sentence, re.I) is not None


def _answers_to(question: str) -> Sequence[str]:
    for pattern, answers in ANSWERS:
        if re.search(pattern, question, re.I):
            return answers
    return OPEN_ANSWERS


def _points(scene: Scene, already: int) -> list[str]:
    stance, said = scene.stance, []
    if stance.name == "moderator" and scene.round and (summary := hears(scene.heard, scene.me)):
        said.append(summary)
    if scene.round == 0:
        themed = stance.themed.get(scene.topic.theme, ())
        if themed and not already:
            said.append(_fresh(scene, themed, "theme"))
        bank = stance.open
    elif scene.round == 1:
        bank = stance.argue
    else:
        bank = stance.settle if scene.round % 2 == 0 else stance.argue
    said.append(_fresh(scene, bank, "point"))
    return said


def _asked(scene: Scene, said: list[str]) -> str | None:
    """Once in a while a question to somebody who is not in the conversation at this moment."""
    others = scene.others()
    if not others or said[-1].endswith("?") or not scene.draw.chance(3):
        return None
    question = _fresh(scene, scene.stance.asks, "ask", other=others[0])
    return None if scene.was_said(question) else question


def _fresh(scene: Scene, bank: Sequence[str], purpose: str, **names: str) -> str:
    """A sentence nobody has said yet, if there is one left."""
    context = scene.context
    order = Draw(scene.me, context.conversation_id, context.turn_index, purpose).shuffled(bank)
    topic = scene.topic
    slots = {"do": topic.do, "doing": topic.doing, "thing": topic.thing, **names}
    filled = [sentence.format_map(slots) for sentence in order]
    return next((one for one in filled if not scene.was_said(one)), filled[0])


def _lower(sentence: str) -> str:
    """After a name a sentence goes on small, unless it begins with I."""
    return sentence if re.match(r"I\b", sentence) else sentence[:1].lower() + sentence[1:]
