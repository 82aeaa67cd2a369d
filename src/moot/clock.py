"""The only place where time is read and ids and secrets are drawn."""

import os
import secrets
import time
from typing import Protocol

#: byte -> letter; every base32 letter stands for eight of the 256 bytes
LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
#: letters of an id, and ids that are drawn at a time: asking the system lets every other thread in
ID_LETTERS, DRAWN = 20, 128


class Clock(Protocol):
    """The source of times and ids. Tests pass a virtual one."""

    def micros(self) -> int:
        """Microseconds since the epoch; never less than the value before."""

    def millis(self) -> int: ...

    def new_id(self, prefix: str) -> str:
        """A prefix and 20 random lower-case base32 characters."""

    def new_secret(self, prefix: str) -> str:
        """A secret that cannot be guessed."""


class SystemClock:
    """The machine's clock, made monotonic."""

    def __init__(self) -> None:
        self._last = 0
        self._drawn: list[str] = []
        self._process = 0

    def micros(self) -> int:
        now = time.time_ns() // 1000
        if now > self._last:
            self._last = now
        return self._last

    def millis(self) -> int:
        return self.micros() // 1000

    def new_id(self, prefix: str) -> str:
        """None is given out twice: a child process draws its own, and of two threads one draws
        anew."""
        if self._process == os.getpid():
            try:
                return prefix + self._drawn.pop()
            except IndexError:
                pass
        text = secrets.token_bytes(ID_LETTERS * DRAWN).translate(LETTERS).decode()
        first, *drawn = (text[at : at + ID_LETTERS] for at in range(0, len(text), ID_LETTERS))
        self._drawn, self._process = drawn, os.getpid()
        return prefix + first

    def new_secret(self, prefix: str) -> str:
        return prefix + secrets.token_urlsafe(32)
