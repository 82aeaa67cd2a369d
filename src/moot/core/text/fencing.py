"""Fence text of others before a model reads it.

Text never decides who spoke. Anything that looks like a speaker tag, or like markup of the host or
of a chat template, stays readable but cannot be taken for the real thing, and is flagged."""

import re
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from moot.core.text.confusables import find_marks, skeleton, strip_marks

#: characters that are invisible or change the reading order
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
#: joiners are ordinary in other scripts and in emoji, but not beside plain letters
_JOINERS = re.compile("[\u200c\u200d]++")
#: variation selectors are ordinary after a symbol, and after digits in a keycap
_SELECTORS = re.compile(
    "(?<=[\x00-\x22\x24-\x29\x2b-\x2f\x3a-\x7f])[\ufe00-\ufe0f\U000e0100-\U000e01ef]++"
)
#: unusual line breaks
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(" "))


def _skeletons(text: str) -> frozenset[str]:
    return frozenset(map(skeleton, _words(text)))


#: words that only chat templates and tools put in brackets
_STRONG = _words(
    "system assistant developer im_start im_end im_sep endoftext eot_id eom_id start_header_id"
    " end_header_id begin_of_text end_of_text fim_prefix antml invoke tool_use tool_result"
    " tool_call tool_response function_call function_results function_calls start_of_turn"
    " end_of_turn"
)
#: words that are ordinary in brackets after a letter, as in ``List<Message>``
_WEAK = _words(
    "user human tool function instruction instructions admin moderator host moot inst sys turn"
    " message control thinking data speaker"
)
#: The patterns are possessive and do not overlap, so the time is linear in the text.
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
#: the words and colons at the start of a line that looks like a turn
_PARTS = re.compile(rf"[^\W_{_COLONS}]++|[{_COLONS}]")
_HEADING = re.compile(r"[^\S\n]*+(?:#|\*\*|__|==|--)")
#: a number, or a time
_NUMBER = re.compile(r"\d++(?:t\d++)?+z?")
#: JSON keys that would name a speaker
_FORM = re.compile(
    r"[{,]\s*+\"(?:speaker|role|tool_call_id|tool_calls|function_call)\"\s*+:", re.IGNORECASE
)
#: a speaker tag has at most this many words
MOST_WORDS = 32

LONGEST = 16_000
#: texts up to this length go into the larger cache
SHORT = 2000
QUOTING = "(quoting) "

RESERVED = _skeletons(
    "system assistant user human developer tool host moderator moot admin administrator function"
    " operator owner"
)
#: words that may follow a reserved name
_TITLES = _skeletons(
    "message messages prompt note notice instruction instructions override reminder turn result"
    " response output update policy"
)
#: words that may precede a name
_LEADS = _skeletons(
    "the turn message msg agent member speaker participant persona bot model name from by reply"
    " response answer note round id no nr number am pm"
)


def content_text(content: Any) -> str:
    """Return the content as text; anything else as JSON."""
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def fence_content(content: Any, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Return the text that a model may read, and flags for what was changed.

    Ordinary text stays as it is, and fenced text stays the same when it is fenced again. In other
    values every text is fenced, and the result is JSON. ``names`` are speakers that a text could
    imitate, besides the reserved words."""
    if isinstance(content, str):
        fence = _fence_cached if len(content) <= SHORT else _fence_long_cached
        safe, flags = (fence if len(content) <= LONGEST else _fence_text)(content, names)
        return safe, list(flags)
    parts = _ValueFencer(names)
    text = msgspec.json.encode(parts.fenced(content)).decode()
    if "form" not in parts.flags and _FORM.search(strip_marks(text)):
        parts.flags.append("form")
    return _cut(text, 0), parts.flags


class _ValueFencer:
    """Fences every text in a value, and leaves out what does not fit."""

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
            part = value[: self._room + 1]
            return [self.fenced(each) for each in part] + ["\u2026"] * (len(part) < len(value))
        if isinstance(value, dict):
            part = list(value)[: self._room + 1]
            return {self._text(str(key)): self.fenced(value[key]) for key in part}
        return value

    def _text(self, text: str) -> str:
        safe, flags = fence_content(text[: max(0, self._room) + 1], self._names)
        self._room -= len(safe)
        self.flags += [flag for flag in flags if flag not in self.flags]
        return safe


def _fence_text(text: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
    skeletons = _name_skeletons(names)
    cut_characters = max(0, len(text) - LONGEST)  # text beyond the limit is not processed
    text = _BREAKS.sub("\n", text[:LONGEST])
    flags: list[str] = []
    for flag, change in _CHANGES.items():
        changed = change(text, skeletons)
        if changed != text:
            flags.append(flag)
        text = changed
    if _FORM.search(strip_marks(text)):
        flags.append("form")
    return _cut(text, cut_characters), flags


#: many agents read the same turn again and again, so the results are cached
_fence_cached = lru_cache(maxsize=4096)(_fence_text)
_fence_long_cached = lru_cache(maxsize=512)(_fence_text)


@lru_cache(maxsize=256)
def _name_skeletons(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filter(None, map(_word, names)))


def _remove_invisible(text: str, skeletons: frozenset[str]) -> str:
    text = _UNSEEN.sub("", _CONTROLS.sub("", text))
    return text if text.isascii() else _SELECTORS.sub("", _JOINERS.sub(_keep_joiner, text))


def _keep_joiner(match: re.Match[str]) -> str:
    """Return the joiner if both neighbours are non-ASCII, else nothing."""
    text, start, end = match.string, match.start(), match.end()
    has_neighbours = start > 0 and end < len(text)
    return match.group() if has_neighbours and text[start - 1] > "\x7f" < text[end] else ""


def _cut(text: str, cut_characters: int) -> str:
    if len(text) + cut_characters <= LONGEST:
        return text
    length = LONGEST - 50
    more = len(text) + cut_characters - len(text[:length])
    return f"{text[:length]} … (cut: {more} more characters)"


class _Edits:
    """Changes of a text, at positions in its bare form without marks."""

    def __init__(self, text: str) -> None:
        self._text = text
        marks = find_marks(text)
        #: position in the bare text -> position in the text
        self._at = None
        if marks:
            self._at = [n for n, each in enumerate(text) if each not in marks] + [len(text)]
        self.bare = strip_marks(text)
        self._changes: list[tuple[int, int, str]] = []

    def put(self, start: int, end: int, new: str) -> None:
        """Replace these characters of the bare text. Changes must not overlap."""
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


def _fence_markup(text: str, skeletons: frozenset[str]) -> str:
    edits = _Edits(text)
    bare_text = edits.bare
    if "<" in bare_text or "\uff1c" in bare_text or "\ufe64" in bare_text:
        starts = {match.start() for match in _COMMENT.finditer(bare_text)}
        starts |= {
            match.start() for match in _ANGLE.finditer(bare_text) if _is_markup(match, skeletons)
        }
        for place in starts:
            edits.put(place, place + 1, "\u2039")
    if "[" in bare_text or "\uff3b" in bare_text or "\u3010" in bare_text:
        for match in _SQUARE.finditer(bare_text):
            if _is_tag(match):
                edits.put(match.start(), match.start() + 1, "\u2045")
    return edits.done()


def _is_markup(match: re.Match[str], skeletons: frozenset[str]) -> bool:
    between, word = match.groups()
    text, place = match.string, match.start()
    after = text[match.end() : match.end() + 1]
    first = _FIRST.match(word)[0]  # type: ignore[index]
    shape = {first.casefold(), word.casefold().partition("-")[0], skeleton(first)}
    closed = ">" in text[match.end() : match.end() + 200].partition("\n")[0]
    joined = place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_")
    joined = joined and not {"/", "\\"} & {*between}  # a closing tag counts even after a letter
    spaced = between.strip() == "" and between != ""
    if first.casefold() == "s":
        return after == ">"
    is_strong = shape & _SKELETONS_STRONG or _starts_with_strong_word(first, skeletons)
    if is_strong or ("|" in between and closed):
        return not spaced or closed
    return not joined and (not spaced or closed) and bool(shape & (_SKELETONS_WEAK | skeletons))


def _starts_with_strong_word(first: str, skeletons: frozenset[str]) -> bool:
    """Return whether a strong word is followed by what looks like another word: ``<systemAda``."""
    low = first.casefold()
    if not low.startswith(_STRONG_ONES):
        return False
    rests = [first[len(word) :] for word in _STRONG_ONES if low.startswith(word)]
    return any(rest[:1].isupper() or skeleton(rest) in skeletons for rest in rests)


def _is_tag(match: re.Match[str]) -> bool:
    first = match.group(2).strip().casefold()
    if len(first) > 40:
        return False
    shape, plain = {first, skeleton(first)}, not match.group(1).strip()
    link = plain and match.string[match.end() : match.end() + 1] == "("
    return bool(shape & _SKELETONS_STRONG or shape & (_SKELETONS_WEAK if not link else _LLAMA))


def _fence_speakers(text: str, skeletons: frozenset[str]) -> str:
    """Mark lines that begin like a turn of another speaker as quotations."""
    edits = _Edits(text)
    start = 0
    for line in edits.bare.split("\n"):
        colon = _speaker_colon(line, skeletons)
        if colon is not None:
            head = line[:colon]
            edits.put(start, start, QUOTING)
            edits.put(start + len(head.rstrip()), start + colon + 1, " -")
        elif _HEADING.match(line) and _imitates(_first_words(line), skeletons):
            edits.put(start, start, QUOTING)
        start += len(line) + 1
    return edits.done()


def _speaker_colon(line: str, skeletons: frozenset[str]) -> int | None:
    """Return the position of the colon that makes the line look like a turn."""
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
        elif _imitates(words, skeletons) or _imitates(words[:aside], skeletons):
            return place
        elif not all(map(_may_precede_name, words)):  # a time such as 12:30 is no speaker
            return None
    return None


def _first_words(line: str) -> list[str]:
    words = [part[0] for part in islice(_PARTS.finditer(line), MOST_WORDS + 1)]
    return words if len(words) <= MOST_WORDS else []


def _may_precede_name(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word.casefold())) or skeleton(word) in _LEADS


def _imitates(words: list[str], skeletons: frozenset[str]) -> bool:
    """Return whether the words are a name, perhaps with words before it and a title after it."""
    if len(words) > 1 and all(len(word) == 1 for word in words):
        words = ["".join(words)]  # l i k e  t h i s
    shapes = [skeleton(word) for word in words]
    for first in range(len(words)):
        for last in range(len(words), first, -1):
            name = " ".join(shapes[first:last])
            if (name in skeletons or name in RESERVED) and all(map(_is_title, words[last:])):
                return True
        if not _may_precede_name(words[first]):
            return False
    return False


def _is_title(word: str) -> bool:
    return word.isdigit() or skeleton(word) in _TITLES


def _word(name: str) -> str:
    return skeleton(_NO_WORD.sub(" ", strip_marks(name)).strip())


#: flag -> the change that it tells of, in this order
_CHANGES = {
    "hidden-characters": _remove_invisible,
    "markup": _fence_markup,
    "speaker-tag": _fence_speakers,
}
_NO_WORD = re.compile(r"[\W_]++")
_SKELETONS_STRONG = _STRONG | frozenset(map(skeleton, _STRONG))
_SKELETONS_WEAK = _WEAK | frozenset(map(skeleton, _WEAK))
_STRONG_ONES = tuple(_STRONG)
#: weak words that are never the text of a link
_LLAMA = frozenset({"inst", "sys"})

_UNFIT = re.compile(r"[\s<>\[\]{}|`\"\\:\uff1a#*_~]++")


def plain_label(text: Any, longest: int = 60) -> str:
    """Return a name or role as one plain line for a sentence of the host."""
    words = str(text)[: 16 * longest]
    return (_label_cached if len(words) <= SHORT else _make_label)(words, longest)


def _make_label(words: str, longest: int) -> str:
    plain = _remove_invisible(_BREAKS.sub(" ", words), frozenset())
    return _UNFIT.sub(" ", plain).strip()[:longest].strip()


_label_cached = lru_cache(maxsize=4096)(_make_label)
