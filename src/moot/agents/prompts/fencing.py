"""What others have said, made harmless before a model reads it.

Text never decides who spoke. What looks like a speaker's tag, like markup of the host or of a chat
template, is kept readable but can no longer be taken for the real thing, and is pointed out.
"""

import re
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from moot.core.text.confusables import bare, marks_in, skeleton

#: marks that do not show or turn the reading order around
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
#: those that join letters of other scripts and parts of emoji are ordinary there, and beside plain
#: letters they are not
_JOINERS = re.compile("[\u200c\u200d]++")
#: what chooses the form of a sign is ordinary after one, and after digits in a key's cap
_SELECTORS = re.compile("(?<=[^0-9#*\x80-\U0010ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef]++")
#: ends of lines that are not written as such
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(" "))


#: words that chat templates and tools put in brackets, and nobody else does
_STRONG = _words(
    "system assistant developer im_start im_end im_sep endoftext eot_id eom_id start_header_id"
    " end_header_id begin_of_text end_of_text fim_prefix antml invoke tool_use tool_result"
    " tool_call tool_response function_call function_results function_calls start_of_turn"
    " end_of_turn"
)
#: words that are ordinary after a letter, as in ``List<Message>``
_WEAK = _words(
    "user human tool function instruction instructions admin moderator host moot inst sys turn"
    " message control thinking data speaker"
)
#: Patterns here give nothing back once they have taken it, and no two of them want the same
#: character: the work grows with the text and not faster.
_ANGLE = re.compile(
    r"[<\uff1c\ufe64](\s*+(?:[/|!?\\]\s*+)*+)"
    r"([^\s<>\u2039\uff1c\uff1e\ufe64\ufe65|/\\=:\"']{1,40}+)"
)
_SQUARE = re.compile(
    r"[\[\uff3b\u3010](\s*+(?:[/\\]\s*+)*+)([^\[\]\u2045\uff3b\uff3d\u3010\u3011:/\\\n]++)"
    r"[\]\uff3d\u3011:]"
)
_COMMENT = re.compile(r"[<\uff1c\ufe64]!--")
_FIRST = re.compile(r"\w*+")

_COLONS = ":\uff1a\ufe55\ua789\u2236\ufe13\ufe30\u02d0\u02f8\u0589\u05c3\u205a\u0703\u0704"
#: what a line that begins like a turn is made of, as far as its colon
_PARTS = re.compile(rf"[^\W_{_COLONS}]++|[{_COLONS}]")
_HEADING = re.compile(r"[^\S\n]*+(?:#|\*\*|__|==|--)")
#: a number, or a time
_NUMBER = re.compile(r"\d++(?:t\d++)?+z?")
#: words of JSON that would speak for somebody
_FORM = re.compile(
    r"[{,]\s*+\"(?:speaker|role|tool_call_id|tool_calls|function_call)\"\s*+:", re.IGNORECASE
)
#: a line that speaks for somebody says so within this many words
MOST_WORDS = 32

LONGEST = 16_000
#: the longest text of those that are kept in great number
SHORT = 2000
QUOTING = "(quoting) "

RESERVED = frozenset(
    map(
        skeleton,
        _words(
            "system assistant user human developer tool host moderator moot admin"
            " administrator function operator owner"
        ),
    )
)
#: what may stand behind one of those
_TITLES = frozenset(
    map(
        skeleton,
        _words(
            "message messages prompt note notice instruction instructions override reminder"
            " turn result response output update policy"
        ),
    )
)
#: what may stand before a name
_LEADS = frozenset(
    map(
        skeleton,
        _words(
            "the turn message msg agent member speaker participant persona bot model name from by"
            " reply response answer note round id no nr number am pm"
        ),
    )
)


def words(content: Any) -> str:
    """What was said, as text. Anything else is shown as JSON."""
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def fenced(content: Any, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The text a model may read, and what in it had to be made harmless. Ordinary text stays as it
    is, and what was fenced stays so when it is fenced again. Of anything but text, every text in
    it is fenced and the whole is shown as JSON.

    ``names``: who could be imitated, besides the words every host has.
    """
    if isinstance(content, str):
        size = len(content)
        make = _kept if size <= SHORT else _kept_long if size <= LONGEST else _made
        safe, flags = make(content, names)
        return safe, list(flags)
    parts = _Parts(names)
    text = msgspec.json.encode(parts.fenced(content)).decode()
    if "form" not in parts.flags and _FORM.search(bare(text)):
        parts.flags.append("form")
    return _cut(text, 0), parts.flags


class _Parts:
    """Every text in a value, made harmless. What does not fit is left out."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names, self._room = names, LONGEST
        self.flags: list[str] = []

    def fenced(self, value: Any) -> Any:
        self._room -= 1
        if self._room < 0:
            return "\u2026"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (list, tuple)):
            kept = value[: self._room + 1]
            return [self.fenced(each) for each in kept] + ["\u2026"] * (len(kept) < len(value))
        if isinstance(value, dict):
            kept = list(value)[: self._room + 1]
            return {self._text(str(key)): self.fenced(value[key]) for key in kept}
        return value

    def _text(self, text: str) -> str:
        safe, flags = fenced(text[: max(0, self._room) + 1], self._names)
        self._room -= len(safe)
        self.flags += [flag for flag in flags if flag not in self.flags]
        return safe


def _made(text: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
    known = _known(names)
    lost = max(0, len(text) - LONGEST)  # what nobody is shown is not worked through
    text = _BREAKS.sub("\n", text[:LONGEST])
    flags: list[str] = []
    for flag, change in (
        ("hidden-characters", _plain),
        ("markup", _markup),
        ("speaker-tag", _speakers),
    ):
        changed = change(text, known)
        if changed != text:
            flags.append(flag)
        text = changed
    if _FORM.search(bare(text)):
        flags.append("form")
    return _cut(text, lost), flags


#: the same turn is told to many, again and again: what came of it is kept
_kept = lru_cache(maxsize=4096)(_made)
_kept_long = lru_cache(maxsize=512)(_made)


@lru_cache(maxsize=256)
def _known(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filter(None, map(_word, names)))


def _plain(text: str, known: frozenset[str]) -> str:
    text = _UNSEEN.sub("", _CONTROLS.sub("", text))
    return text if text.isascii() else _SELECTORS.sub("", _JOINERS.sub(_joined, text))


def _joined(found: re.Match[str]) -> str:
    """Nothing, unless both sides are letters or signs beyond the plain ones."""
    text, start, end = found.string, found.start(), found.end()
    inside = start > 0 and end < len(text)
    return found.group() if inside and text[start - 1] > "\x7f" < text[end] else ""


def _cut(text: str, lost: int) -> str:
    if len(text) + lost <= LONGEST:
        return text
    kept = LONGEST - 50
    return f"{text[:kept]} … (cut: {len(text) + lost - len(text[:kept])} more characters)"


class _Edits:
    """Changes of a text, found in what is left of it without its marks."""

    def __init__(self, text: str) -> None:
        self._text = text
        marks = marks_in(text)
        #: for each character of the bare text where it stands
        self._at = None
        if marks:
            self._at = [n for n, each in enumerate(text) if each not in marks] + [len(text)]
        self.bare = bare(text)
        self._changes: list[tuple[int, int, str]] = []

    def put(self, start: int, end: int, new: str) -> None:
        """In the place of these characters of the bare text; one change after the other."""
        if self._at is not None:
            end = self._at[end - 1] + 1 if end > start else self._at[start]
            start = self._at[start]
        self._changes.append((start, end, new))

    def done(self) -> str:
        parts, place = [], 0
        for start, end, new in sorted(self._changes):
            parts += [self._text[place:start], new]
            place = end
        return "".join([*parts, self._text[place:]]) if parts else self._text


def _markup(text: str, known: frozenset[str]) -> str:
    edits = _Edits(text)
    seen = edits.bare
    if "<" in seen or "\uff1c" in seen or "\ufe64" in seen:
        guilty = {found.start() for found in _COMMENT.finditer(seen)}
        guilty |= {found.start() for found in _ANGLE.finditer(seen) if _bracket(found, known)}
        for place in guilty:
            edits.put(place, place + 1, "\u2039")
    if "[" in seen or "\uff3b" in seen or "\u3010" in seen:
        for found in _SQUARE.finditer(seen):
            if _tagged(found):
                edits.put(found.start(), found.start() + 1, "\u2045")
    return edits.done()


def _bracket(found: re.Match[str], known: frozenset[str]) -> bool:
    between, word = found.groups()
    text, place = found.string, found.start()
    after = text[found.end() : found.end() + 1]
    first = _FIRST.match(word)[0]  # type: ignore[index]
    shape = {first.casefold(), word.casefold().partition("-")[0], skeleton(first)}
    closed = ">" in text[found.end() : found.end() + 200].partition("\n")[0]
    joined = place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_")
    joined = joined and not {"/", "\\"} & {*between}  # what ends a mark ends it after a letter, too
    spaced = between.strip() == "" and between != ""
    if first.casefold() == "s":
        return after == ">"
    if shape & _SKELETONS_STRONG or _begins(first, known) or ("|" in between and closed):
        return not spaced or closed
    return not joined and (not spaced or closed) and bool(shape & (_SKELETONS_WEAK | known))


def _begins(first: str, known: frozenset[str]) -> bool:
    """``<systemAda``: a strong word, and right behind it what looks like another."""
    low = first.casefold()
    if not low.startswith(_STRONG_ONES):
        return False
    rests = [first[len(word) :] for word in _STRONG_ONES if low.startswith(word)]
    return any(rest[:1].isupper() or skeleton(rest) in known for rest in rests)


def _tagged(found: re.Match[str]) -> bool:
    first = found.group(2).strip().casefold()
    if len(first) > 40:
        return False
    shape, plain = {first, skeleton(first)}, not found.group(1).strip()
    link = plain and found.string[found.end() : found.end() + 1] == "("
    return bool(shape & _SKELETONS_STRONG or shape & (_SKELETONS_WEAK if not link else _LLAMA))


def _speakers(text: str, known: frozenset[str]) -> str:
    """A line that begins like a turn of somebody else is shown as a quotation."""
    edits = _Edits(text)
    start = 0
    for line in edits.bare.split("\n"):
        colon = _colon(line, known)
        if colon is not None:
            head = line[:colon]
            edits.put(start, start, QUOTING)
            edits.put(start + len(head.rstrip()), start + colon + 1, " -")
        elif _HEADING.match(line) and _imitates(_said_first(line), known):
            edits.put(start, start, QUOTING)
        start += len(line) + 1
    return edits.done()


def _colon(line: str, known: frozenset[str]) -> int | None:
    """Where the colon is that makes the line look like somebody's turn."""
    words: list[str] = []
    aside = 0  # words before the last bracket: Ada (agent):
    place = 0
    for part in _PARTS.finditer(line):
        if "(" in line[place : part.start()]:
            aside = len(words)
        place = part.start()
        if part[0] not in _COLONS:
            words.append(part[0])
            if len(words) > MOST_WORDS:
                return None
        elif _imitates(words, known) or _imitates(words[:aside], known):
            return place
        elif not all(map(_leads, words)):  # 12:30 says nothing yet
            return None
    return None


def _said_first(line: str) -> list[str]:
    found = [part[0] for part in islice(_PARTS.finditer(line), MOST_WORDS + 1)]
    return found if len(found) <= MOST_WORDS else []


def _leads(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word.casefold())) or skeleton(word) in _LEADS


def _imitates(said: list[str], known: frozenset[str]) -> bool:
    """Whether these words are a name, perhaps with something before it and a title behind it."""
    if len(said) > 1 and all(len(word) == 1 for word in said):
        said = ["".join(said)]  # l i k e  t h i s
    shapes = [skeleton(word) for word in said]
    for first in range(len(said)):
        for last in range(len(said), first, -1):
            name = " ".join(shapes[first:last])
            if (name in known or name in RESERVED) and all(map(_is_title, said[last:])):
                return True
        if not _leads(said[first]):
            return False
    return False


def _is_title(word: str) -> bool:
    return word.isdigit() or skeleton(word) in _TITLES


def _word(name: str) -> str:
    return skeleton(_NO_WORD.sub(" ", bare(name)).strip())


_NO_WORD = re.compile(r"[\W_]++")
_SKELETONS_STRONG = _STRONG | frozenset(map(skeleton, _STRONG))
_SKELETONS_WEAK = _WEAK | frozenset(map(skeleton, _WEAK))
_STRONG_ONES = tuple(_STRONG)
#: those of them that nobody makes a link of
_LLAMA = frozenset({"inst", "sys"})

_UNFIT = re.compile(r"[\s<>\[\]{}|`\"\\:\uff1a#*_~]++")


def label(text: Any, longest: int = 60) -> str:
    """A name or a role, fit to stand in a sentence of the host: one line without any marks."""
    words = str(text)[: 16 * longest]
    return (_labelled if len(words) <= SHORT else _fit)(words, longest)


def _fit(words: str, longest: int) -> str:
    plain = _plain(_BREAKS.sub(" ", words), frozenset())
    return _UNFIT.sub(" ", plain).strip()[:longest].strip()


_labelled = lru_cache(maxsize=4096)(_fit)
