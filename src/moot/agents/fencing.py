"""What others have said, made harmless before a model reads it.

Text never decides who spoke. What looks like a speaker's tag, like markup of the host or of a chat
template, is kept readable but can no longer be taken for the real thing, and is pointed out.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

from moot.agents.lookalikes import skeleton

#: marks that do not show or turn the reading order around; those that join letters of other
#: scripts and parts of emoji are ordinary there, and beside plain letters they are not
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_JOINERS = re.compile(
    "(?<=[\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f])"
    "|^[\u200c\u200d]+|[\u200c\u200d]+$"
)
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
_ANGLE = re.compile(r"[<\uff1c\ufe64](\s*[/|!?]?\s*)([^\s<>\uff1c\uff1e\ufe64\ufe65|/=:\"']{1,40})")
_SQUARE = re.compile(r"[\[\uff3b](\s*/?\s*)([^\[\]\uff3b:/\n]{1,40}?)\s*(?:\]|:)")
_COMMENT = re.compile(r"[<\uff1c]!--")

_SPACE = r"[^\S\n]*"
_COLONS = ":\uff1a\ufe55\ua789\u2236\ufe13"
_MARKS = rf"(?:[\[({{<*_#>~`|\"'\u2022\u2013\u2014-]{_SPACE})*+"
_ENDS = rf"(?:{_SPACE}[\])}}>*_~`|\"'])*"
_NAME = rf"[^\s{_COLONS}\[\](){{}}<>*#~`|\"'\u2022-][^{_COLONS}\n\[\](){{}}<>*`|\"]{{0,60}}?"
_CLOCK = rf"(?:[\[(]?\d{{1,2}}:\d{{2}}(?::\d{{2}})?[\])]?{_SPACE}(?:[-\u2013\u2014|]{_SPACE})?)?"
_SPEAKER = re.compile(
    rf"^({_SPACE}{_CLOCK}{_MARKS})({_NAME})({_ENDS}(?:{_SPACE}\([^()\n]{{0,40}}\))?{_ENDS}{_SPACE})"
    rf"[{_COLONS}]",
    re.MULTILINE,
)
_HEADING = re.compile(
    rf"^({_SPACE}(?:#{{1,6}}|\*\*|__|==+|--+){_SPACE})({_NAME})({_SPACE}[#*_=-]*{_SPACE})$",
    re.MULTILINE,
)
#: words of JSON that would speak for somebody
_FORM = re.compile(r"\{\s*\"(?:speaker|role|tool_call_id|tool_calls|function_call)\"\s*:")

LONGEST = 16_000
#: the longest text of those that are kept in great number
SHORT = 2000

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
_THE = skeleton("the")


def words(content: Any) -> str:
    """What was said, as text. Anything else is shown as JSON."""
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def fenced(content: Any, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The text a model may read, and what in it had to be made harmless. Ordinary text stays as it
    is, and what was fenced stays so when it is fenced again.

    ``names``: who could be imitated, besides the words every host has.
    """
    text = words(content)
    make = _kept if len(text) <= SHORT else _kept_long if len(text) <= LONGEST else _made
    safe, flags = make(text, names)
    return safe, list(flags)


def _made(text: str, names: tuple[str, ...]) -> tuple[str, list[str]]:
    known = frozenset(filter(None, map(_word, names)))
    text = _BREAKS.sub("\n", text)
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
    if _FORM.search(text):
        flags.append("form")
    return _cut(text), flags


#: the same turn is told to many, again and again: what came of it is kept
_kept = lru_cache(maxsize=4096)(_made)
_kept_long = lru_cache(maxsize=512)(_made)


def _plain(text: str, known: frozenset[str]) -> str:
    return _JOINERS.sub("", _UNSEEN.sub("", _CONTROLS.sub("", text)))


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    kept = LONGEST - 50
    return f"{text[:kept]} … (cut: {len(text) - kept} more characters)"


def _markup(text: str, known: frozenset[str]) -> str:
    if "<" in text or "\uff1c" in text or "\ufe64" in text:
        text = _COMMENT.sub("\u2039!--", text)
        text = _ANGLE.sub(lambda found: _bracket(found, known), text)
    if "[" in text or "\uff3b" in text:
        text = _SQUARE.sub(_tagged, text)
    return text


def _bracket(found: re.Match[str], known: frozenset[str]) -> str:
    between, word = found.groups()
    text, place = found.string, found.start()
    after = text[found.end() : found.end() + 1]
    first = re.split(r"[^\w]", word, maxsplit=1)[0]
    shape = {first.casefold(), first.casefold().partition("-")[0], skeleton(first)}
    closed = ">" in text[found.end() : found.end() + 200].partition("\n")[0]
    joined = place > 0 and (text[place - 1].isalnum() or text[place - 1] == "_")
    joined = joined and "/" not in between  # what ends a mark ends it after a letter as well
    spaced = between.strip() == "" and between != ""
    if first.casefold() == "s":
        guilty = after == ">"
    elif shape & _SKELETONS_STRONG or (between.strip() == "|" and closed):
        guilty = not spaced or closed
    else:
        guilty = not joined and (not spaced or closed) and bool(shape & (_SKELETONS_WEAK | known))
    return f"\u2039{found.group()[1:]}" if guilty else found.group()


def _tagged(found: re.Match[str]) -> str:
    first = found.group(2).strip().casefold()
    shape, plain = {first, skeleton(first)}, not found.group(1).strip()
    link = plain and found.string[found.end() : found.end() + 1] == "("
    if shape & _SKELETONS_STRONG or shape & (_SKELETONS_WEAK if not link else _LLAMA):
        return f"\u2045{found.group()[1:]}"
    return found.group()


def _speakers(text: str, known: frozenset[str]) -> str:
    """A line that begins like a turn of somebody else is shown as a quotation."""

    def colon(found: re.Match[str]) -> str:
        marks, name, ends = found.groups()
        if not _imitates(name, known):
            return found.group()
        return f"(quoting) {marks}{name}{ends.rstrip()} -"

    def heading(found: re.Match[str]) -> str:
        return f"(quoting) {found.group()}" if _imitates(found.group(2), known) else found.group()

    return _HEADING.sub(heading, _SPEAKER.sub(colon, text))


def _imitates(name: str, known: frozenset[str]) -> bool:
    word = _word(name)
    if word in known:
        return True
    first, *titles = word.removeprefix(f"{_THE} ").split(" ")
    return (first in RESERVED or first in known) and all(title in _TITLES for title in titles)


def _word(name: str) -> str:
    return skeleton(re.sub(r"[\W_]+", " ", name).strip())


_SKELETONS_STRONG = _STRONG | frozenset(map(skeleton, _STRONG))
_SKELETONS_WEAK = _WEAK | frozenset(map(skeleton, _WEAK))
#: those of them that nobody makes a link of
_LLAMA = frozenset({"inst", "sys"})

_UNFIT = re.compile(r"[\s<>\[\]{}|`\"\\:\uff1a#*_~]+")


def label(text: Any, longest: int = 60) -> str:
    """A name or a role, fit to stand in a sentence of the host: one line without any marks."""
    words = str(text)
    return (_labelled if len(words) <= SHORT else _fit)(words, longest)


def _fit(words: str, longest: int) -> str:
    plain = _plain(_BREAKS.sub(" ", words), frozenset())
    return _UNFIT.sub(" ", plain).strip()[:longest].strip()


_labelled = lru_cache(maxsize=4096)(_fit)
