"""The only place where time is read and ids and secrets are drawn."""

import secrets
import time
from typing import Protocol

#: byte -> letter; every base32 letter stands for eight of the 256 bytes
LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8


class Clock(Protocol):
    """Time and chance, handed to whoever needs them; tests hand in another one."""

    def micros(self) -> int:
        """Microseconds since the epoch; never less than the value before."""

    def millis(self) -> int: ...

    def new_id(self, prefix: str) -> str:
        """A prefix and 20 random lower-case base32 characters."""

    def new_secret(self, prefix: str) -> str:
        """A secret nobody can guess."""


class SystemClock:
    """The machine's clock, made monotonic."""

    def __init__(self) -> None:
        self._last = 0

    def micros(self) -> int:
        now = time.time_ns() // 1000
        if now > self._last:
            self._last = now
        return self._last

    def millis(self) -> int:
        return self.micros() // 1000

    def new_id(self, prefix: str) -> str:
        return prefix + secrets.token_bytes(20).translate(LETTERS).decode()

    def new_secret(self, prefix: str) -> str:
        return prefix + secrets.token_urlsafe(32)
