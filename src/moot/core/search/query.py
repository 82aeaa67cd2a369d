"""Parse search queries and match them against texts. Every text is a query.

``one two`` means both words, ``"one two"`` in this order, ``on*`` a beginning. The filters
``from:ada``, ``kind:decision`` and ``thread:th_…`` narrow the search; several of one kind widen it.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator

from msgspec import Struct

from moot.core.search.indexed_text import KINDS, IndexedText
from moot.core.text.words import search_tokens, split_words

LONGEST_QUERY = 500
#: prefixes in one query; each can match very many words
MOST_PREFIXES = 4
#: characters of a snippet, and of its part before the first match
SNIPPET, BEFORE = 200, 40
#: ranking: how soon further matches count less, and the usual number of words in a text
SATURATION, USUAL_WORDS = 1.2, 60
#: the bonus of a title or a decision over a turn
KIND_BONUS = {"thread": 0.5, "decision": 0.5}

_PART = re.compile(r'(?:(from|kind|thread):)?(?:"([^"]*)"?|([^\s"]+))', re.IGNORECASE)


#: filters of other products -> the filter to use here
FOREIGN_FILTERS = {
    "author": "from:NAME", "by": "from:NAME", "speaker": "from:NAME", "agent": "from:NAME",
    "type": "kind:KIND", "is": "kind:KIND", "in": "thread:ID", "run": "thread:ID",
}  # fmt: skip
_FILTER = re.compile(r'"[^"]*"?|(?<![^\s])([a-z]+):([^\s"]+)', re.IGNORECASE)


class Phrase(Struct, frozen=True):
    """Consecutive words. With ``prefix`` the last one may continue."""

    tokens: tuple[str, ...]
    prefix: bool = False


class SearchPlace(Struct, frozen=True):
    """A run, or one conversation of it."""

    run_id: str
    talk: str = ""


class Query(Struct, frozen=True, kw_only=True):
    """All phrases must match, and one value of each kind of filter. An empty query matches none."""

    phrases: tuple[Phrase, ...] = ()
    kinds: tuple[str, ...] = ()
    #: a full name with its colon, or the last part of one
    senders: tuple[str, ...] = ()
    places: tuple[SearchPlace, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.phrases or self.kinds or self.senders or self.places)


class TextSnippet(Struct, frozen=True):
    """A part of a text from ``start`` on, and the positions of the matches in it."""

    text: str
    start: int
    matches: list[tuple[int, int]]


def filter_problem(text: str) -> str | None:
    """Return what is wrong with a word that looks like a filter. Quoted words are not filters."""
    for match in _FILTER.finditer(text):
        sort, value = (match[1] or "").lower(), match[2] or ""
        if sort == "kind" and not _kinds(value):
            return f"'{value[:64]}' is not a kind; use {', '.join(KINDS)}."
        if sort in FOREIGN_FILTERS:
            quoted = match[0][:64]
            filter_here = FOREIGN_FILTERS[sort]
            return f'There is no filter {sort}: here; use {filter_here}, or quote it: "{quoted}".'
    return None


def parse_query(text: str) -> Query:
    phrases: list[Phrase] = []
    kinds: list[str] = []
    senders: list[str] = []
    places: list[SearchPlace] = []
    for part in _PART.finditer(text):
        word = part[2] if part[2] is not None else part[3]
        sort = (part[1] or "").lower()
        if sort == "kind" and _kinds(word):
            kinds += _kinds(word)
        elif sort == "from" and normalize_sender(word):
            senders.append(normalize_sender(word))
        elif sort == "thread" and word:
            places.append(parse_place(word))
        else:
            phrases += _phrases(f"{sort} {word}" if sort else word)
    return Query(
        phrases=tuple(_limit_prefixes(dict.fromkeys(phrases))),
        kinds=tuple(dict.fromkeys(kinds)),
        senders=tuple(dict.fromkeys(senders)),
        places=tuple(dict.fromkeys(places)),
    )


def _limit_prefixes(phrases: Iterable[Phrase]) -> Iterator[Phrase]:
    left = MOST_PREFIXES
    for phrase in phrases:
        left -= phrase.prefix
        yield phrase if left >= 0 else Phrase(phrase.tokens)


def _kinds(word: str) -> list[str]:
    """Return the kinds, or nothing when one of them is unknown; then it is an ordinary word."""
    kinds = [each for each in word.lower().split(",") if each]
    return kinds if all(each in KINDS for each in kinds) else []


def normalize_sender(word: str) -> str:
    return word.removeprefix("@").casefold()


def parse_place(name: str) -> SearchPlace:
    """Parse the id of a thread or of its conversation."""
    run_id, _, rest = name.replace(":", "~").partition("~")
    return SearchPlace(run_id, rest)


def _phrases(word: str) -> list[Phrase]:
    words = tuple(search_tokens(word))
    return [Phrase(words, word.rstrip().endswith("*"))] if words else []


def is_by_sender(name: str, sender: str) -> bool:
    name = name.casefold()
    return sender == (name if ":" in sender else name.rpartition(":")[2])


def is_match(query: Query, text: IndexedText) -> bool:
    """Return whether a text has the kind, the sender and all the words of the query."""
    if query.kinds and text.kind not in query.kinds:
        return False
    if query.senders and not any(is_by_sender(text.by, name) for name in query.senders):
        return False
    tokens = search_tokens(text.text) if query.phrases else []
    return all(_phrase_starts(phrase, tokens) for phrase in query.phrases)


def _phrase_starts(phrase: Phrase, tokens: list[str]) -> list[int]:
    """Return every position at which the phrase begins."""
    first, *rest = phrase.tokens
    if not rest and phrase.prefix:
        return [at for at, token in enumerate(tokens) if token.startswith(first)]
    starts, at = [], -1
    for _ in range(tokens.count(first)):
        at = tokens.index(first, at + 1)
        if not rest or _is_phrase_at(phrase, tokens, at):
            starts.append(at)
    return starts


def _is_phrase_at(phrase: Phrase, tokens: list[str], at: int) -> bool:
    *_, last = phrase.tokens
    candidate = tokens[at : at + len(phrase.tokens)]
    if len(candidate) < len(phrase.tokens) or candidate[:-1] != list(phrase.tokens[:-1]):
        return False
    return candidate[-1].startswith(last) if phrase.prefix else candidate[-1] == last


def score_text(query: Query, text: IndexedText) -> float:
    """Rate a match. Further occurrences count less and less, and long texts less than short."""
    tokens = search_tokens(text.text)
    counts = [len(_phrase_starts(phrase, tokens)) for phrase in query.phrases]
    slack = SATURATION * (0.25 + 0.75 * len(tokens) / USUAL_WORDS)
    return sum(count / (count + slack) for count in counts) + KIND_BONUS.get(text.kind, 0.0)


def make_snippet(query: Query, text: str) -> TextSnippet:
    """Return the part of the text with the most matches."""
    words = list(split_words(text))
    tokens = [word.token for word in words]
    spans = sorted({
        (words[at].start, words[at + len(phrase.tokens) - 1].end)
        for phrase in query.phrases
        for at in _phrase_starts(phrase, tokens)
    })  # fmt: skip
    start = _start(text, spans)
    end = _end(text, start + SNIPPET)
    inside = [
        (first - start, last - start) for first, last in spans if start <= first < last <= end
    ]
    return TextSnippet(text[start:end], start, inside)


def _start(text: str, spans: list[tuple[int, int]]) -> int:
    if not spans:
        return 0
    starts = [first for first, _ in spans]
    counts = [
        bisect(starts, at + SNIPPET - 2 * BEFORE) - number for number, at in enumerate(starts)
    ]
    best = starts[counts.index(max(counts))]
    start = max(0, min(best - BEFORE, len(text) - SNIPPET))
    blank = text.find(" ", start, best)
    return start if start == 0 or blank < 0 else blank + 1


def _end(text: str, end: int) -> int:
    """Avoid cutting a word, unless it is very long."""
    if end >= len(text):
        return len(text)
    blank = text.rfind(" ", end - BEFORE, end)
    return end if blank < 0 else blank
