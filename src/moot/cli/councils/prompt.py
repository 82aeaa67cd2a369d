"""What a person types at a council's prompt: a turn, or a command. Pure."""

import re
import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

from moot.cli.shared import quantities

#: command -> what it takes, and what it does
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


class Mistake(ValueError):
    """What is wrong with a line, and the way out, in one sentence."""


class Seat(NamedTuple):
    """Somebody who may be meant by a name."""

    agent_id: str
    #: how people call it
    name: str
    role: str = ""


class Say(NamedTuple):
    """A turn; to all, or to one member."""

    text: str
    to: str | None = None


class Steer(NamedTuple):
    """A control, as the API takes it."""

    content: dict[str, Any]


class Close(NamedTuple):
    decision: str | None = None
    vote: bool = False


class Choose(NamedTuple):
    """One of what waits for a word: ``admit``, ``drop``, ``allow``, ``deny``."""

    word: str
    which: str | None = None


class Task(NamedTuple):
    """Something for one member to do."""

    to: str
    text: str


class Ask(NamedTuple):
    """``help``, ``quit``, ``undo`` or ``catchup``."""

    word: str


Typed = Say | Steer | Close | Choose | Task | Ask


def read(line: str, seats: Iterable[Seat]) -> Typed | None:
    """None for nothing. Raises Mistake."""
    text, known = line.strip(), list(seats)
    if not text:
        return None
    if text.startswith("/"):
        return _command(text[1:], known)
    addressed = _ADDRESS.fullmatch(text)
    if addressed:
        return Say(addressed[2].strip(), _named(f"@{addressed[1]}", known).agent_id)
    return Say(text)


def _command(text: str, seats: list[Seat]) -> Typed:
    name, words = _words(text)
    if name not in COMMANDS:
        from moot.core.text.nearest import nearest

        meant = nearest(name, COMMANDS)
        hint = f" Did you mean /{meant}?" if meant else " /help lists them."
        raise Mistake(f"There is no command /{name}.{hint}")
    match name:
        case "help" | "quit" | "undo" | "catchup":
            return Ask(name)
        case "close":
            return _close(words)
        case "task":
            return _task(words, seats)
        case "admit" | "drop" | "allow" | "deny":
            return Choose(name, words[0] if words else None)
        case _:
            return Steer(_content(name, words, seats))


def _words(text: str) -> tuple[str, list[str]]:
    """Quotes hold words together; a single one is just a mark."""
    try:
        parts = shlex.split(text)
    except ValueError:
        parts = text.split()
    return (parts[0].lower() if parts else ""), parts[1:]


def _content(name: str, words: list[str], seats: list[Seat]) -> dict[str, Any]:
    match name:
        case "pause" | "resume":
            return {"pause": {"on": name == "pause"}}
        case "continue":
            return {"continue": {"rounds": _rounds(words[0])} if words else True}
        case "invite":
            return {"invite": _invited(words)}
        case "done":
            return {"done": True}
        case "rename" | "ttl" | "discussion" | "auto":
            return _set(name, words)
        case _:
            return _about(name, words, seats)


def _about(name: str, words: list[str], seats: list[Seat]) -> dict[str, Any]:
    if not words:
        raise Mistake(f"Say whom: /{name} {COMMANDS[name][0]}")
    target = _named(words[0], seats).agent_id
    if name == "mute" and len(words) > 1:
        return {"mute": {"targets": [target], "seconds": _seconds(words[1])}}
    return {name: [target]}


def _set(name: str, words: list[str]) -> dict[str, Any]:
    """A title, a time, a switch."""
    given = " ".join(words).strip()
    if not given:
        raise Mistake(f"Say what: /{name} {COMMANDS[name][0]}")
    if name == "rename":
        return {"rename": given}
    if name == "ttl":
        return {"ttl_seconds": None if given == "off" else _seconds(given, "/ttl 10m")}
    if given not in ("on", "off"):
        raise Mistake(f"It is on or off: /{name} on")
    return {"discussion" if name == "discussion" else "invited_auto": {"on": given == "on"}}


def _task(words: list[str], seats: list[Seat]) -> Task:
    if len(words) < 2:
        raise Mistake("Say whom and what: /task NAME TEXT")
    return Task(_named(words[0], seats).agent_id, " ".join(words[1:]))


def _rounds(word: str) -> int:
    if not word.isascii() or not word.isdigit() or not 1 <= int(word[:6]) <= 100:
        raise Mistake(f"'{word}' is no number of rounds; 1 to 100: /continue 2")
    return int(word)


def _seconds(word: str, example: str = "/mute NAME 10m") -> int:
    try:
        return quantities.seconds(word)
    except ValueError as error:
        raise Mistake(f"{error}: {example}") from None


def _invited(words: list[str]) -> dict[str, Any]:
    name, *rest = words or [""]
    if not name or name.startswith("--"):
        raise Mistake("Say whom: /invite NAME [--role R]")
    asked: dict[str, Any] = {"participant_id": name.removeprefix("@")}
    if rest and rest[0] == "--role" and len(rest) > 1:
        asked["profile"] = {"role": " ".join(rest[1:])}
    elif rest:
        raise Mistake("After the name only a role may follow: /invite NAME --role R")
    return asked


def _close(words: list[str]) -> Close:
    vote = "--vote" in words
    rest = [word for word in words if word != "--vote"]
    if not rest:
        return Close(None, vote)
    if rest[0] != "--decision" or not " ".join(rest[1:]).strip():
        raise Mistake('Say what was decided: /close --decision "Pilot first" [--vote]')
    return Close(" ".join(rest[1:]).strip(), vote)


def _named(word: str, seats: list[Seat]) -> Seat:
    found = _meant(word, seats)
    if found is None:
        names = [seat.name for seat in seats]
        from moot.core.text.nearest import nearest

        meant = nearest(word.removeprefix("@").casefold(), [name.casefold() for name in names])
        hint = f" Did you mean {meant}?" if meant else f" There are {', '.join(names)}."
        raise Mistake(f"Nobody here is called '{word}'.{hint}")
    return found


def _meant(word: str, seats: list[Seat]) -> Seat | None:
    """By id, short id or name; a role must be one member's."""
    word = word.removeprefix("@").casefold()
    for seat in seats:
        short = seat.agent_id.rpartition(":")[2]
        if word in (seat.agent_id.casefold(), short.casefold(), seat.name.casefold()):
            return seat
    roles = [seat for seat in seats if seat.role.casefold() == word]
    return roles[0] if len(roles) == 1 else None


def completions(before: str, seats: Iterable[Seat]) -> list[str]:
    """What the word before the cursor could become: a command, or a name."""
    word = before.rpartition(" ")[2]
    if before.startswith("/") and " " not in before:
        return [f"/{name}" for name in COMMANDS if f"/{name}".startswith(word.lower())]
    names = sorted({seat.agent_id.rpartition(":")[2] for seat in seats})
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
