"""What a program that joins is run with: a command as it was typed, or one that is known."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import click

from moot.cli.shared.command_hint import program

#: how each program takes a prompt on stdin and answers on stdout, with no more rights than it has
#: by itself: whoever wants to give it more writes the command himself
PRESETS = {
    "codex": "codex exec --sandbox read-only --skip-git-repo-check -",
    "claude": "claude -p",
    "gemini": "gemini",
    "aider": "aider --chat-mode ask --no-git --no-pretty --no-stream --no-fancy-input"
    " --no-check-update --no-show-release-notes --no-show-model-warnings --analytics-disable"
    " --no-detect-urls --no-suggest-shell-commands --message-file /dev/stdin",
}
#: what a shell would do something with
OPERATORS = set("|&;<>")


def words_of(
    command: tuple[str, ...], once: str | None, jsonl: bool, preset: str | None
) -> list[str]:
    """What is run: one of the three ways to say it."""
    ways = [once is not None, jsonl, preset is not None]
    if sum(ways) != 1 or bool(command) != jsonl:
        raise click.UsageError("Say what to run: --exec CMD, --preset NAME, or --jsonl -- CMD.")
    if jsonl:
        return list(command)
    try:
        words = shlex.split(PRESETS[preset] if preset else once or "")
    except ValueError as error:
        raise click.UsageError(f"--exec: {error}.") from None
    if not words:
        raise click.UsageError("Say what to run: --exec CMD.")
    if once is not None and (mark := _operator(once)):
        raise click.UsageError(
            f"No shell is between, so '{mark}' would be a word of the command. With one:"
            f" --exec {shlex.quote(f'sh -c {shlex.quote(once)}')}. As a word it stands in quotes."
        )
    return words


def _operator(text: str) -> str | None:
    """The first mark outside quotes that only a shell understands."""
    found = shlex.shlex(text, posix=False, punctuation_chars="|&;<>")
    found.commenters = ""
    try:
        return next((word for word in found if set(word) <= OPERATORS), None)
    except ValueError:
        return None  # quotes that only the other way of reading closes


def as_run(words: list[str], environment: dict[str, str]) -> list[str]:
    """The same command as it is run in another folder: files of this one are named in full. Raises
    when there is no such program."""
    found = shutil.which(words[0], path=environment.get("PATH"))
    if found is None:
        raise click.UsageError(
            f"There is no program '{words[0]}' to run: it is neither in PATH nor a file here that"
            " can be run."
        )
    return [str(Path(found).absolute()), *(_file(word) for word in words[1:])]


def _file(word: str) -> str:
    """A word that looks like a file and is one here."""
    looks = ("." in word or "/" in word) and not word.startswith("-")
    try:
        return str(Path(word).absolute()) if looks and Path(word).is_file() else word
    except (OSError, ValueError):
        return word


def again(thread_id: str, name: str, words: list[str], jsonl: bool, preset: str | None) -> str:
    """How it is let in once more."""
    how = ["--preset", preset] if preset else ["--exec", shlex.join(words)]
    how = ["--jsonl", "--", *words] if jsonl else how
    return shlex.join([program(), "join", thread_id, "--as", name.removeprefix("host:"), *how])


def _aider(text: str) -> str:
    """Without what it tells of itself: a heading that begins with its version, and the tokens."""
    lines = text.split("\n")
    begins = next((at for at, line in enumerate(lines) if line.startswith("Aider v")), None)
    if begins is not None:
        rest = lines[begins:]
        lines = rest[rest.index("") + 1 :] if "" in rest else []
    while lines and (not lines[-1].strip() or lines[-1].startswith(("Tokens: ", "Cost: "))):
        lines.pop()
    return "\n".join(lines).strip()


#: what is taken from an answer before it is said
TRIMS: dict[str, Callable[[str], str]] = {"aider": _aider}
