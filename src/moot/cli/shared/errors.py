"""Errors that end a command with one sentence on stderr and one exit code."""

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    WAITING = 4  # for a human
    NOT_FOUND = 5
    UNREACHABLE = 6


class CommandError(Exception):
    """A command failed; the message names the problem and the remedy."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        #: status, code and details of a server's refusal
        self.status: int | None = None
        self.code = ""
        self.details: dict[str, Any] = {}
