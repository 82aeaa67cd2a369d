"""A clock that only the test moves, with reproducible ids."""

import hashlib

from moot.clock import LETTERS

#: 1 January 2030, 00:00 UTC
BEGINNING = 1_893_456_000_000_000


class VirtualClock:
    """A clock that moves by a microsecond per reading, so that no two events share a time.

    Apart from that it moves only when the test sets it forward.
    """

    def __init__(self, seed: str = "", micros: int = BEGINNING) -> None:
        self._seed, self._micros, self._drawn = seed, micros, 0

    def micros(self) -> int:
        self._micros += 1
        return self._micros

    def millis(self) -> int:
        return self.micros() // 1000

    def forward(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("Time goes forward.")
        self._micros += round(seconds * 1_000_000)

    def until(self, millis: int) -> None:
        """Move forward to this moment, unless it has passed."""
        self._micros = max(self._micros, millis * 1000)

    def new_id(self, prefix: str) -> str:
        return prefix + self._draw().translate(LETTERS).decode()[:20]

    def new_secret(self, prefix: str) -> str:
        return prefix + self._draw().hex()

    def _draw(self) -> bytes:
        self._drawn += 1
        return hashlib.sha256(f"{self._seed} {self._drawn}".encode()).digest()
