"""The situation in which the demo model speaks: speaker, topic and transcript."""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

from msgspec import Struct

from moot.agents.models.demo.sentences import SENTENCES, Stance
from moot.agents.models.demo.topic import Topic, topic_from_question
from moot.agents.models.protocol import DemoContext, HeardTurn, ModelMessage, ModelRequest
from moot.agents.prompts.council import PEOPLE

#: names that mean a person without a name, or the host
NAMELESS = frozenset({"user", "you", "human", "system", "host", *PEOPLE.values()})
T = TypeVar("T")


class SeededChoice:
    """A sequence of choices that depends only on its names, on every machine."""

    def __init__(self, *names: object) -> None:
        self._name = "\x1f".join(map(str, names))
        self._count = 0

    def number(self, below: int) -> int:
        """Return a number from 0 up to ``below``."""
        self._count += 1
        digest = sha256(f"{self._name}\x1e{self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % below

    def chance(self, of: int) -> bool:
        """Return True about once in ``of`` times."""
        return self.number(of) == 0

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        remaining = list(options)
        return [remaining.pop(self.number(len(remaining))) for _ in range(len(remaining))]

    def mark(self) -> str:
        """Return eight characters for an id."""
        return sha256(self._name.encode()).hexdigest()[:8]


class Scene(Struct, frozen=True, kw_only=True):
    me: str
    stance: Stance
    topic: Topic
    heard: tuple[HeardTurn, ...]
    #: the number of its own turn, from 0
    round: int
    context: DemoContext
    draw: SeededChoice

    @property
    def last(self) -> HeardTurn | None:
        """Return the turn to answer: the last of another participant."""
        others = [turn for turn in self.heard if not is_same_name(turn.name, self.me)]
        speaker = self.context.previous_speaker
        if speaker is not None:
            turns = [turn for turn in others if is_same_name(turn.name, speaker)]
            return turns[-1] if turns else HeardTurn(name=speaker, text="")
        return others[-1] if others else None

    @property
    def objection(self) -> HeardTurn | None:
        """Return the last turn of a person since its own turn, without the first question."""
        since: list[HeardTurn] = []
        for turn in self.heard[1:]:
            since = [] if is_same_name(turn.name, self.me) else [*since, turn]
        people = [turn for turn in since if turn.kind == "human" and turn.text.strip()]
        return people[-1] if people else None

    def others(self) -> list[str]:
        """Return the agents that have spoken, latest first, without the last speaker."""
        last = self.last
        names: list[str] = []
        for turn in reversed(self.heard):
            name = display_name(turn.name)
            is_last = last is not None and is_same_name(turn.name, last.name)
            if name and turn.kind == "agent" and not is_same_name(name, self.me) and not is_last:
                names.append(name)
        return list(dict.fromkeys(names))

    def was_said(self, sentence: str) -> bool:
        text = sentence.casefold()
        return any(text in turn.text.casefold() for turn in self.heard)


def scene_from_request(request: ModelRequest) -> Scene:
    context = request.context or DemoContext()
    turns = context.heard or tuple(_turns_from_messages(context, request.messages))
    own_turns = sum(message.role == "assistant" for message in request.messages)
    heard_own = sum(is_same_name(turn.name, context.agent) for turn in context.heard)
    own_turns = max(own_turns, heard_own)
    question = context.question or _first_question(turns)
    return Scene(
        me=context.agent,
        stance=choose_stance(context.role, context.persona),
        topic=topic_from_question(question),
        heard=turns,
        round=own_turns,
        context=context,
        draw=SeededChoice(context.agent, context.conversation_id, context.turn_index),
    )


def choose_stance(role: str, persona: str = "") -> Stance:
    """Choose the stance by the role, else by the persona, else the last one."""
    for text in (role, persona):
        words = text.lower().replace("-", " ").replace("_", " ").split()
        for word in words:
            for stance in SENTENCES.stances:
                if word.strip(".,;:!?()'\"").startswith(stance.words or "\0"):
                    return stance
    return SENTENCES.stances[-1]


def _turns_from_messages(
    context: DemoContext, messages: tuple[ModelMessage, ...]
) -> list[HeardTurn]:
    """Return the turns of the messages. Names come from the name field, never from the text."""
    turns = []
    for message in messages:
        if message.role == "system" or not isinstance(message.content, str):
            continue
        if message.role == "assistant":
            turns.append(HeardTurn(name=context.agent, text=message.content))
        elif message.role == "user":
            if message.name:
                turns.append(HeardTurn(name=message.name, text=message.content))
            else:
                turns.append(HeardTurn(name="user", text=message.content, kind="human"))
    return turns


def _first_question(turns: tuple[HeardTurn, ...]) -> str:
    people = [turn.text for turn in turns if turn.kind == "human"]
    return people[0] if people else (turns[0].text if turns else "")


def display_name(name: str) -> str:
    """Return ``Ada`` for ``host:ada``, or nothing for a participant without a name."""
    handle = name.rpartition(":")[2].strip()
    if handle.lower() in NAMELESS:
        return ""
    return handle.capitalize() if handle.islower() else handle


def is_same_name(one: str, other: str) -> bool:
    return one.rpartition(":")[2].casefold() == other.rpartition(":")[2].casefold()


def split_sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+|\n+", text) if part.strip()]


def capitalize_first(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def join_names(names: list[str]) -> str:
    """Return ``Ada, Bo and Cy``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
