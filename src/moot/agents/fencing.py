"""What others have said, made harmless before a model reads it.

Text never decides who spoke. What looks like a speaker's tag, like markup of the host or of a chat
template, is kept readable but can no longer be taken for the real thing, and is pointed out.
"""

import re
from typing import Any

import msgspec

#: marks that do not show or turn the reading order around
_UNSEEN = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
#: ends of lines that are not written as such
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f]")

#: words that host, chat templates and tools put in angle or square brackets
_WORDS = (
    "system|assistant|user|human|developer|tool|function|instructions?|admin|moderator|host|moot"
    "|im_start|im_end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|inst|sys"
    "|s|antml|invoke|tool_use|tool_result|tool_call|function_call|turn|message|control|thinking"
    "|data"
)
_ANGLE = re.compile(rf"<(?=\s*[/|!?]?\s*(?:{_WORDS})\b)", re.IGNORECASE)
_SQUARE = re.compile(rf"\[(?=\s*/?\s*(?:{_WORDS})\s*[\]:])", re.IGNORECASE)
_DOUBLE = re.compile(r"<<(?=\s*/?\s*SYS)", re.IGNORECASE)
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})", re.MULTILINE)
_SPEAKER = re.compile(
    r"^(\s*)([\[(<{*_#>-]{0,4}\s*)([^\s:\[\](){}<>*][^:\n\[\](){}<>*]{0,40}?)(\s*[\])>}*_]{0,4})(\s*:)",
    re.MULTILINE,
)

LONGEST = 16_000


def words(content: Any) -> str:
    """What was said, as text. Anything else is shown as JSON."""
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def fenced(content: Any, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The text a model may read, and what in it had to be made harmless.

    ``names``: who could be imitated, besides the words every host has.
    """
    text = words(content)
    flags: list[str] = []

    def note(flag: str, changed: str) -> str:
        nonlocal text
        if changed != text and flag not in flags:
            flags.append(flag)
        return changed

    text = _BREAKS.sub("\n", text)
    text = note("hidden-characters", _CONTROLS.sub("", _UNSEEN.sub("", text)))
    text = note("markup", _DOUBLE.sub("\u2039\u2039", text))
    text = note("markup", _ANGLE.sub("\u2039", text))
    text = note("markup", _SQUARE.sub("⁅", text))
    text = note("speaker-tag", _SPEAKER.sub(lambda found: _tag(found, names), text))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} … (cut: {len(text) - LONGEST} more characters)"
    return text, flags


RESERVED = frozenset(
    {"system", "assistant", "user", "human", "developer", "tool", "host", "moderator", "moot",
     "admin", "administrator", "function"}
)  # fmt: skip


def _tag(found: re.Match[str], names: tuple[str, ...]) -> str:
    """A line that begins like a turn of somebody else is shown as a quotation."""
    blank, mark, name, close, colon = found.groups()
    if not _imitates(name, names):
        return found.group()
    return f"{blank}(quoting) {mark}{name}{close}{colon.replace(':', ' -')}"


def _imitates(name: str, names: tuple[str, ...]) -> bool:
    word = re.sub(r"[^\w]+", " ", name).strip().casefold()
    first = word.split(" ", 1)[0] if word else ""
    known = {each.casefold() for each in names}
    return word in RESERVED or first in RESERVED or word in known
