"""Parse the lines that a person types at a council's prompt. Pure."""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moot.cli.shared import quantities
from moot.core.text.nearest import nearest_word

#: command -> its arguments, and its help
COMMANDS = {
    "mute": ("NAME [10m]", "refuse a member's turns, for a while or for good"),
    "unmute": ("NAME", "let it speak again"),
    "pause": ("", "agents hold; people still speak"),
    "resume": ("", "go on after a pause"),
    "prod": ("NAME", "ask a member to speak once, out of turn"),
    "invite": ("NAME [--role R]", "ask somebody in (open rosters)"),
    "undo": ("", "take back what you have steered last"),
    "rename": ("TITLE", "give the thread another title"),
    "ttl": ("10m|off", "let agents go on by themselves for so long"),
    "discussion": ("on|off", "let agents wake one another with @NAME"),
    "auto": ("on|off", "have everybody answer what is said to all"),
    "task": ("NAME TEXT", "ask a member to do something"),
    "done": ("", "you have nothing more to say"),
    "catchup": ("", "have what you have not read summed up, for you alone"),
    "continue": ("[ROUNDS]", "go on past a limit, or for more rounds"),
    "admit": ("[N]", "let in a turn that was held back"),
    "drop": ("[N]", "drop it instead"),
    "allow": ("[ID]", "agree to the use of a tool"),
    "deny": ("[ID]", "do not"),
    "close": ("[--decision TEXT] [--vote]", "end it, with a decision, after a vote"),
    "help": ("", "these lines"),
    "quit": ("", "leave; what is under way goes on"),
}

_ADDRESS = re.compile(r"@([\w][\w.:-]{0,127}?)[,:]?\s+(\S.*)", re.S)


#: a control in the form that the API takes
Control = Mapping[str, object]


class PromptMistake(ValueError):
    """A line is wrong; the message says why and what to type."""


class PromptMember(NamedTuple):
    """A member that a typed name may mean."""

    agent_id: str
    #: the name that people see
    name: str
    role: str = ""


class TypedTurn(NamedTuple):
    """A turn to everyone, or to one member."""

    text: str
    to: str | None = None


class TypedControl(NamedTuple):
    """A control in the form that the API takes."""

    content: Control


class TypedClose(NamedTuple):
    """The end of a conversation, with a decision or after a vote."""

    decision: str | None = None
    vote: bool = False


class TypedChoice(NamedTuple):
    """A decision on something that waits: ``admit``, ``drop``, ``allow``, ``deny``."""

    word: str
    which: str | None = None


class TypedTask(NamedTuple):
    """A task for one member."""

    to: str
    text: str


class TypedCommand(NamedTuple):
    """One of ``help``, ``quit``, ``undo`` and ``catchup``."""

    word: str


TypedLine = TypedTurn | TypedControl | TypedClose | TypedChoice | TypedTask | TypedCommand


def parse_line(line: str, members_given: Iterable[PromptMember]) -> TypedLine | None:
    """Return None for an empty line. Raise PromptMistake."""
    text, members = line.strip(), list(members_given)
    if not text:
        return None
    if text.startswith("/"):
        return _parse_command(text[1:], members)
    addressed = _ADDRESS.fullmatch(text)
    if addressed:
        to = _require_member(f"@{addressed[1]}", members).agent_id
        return TypedTurn(addressed[2].strip(), to)
    return TypedTurn(text)


def _parse_command(text: str, members: list[PromptMember]) -> TypedLine:
    name, words = _split_words(text)
    if name not in COMMANDS:
        suggestion = nearest_word(name, COMMANDS)
        hint = f" Did you mean /{suggestion}?" if suggestion else " /help lists them."
        raise PromptMistake(f"There is no command /{name}.{hint}")
    match name:
        case "help" | "quit" | "undo" | "catchup":
            return TypedCommand(name)
        case "close":
            return _parse_close(words)
        case "task":
            if len(words) < 2:
                raise PromptMistake("Say whom and what: /task NAME TEXT")
            return TypedTask(_require_member(words[0], members).agent_id, " ".join(words[1:]))
        case "admit" | "drop" | "allow" | "deny":
            return TypedChoice(name, words[0] if words else None)
        case _:
            return TypedControl(_control_content(name, words, members))


def _split_words(text: str) -> tuple[str, list[str]]:
    """Split at blanks outside quotes; an unpaired quote is an ordinary character."""
    try:
        parts = shlex.split(text)
    except ValueError:
        parts = text.split()
    return (parts[0].lower() if parts else ""), parts[1:]


def _control_content(name: str, words: list[str], members: list[PromptMember]) -> Control:
    match name:
        case "pause" | "resume":
            return {"pause": {"on": name == "pause"}}
        case "continue":
            return {"continue": {"rounds": _parse_rounds(words[0])} if words else True}
        case "invite":
            return {"invite": _parse_invitation(words)}
        case "done":
            return {"done": True}
        case "rename" | "ttl" | "discussion" | "auto":
            return _setting_control(name, " ".join(words).strip())
        case _ if not words:
            raise PromptMistake(f"Say whom: /{name} {COMMANDS[name][0]}")
        case _:
            target = _require_member(words[0], members).agent_id
            if name == "mute" and len(words) > 1:
                return {"mute": {"targets": [target], "seconds": _parse_seconds(words[1])}}
            return {name: [target]}


def _setting_control(name: str, value: str) -> Control:
    """Return the control that sets a title, a time or a switch."""
    if not value:
        raise PromptMistake(f"Say what: /{name} {COMMANDS[name][0]}")
    if name == "rename":
        return {"rename": value}
    if name == "ttl":
        return {"ttl_seconds": None if value == "off" else _parse_seconds(value, "/ttl 10m")}
    if value not in ("on", "off"):
        raise PromptMistake(f"It is on or off: /{name} on")
    return {"discussion" if name == "discussion" else "invited_auto": {"on": value == "on"}}


def _parse_rounds(word: str) -> int:
    if not word.isascii() or not word.isdigit() or not 1 <= int(word[:6]) <= 100:
        raise PromptMistake(f"'{word}' is no number of rounds; 1 to 100: /continue 2")
    return int(word)


def _parse_seconds(word: str, example: str = "/mute NAME 10m") -> int:
    try:
        return quantities.parse_seconds(word)
    except ValueError as error:
        raise PromptMistake(f"{error}: {example}") from None


def _parse_invitation(words: list[str]) -> Control:
    name, *rest = words or [""]
    if not name or name.startswith("--"):
        raise PromptMistake("Say whom: /invite NAME [--role R]")
    invited = {"participant_id": name.removeprefix("@")}
    if rest and rest[0] == "--role" and len(rest) > 1:
        return {**invited, "profile": {"role": " ".join(rest[1:])}}
    if rest:
        raise PromptMistake("After the name only a role may follow: /invite NAME --role R")
    return invited


def _parse_close(words: list[str]) -> TypedClose:
    vote = "--vote" in words
    rest = [word for word in words if word != "--vote"]
    if not rest:
        return TypedClose(None, vote)
    if rest[0] != "--decision" or not " ".join(rest[1:]).strip():
        raise PromptMistake('Say what was decided: /close --decision "Pilot first" [--vote]')
    return TypedClose(" ".join(rest[1:]).strip(), vote)


def _require_member(word: str, members: list[PromptMember]) -> PromptMember:
    member = _find_member(word, members)
    if member is None:
        names = [each.name for each in members]
        typed = word.removeprefix("@").casefold()
        suggestion = nearest_word(typed, [name.casefold() for name in names])
        hint = f" Did you mean {suggestion}?" if suggestion else f" There are {', '.join(names)}."
        raise PromptMistake(f"Nobody here is called '{word}'.{hint}")
    return member


def _find_member(word: str, members: list[PromptMember]) -> PromptMember | None:
    """Find a member by id, short id or name, or by a role that only one member has."""
    word = word.removeprefix("@").casefold()
    for member in members:
        short = member.agent_id.rpartition(":")[2]
        if word in (member.agent_id.casefold(), short.casefold(), member.name.casefold()):
            return member
    roles = [member for member in members if member.role.casefold() == word]
    return roles[0] if len(roles) == 1 else None


def complete_word(before: str, members: Iterable[PromptMember]) -> list[str]:
    """Return the commands or names that the word before the cursor could become."""
    word = before.rpartition(" ")[2]
    if before.startswith("/") and " " not in before:
        return [f"/{name}" for name in COMMANDS if f"/{name}".startswith(word.lower())]
    names = sorted({seat.agent_id.rpartition(":")[2] for seat in members})
    if word.startswith("@"):
        return [f"@{name}" for name in names if name.casefold().startswith(word[1:].casefold())]
    if before.startswith("/") and word:
        return [name for name in names if name.casefold().startswith(word.casefold())]
    return []


def help_lines() -> list[str]:
    rows = [(f"/{name} {takes}".rstrip(), does) for name, (takes, does) in COMMANDS.items()]
    return [
        "text              a turn, to everybody; @NAME text: to one member",
        *(f"{usage:<40} {does}" for usage, does in rows),
    ]
