"""What the demo model knows when it speaks: who it is, what was said, what is asked."""

import re

from msgspec import Struct

from moot.agents.models.demo.choice import Draw
from moot.agents.models.demo.stances import Stance, stance_of
from moot.agents.models.demo.topic import Topic, topic_of
from moot.agents.models.protocol import Context, Message, ModelRequest, Said
from moot.agents.prompts.names import PEOPLE

#: names of people who gave none, and what a cast calls them and the host
NAMELESS = frozenset({"user", "you", "human", "system", "host", *PEOPLE.values()})


class Scene(Struct, frozen=True, kw_only=True):
    """One turn about to be spoken."""

    me: str
    stance: Stance
    topic: Topic
    heard: tuple[Said, ...]
    #: which of its own turns this is, from 0
    round: int
    context: Context
    draw: Draw

    @property
    def last(self) -> Said | None:
        """What is answered: the last that somebody else said."""
        others = [said for said in self.heard if not same(said.name, self.me)]
        wanted = self.context.previous_speaker
        if wanted is not None:
            named = [said for said in others if same(said.name, wanted)]
            return named[-1] if named else Said(name=wanted, text="")
        return others[-1] if others else None

    @property
    def objection(self) -> Said | None:
        """What a person has put in since I last spoke; the question itself is no objection."""
        since: list[Said] = []
        for said in self.heard[1:]:
            since = [] if same(said.name, self.me) else [*since, said]
        people = [said for said in since if said.kind == "human" and said.text.strip()]
        return people[-1] if people else None

    def others(self) -> list[str]:
        """Agents heard so far, the latest first, without who spoke last."""
        last = self.last
        found: list[str] = []
        for said in reversed(self.heard):
            name = shown(said.name)
            is_last = last is not None and same(said.name, last.name)
            if name and said.kind == "agent" and not same(name, self.me) and not is_last:
                found.append(name)
        return list(dict.fromkeys(found))

    def was_said(self, sentence: str) -> bool:
        wanted = sentence.casefold()
        return any(wanted in said.text.casefold() for said in self.heard)


def scene_of(request: ModelRequest) -> Scene:
    context = request.context or Context()
    heard = context.heard or tuple(_heard(context, request.messages))
    own = sum(message.role == "assistant" for message in request.messages)
    own = max(own, sum(same(said.name, context.agent) for said in context.heard))
    question = context.question or _question(heard)
    return Scene(
        me=context.agent,
        stance=stance_of(context.role, context.persona),
        topic=topic_of(question),
        heard=heard,
        round=own,
        context=context,
        draw=Draw(context.agent, context.conversation_id, context.turn_index),
    )


def _heard(context: Context, messages: tuple[Message, ...]) -> list[Said]:
    """Messages have names of their own; the text is never searched for one."""
    found = []
    for message in messages:
        if message.role == "system" or not isinstance(message.content, str):
            continue
        if message.role == "assistant":
            found.append(Said(name=context.agent, text=message.content))
        elif message.role == "user":
            if message.name:
                found.append(Said(name=message.name, text=message.content))
            else:
                found.append(Said(name="user", text=message.content, kind="human"))
    return found


def _question(heard: tuple[Said, ...]) -> str:
    people = [said.text for said in heard if said.kind == "human"]
    return people[0] if people else (heard[0].text if heard else "")


def shown(name: str) -> str:
    """``host:ada`` is Ada; who has no name of its own gets none."""
    bare = name.rpartition(":")[2].strip()
    if bare.lower() in NAMELESS:
        return ""
    return bare.capitalize() if bare.islower() else bare


def same(one: str, other: str) -> bool:
    return one.rpartition(":")[2].casefold() == other.rpartition(":")[2].casefold()


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+|\n+", text) if part.strip()]


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def listed(names: list[str]) -> str:
    """``Ada, Bo and Cy``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
