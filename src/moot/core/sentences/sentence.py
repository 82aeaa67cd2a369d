"""The sentence about one event, and the parts that sentences share."""

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from moot.core.payloads.base import RecordedError

#: maps the id of a participant to the name that the reader sees
Names = Callable[[str], str]

#: characters of a value in a sentence
LONGEST_VALUE = 160
LONGEST_FIELD = 100
LONGEST_INPUTS = 200


class Sentence(Struct, frozen=True):
    """One event in plain English, without colour, indentation or markup.

    ``lead`` are first words that a reader may set apart: the outcome of a node, the kind of a
    question, the speaker of a turn. The values in the text are cut, but may be unsafe to print.
    """

    text: str
    #: ``note``, ``turn``, ``question`` or the outcome of a node
    kind: str = "note"
    lead: str = ""

    @property
    def whole(self) -> str:
        return f"{self.lead}: {self.text}" if self.lead and self.text else self.lead or self.text


#: a template for the payload ``p``, or a function
SentenceRow = str | Callable[[Any, Names], Sentence | str | None]


def brief(value: object, most: int = LONGEST_VALUE) -> str:
    """Return a value on one line of at most ``most`` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def call_text(tool: str, inputs: object) -> str:
    """Return ``price_history({"sku": "lamp"})``."""
    return f"{tool}({brief(inputs or {}, LONGEST_INPUTS)})"


def error_text(error: RecordedError | None) -> str:
    """Return ``code: message``, or nothing without an error."""
    return "" if error is None else f"{error.code}: {brief(error.message)}"


def after_colon(text: str) -> str:
    return f": {text}" if text else ""


def in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""
