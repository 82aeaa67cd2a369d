"""How a command ends badly: one sentence on stderr, one exit code, never a traceback."""

from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    WAITING = 4  # for a human
    NOT_FOUND = 5
    UNREACHABLE = 6


class Trouble(Exception):
    """What went wrong and the way out, in one sentence."""

    def __init__(self, message: str, exit_code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        #: of a server's refusal: its status and code, and what it said besides its sentence
        self.status: int | None = None
        self.code = ""
        self.details: dict[str, Any] = {}
