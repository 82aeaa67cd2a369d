"""Make deterministic choices that look random."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


class SeededChoice:
    """A sequence of choices that depends only on its names, on every machine."""

    def __init__(self, *names: object) -> None:
        self._name = "\x1f".join(map(str, names))
        self._count = 0

    def number(self, below: int) -> int:
        """Return a number from 0 up to ``below``."""
        self._count += 1
        digest = sha256(f"{self._name}\x1e{self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % below

    def chance(self, of: int) -> bool:
        """Return True about once in ``of`` times."""
        return self.number(of) == 0

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        remaining = list(options)
        return [remaining.pop(self.number(len(remaining))) for _ in range(len(remaining))]

    def mark(self) -> str:
        """Return eight characters for an id."""
        return sha256(self._name.encode()).hexdigest()[:8]
