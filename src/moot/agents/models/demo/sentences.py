"""The sentences of the demo model, read from ``sentences.json``.

``{do}``, ``{doing}`` and ``{thing}`` come from the question.
"""

from importlib.resources import files

import msgspec
from msgspec import Struct


class Stance(Struct, frozen=True, kw_only=True):
    """The sentences of a role: to open, argue, settle, reply, ask and vote."""

    name: str
    #: prefixes of words in a role or persona that select this stance
    words: tuple[str, ...]
    open: tuple[str, ...]
    argue: tuple[str, ...]
    settle: tuple[str, ...]
    #: replies to the last speaker
    leads: tuple[str, ...]
    #: questions to another participant
    asks: tuple[str, ...]
    votes: tuple[tuple[str, str], ...]
    #: theme of the question -> opening sentences for it
    themed: dict[str, tuple[str, ...]] = {}


class Wish(Struct, frozen=True):
    """A wish, how to recognise it, and its clause in a decision."""

    words: str
    #: follows "wants"
    wanted: str
    #: the clause in a decision to proceed, and in one to wait
    going: str
    waiting: str


class AnswerBank(Struct, frozen=True):
    """Answers that fit any speaker, to a question that matches the pattern."""

    question: str
    sentences: tuple[str, ...]


class DemoSentences(Struct, frozen=True):
    #: the last one fits every role
    stances: tuple[Stance, ...]
    #: in the order of a decision
    wishes: dict[str, Wish]
    answers: tuple[AnswerBank, ...]
    #: answers to all other questions
    open_answers: tuple[str, ...]
    #: replies to an objection of a person
    taken_up: tuple[str, ...]
    #: words that help to find the topic of a question
    verbs: frozenset[str]
    determiners: frozenset[str]
    #: words before which the object of a verb ends
    stops: frozenset[str]
    #: theme -> words of a question about it
    themes: dict[str, frozenset[str]]


SENTENCES = msgspec.json.decode(
    (files(__package__) / "sentences.json").read_bytes(), type=DemoSentences
)
