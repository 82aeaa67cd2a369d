"""Choices that look like chance and are not: they follow from what they are named after."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """The same names draw the same lots, on every machine and in every version of Python."""

    def __init__(self, *names: object) -> None:
        self._name = "\x1f".join(map(str, names))
        self._count = 0

    def number(self, below: int) -> int:
        """From 0 up to ``below``."""
        self._count += 1
        lot = sha256(f"{self._name}\x1e{self._count}".encode()).digest()
        return int.from_bytes(lot[:8], "big") % below

    def chance(self, of: int) -> bool:
        """True about once in ``of`` times."""
        return self.number(of) == 0

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        rest = list(options)
        return [rest.pop(self.number(len(rest))) for _ in range(len(rest))]

    def mark(self) -> str:
        """Eight letters to make an id from."""
        return sha256(self._name.encode()).hexdigest()[:8]
