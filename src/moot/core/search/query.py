"""What is searched for, and where it stands in a text. Any text at all is a query.

``one two`` both words, ``"one two"`` in this order, ``on*`` beginnings; ``from:ada``,
``kind:decision``, ``thread:th_…`` narrow it down, and several of one sort widen that again.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator

from msgspec import Struct

from moot.core.search.indexed_text import KINDS, Text
from moot.core.text.words import tokens, words

LONGEST_QUERY = 500
#: words that may go on; each of these can be very many words
MOST_PREFIXES = 4
#: characters of a snippet, and how much of that stands before what was found
SNIPPET, BEFORE = 200, 40
#: of best matches: how soon more of the same counts less, and the length of a usual text in words
ENOUGH, USUAL = 1.2, 60
#: what a title or a decision has ahead of a turn
AHEAD = {"thread": 0.5, "decision": 0.5}

_PART = re.compile(r'(?:(from|kind|thread):)?(?:"([^"]*)"?|([^\s"]+))', re.IGNORECASE)


#: what other searches filter by, and how it is written here
ELSEWHERE = {
    "author": "from:NAME", "by": "from:NAME", "speaker": "from:NAME", "agent": "from:NAME",
    "type": "kind:KIND", "is": "kind:KIND", "in": "thread:ID", "run": "thread:ID",
}  # fmt: skip
_FILTER = re.compile(r'"[^"]*"?|(?<![^\s])([a-z]+):([^\s"]+)', re.IGNORECASE)


class Phrase(Struct, frozen=True):
    """Words that follow one another; ``prefix``: the last one may go on."""

    tokens: tuple[str, ...]
    prefix: bool = False


class Place(Struct, frozen=True):
    """A run, or one conversation of it."""

    run_id: str
    talk: str = ""


class Query(Struct, frozen=True, kw_only=True):
    """Every phrase, and of each sort of filter one of its words. Without any of these it finds
    nothing."""

    phrases: tuple[Phrase, ...] = ()
    kinds: tuple[str, ...] = ()
    #: a whole name with its colon, or the last part of one
    senders: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.phrases or self.kinds or self.senders or self.places)


class Snippet(Struct, frozen=True):
    """A part of a text from ``start`` on, and where in this part the words stand."""

    text: str
    start: int
    matches: list[tuple[int, int]]


def misused(text: str) -> str | None:
    """What is wrong with a word that looks like a filter; quoted it is a word like any other."""
    for found in _FILTER.finditer(text):
        sort, value = (found[1] or "").lower(), found[2] or ""
        if sort == "kind" and not _kinds(value):
            return f"'{value[:64]}' is not a kind; use {', '.join(KINDS)}."
        if sort in ELSEWHERE:
            said = found[0][:64]
            return f'There is no filter {sort}: here; use {ELSEWHERE[sort]}, or quote it: "{said}".'
    return None


def parse(text: str) -> Query:
    phrases: list[Phrase] = []
    kinds: list[str] = []
    senders: list[str] = []
    places: list[Place] = []
    for part in _PART.finditer(text):
        word = part[2] if part[2] is not None else part[3]
        sort = (part[1] or "").lower()
        if sort == "kind" and _kinds(word):
            kinds += _kinds(word)
        elif sort == "from" and sender(word):
            senders.append(sender(word))
        elif sort == "thread" and word:
            places.append(place(word))
        else:
            phrases += _phrases(f"{sort} {word}" if sort else word)
    return Query(
        phrases=tuple(_bounded(dict.fromkeys(phrases))),
        kinds=tuple(dict.fromkeys(kinds)),
        senders=tuple(dict.fromkeys(senders)),
        places=tuple(dict.fromkeys(places)),
    )


def _bounded(phrases: Iterable[Phrase]) -> Iterator[Phrase]:
    left = MOST_PREFIXES
    for phrase in phrases:
        left -= phrase.prefix
        yield phrase if left >= 0 else Phrase(phrase.tokens)


def _kinds(word: str) -> list[str]:
    """None of them when one is not there: then it is a word like any other."""
    asked = [each for each in word.lower().split(",") if each]
    return asked if all(each in KINDS for each in asked) else []


def sender(word: str) -> str:
    return word.removeprefix("@").casefold()


def place(name: str) -> Place:
    """A thread by its id, or by the id of its conversation."""
    run_id, _, rest = name.replace(":", "~").partition("~")
    return Place(run_id, rest)


def _phrases(word: str) -> list[Phrase]:
    found = tuple(tokens(word))
    return [Phrase(found, word.rstrip().endswith("*"))] if found else []


def is_by(name: str, asked: str) -> bool:
    name = name.casefold()
    return asked == (name if ":" in asked else name.rpartition(":")[2])


def fits(query: Query, text: Text) -> bool:
    """Whether a text is of a kind and a speaker that are asked for and has all the words."""
    if query.kinds and text.kind not in query.kinds:
        return False
    if query.senders and not any(is_by(text.by, name) for name in query.senders):
        return False
    said = tokens(text.text) if query.phrases else []
    return all(_beginnings(phrase, said) for phrase in query.phrases)


def _beginnings(phrase: Phrase, said: list[str]) -> list[int]:
    """Every place at which the phrase begins."""
    first, *rest = phrase.tokens
    if not rest and phrase.prefix:
        return [at for at, token in enumerate(said) if token.startswith(first)]
    found, at = [], -1
    for _ in range(said.count(first)):
        at = said.index(first, at + 1)
        if not rest or _goes_on(phrase, said, at):
            found.append(at)
    return found


def _goes_on(phrase: Phrase, said: list[str], at: int) -> bool:
    *_, last = phrase.tokens
    here = said[at : at + len(phrase.tokens)]
    if len(here) < len(phrase.tokens) or here[:-1] != list(phrase.tokens[:-1]):
        return False
    return here[-1].startswith(last) if phrase.prefix else here[-1] == last


def score(query: Query, text: Text) -> float:
    """How well a text fits: each phrase counts, more of it counts less and less, and in a long
    text less than in a short one."""
    said = tokens(text.text)
    often = [len(_beginnings(phrase, said)) for phrase in query.phrases]
    slack = ENOUGH * (0.25 + 0.75 * len(said) / USUAL)
    return sum(count / (count + slack) for count in often) + AHEAD.get(text.kind, 0.0)


def snippet(query: Query, text: str) -> Snippet:
    """The part of the text with the most of what was asked for in it."""
    said = list(words(text))
    plain = [word.token for word in said]
    spans = sorted({
        (said[at].start, said[at + len(phrase.tokens) - 1].end)
        for phrase in query.phrases
        for at in _beginnings(phrase, plain)
    })  # fmt: skip
    start = _start(text, spans)
    end = _end(text, start + SNIPPET)
    inside = [
        (first - start, last - start) for first, last in spans if start <= first < last <= end
    ]
    return Snippet(text[start:end], start, inside)


def _start(text: str, spans: list[tuple[int, int]]) -> int:
    if not spans:
        return 0
    starts = [first for first, _ in spans]
    near = [bisect(starts, at + SNIPPET - 2 * BEFORE) - number for number, at in enumerate(starts)]
    wanted = starts[near.index(max(near))]
    start = max(0, min(wanted - BEFORE, len(text) - SNIPPET))
    blank = text.find(" ", start, wanted)
    return start if start == 0 or blank < 0 else blank + 1


def _end(text: str, end: int) -> int:
    """No word is cut in two, if it is not a very long one."""
    if end >= len(text):
        return len(text)
    blank = text.rfind(" ", end - BEFORE, end)
    return end if blank < 0 else blank
