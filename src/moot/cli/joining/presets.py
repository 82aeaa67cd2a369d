"""The command of a program that joins: typed, or one of the known programs."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import click

from moot.cli.shared.command_hint import program_name

#: commands that take a prompt on stdin and answer on stdout, with no more rights than the program
#: has by default; a user who wants to give it more types the command
PRESETS = {
    "codex": "codex exec --sandbox read-only --skip-git-repo-check -",
    "claude": "claude -p",
    "gemini": "gemini",
    "aider": "aider --chat-mode ask --no-git --no-pretty --no-stream --no-fancy-input"
    " --no-check-update --no-show-release-notes --no-show-model-warnings --analytics-disable"
    " --no-detect-urls --no-suggest-shell-commands --message-file /dev/stdin",
}
#: characters with a meaning for a shell
OPERATORS = set("|&;<>")


def command_words(
    command: tuple[str, ...], once: str | None, jsonl: bool, preset: str | None
) -> list[str]:
    """Return the command to run. Raise UsageError unless there is exactly one."""
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
    if once is not None and (mark := _shell_operator(once)):
        raise click.UsageError(
            f"No shell is between, so '{mark}' would be a word of the command. With one:"
            f" --exec {shlex.quote(f'sh -c {shlex.quote(once)}')}. As a word it stands in quotes."
        )
    return words


def _shell_operator(text: str) -> str | None:
    """Return the first operator outside quotes that only a shell understands."""
    tokens = shlex.shlex(text, posix=False, punctuation_chars="|&;<>")
    tokens.commenters = ""
    try:
        return next((word for word in tokens if set(word) <= OPERATORS), None)
    except ValueError:
        return None  # quotes that only the posix mode can close


def absolute_command(words: list[str], environment: dict[str, str]) -> list[str]:
    """Return the command with absolute files, because it runs in another folder.

    Raise UsageError when there is no such program.
    """
    path = shutil.which(words[0], path=environment.get("PATH"))
    if path is None:
        raise click.UsageError(
            f"There is no program '{words[0]}' to run: it is neither in PATH nor a file here that"
            " can be run."
        )
    return [str(Path(path).absolute()), *(_absolute_file(word) for word in words[1:])]


def _absolute_file(word: str) -> str:
    """Return an absolute path for a word that looks like a file and is one."""
    looks_like_file = ("." in word or "/" in word) and not word.startswith("-")
    try:
        return str(Path(word).absolute()) if looks_like_file and Path(word).is_file() else word
    except (OSError, ValueError):
        return word


def rejoin_command(
    thread_id: str, name: str, words: list[str], jsonl: bool, preset: str | None
) -> str:
    """Return the command that lets the program join again."""
    flags = ["--preset", preset] if preset else ["--exec", shlex.join(words)]
    flags = ["--jsonl", "--", *words] if jsonl else flags
    return shlex.join(
        [program_name(), "join", thread_id, "--as", name.removeprefix("host:"), *flags]
    )


def _trim_aider(text: str) -> str:
    """Remove aider's own lines: the heading with its version, and the tokens."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line.startswith("Aider v")), None)
    if start is not None:
        rest = lines[start:]
        lines = rest[rest.index("") + 1 :] if "" in rest else []
    while lines and (not lines[-1].strip() or lines[-1].startswith(("Tokens: ", "Cost: "))):
        lines.pop()
    return "\n".join(lines).strip()


#: functions that trim an answer before it is sent
ANSWER_TRIMMERS: dict[str, Callable[[str], str]] = {"aider": _trim_aider}
