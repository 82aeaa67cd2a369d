"""Find one thing by the text that a user types: its id or a beginning of it."""

from collections.abc import Sequence

from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode


def find_id(ids: Sequence[str], text: str, prefix: str, noun: str, listing: str) -> str:
    """Return the id that the text names, with or without the prefix of such ids."""
    starts = (text, f"{prefix}{text}")
    matches = [text] if text in ids else [each for each in ids if each.startswith(starts)]
    return choose_id(matches, text, noun, listing)


def choose_id(matches: Sequence[str], text: str, noun: str, listing: str) -> str:
    """Return the only match. Raise CommandError for none, with the command that lists all."""
    if len(matches) == 1:
        return matches[0]
    if matches:
        message = f"several {noun}s are meant by '{text}': {', '.join(matches)}."
        raise CommandError(message, ExitCode.USAGE)
    message = f"no {noun} is called '{text}'. See: {command_hint(listing)}"
    raise CommandError(message, ExitCode.NOT_FOUND)


def member_id(name: str | None) -> str | None:
    """Return the full id of a standing agent."""
    return f"host:{name}" if name and ":" not in name else name or None
