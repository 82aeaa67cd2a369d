"""A line that is being typed: keys in, text and cursor out. Pure: others draw it."""

import codecs
from collections.abc import Callable

#: escape sequences of terminals -> what they mean here
SEQUENCES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[3~": "delete",
}  # fmt: skip
CONTROLS = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "back", "\x08": "back", "\x01": "home",
    "\x05": "end", "\x02": "left", "\x06": "right", "\x10": "up", "\x0e": "down", "\x04": "eof",
    "\x15": "clear", "\x0b": "cut", "\x17": "word",
}  # fmt: skip
LONGEST = 100_000
MOST_REMEMBERED = 500

Complete = Callable[[str], list[str]]


class Keys:
    """Bytes of a terminal as keys: a character each, or the name of one."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        #: an escape sequence that has begun
        self._begun: str | None = None

    def read(self, data: bytes) -> list[str]:
        return [key for mark in self._decode(data) if (key := self._key(mark))]

    def _key(self, mark: str) -> str | None:
        if self._begun is not None:
            return self._sequence(mark)
        if mark == "\x1b":
            self._begun = ""
            return None
        return CONTROLS.get(mark, mark if mark.isprintable() else None)

    def _sequence(self, mark: str) -> str | None:
        """They end with a letter or a tilde, and are never long."""
        begun = (self._begun or "") + mark
        inside = begun in ("[", "O") or (begun[0] == "[" and mark in "0123456789;?")
        self._begun = begun if inside and len(begun) < 16 else None
        return None if inside else SEQUENCES.get(begun)


class Editor:
    """One line, and those before it."""

    def __init__(self, complete: Complete) -> None:
        self.text, self.at = "", 0
        #: what Tab could make of the word, when it is not one thing
        self.choices: list[str] = []
        self._complete = complete
        self._before: list[str] = []
        #: where in the lines before it; at their end is the new one
        self._back = 0

    def take(self, key: str) -> str | None:
        """The line, when this key ends it; ``eof`` on an empty one is a line, too."""
        self.choices = []
        act = ACTS.get(key)
        if key == "enter":
            return self._done()
        if key == "eof":
            return "/quit" if not self.text else None
        if act is not None:
            act(self)
        elif len(key) == 1 and len(self.text) < LONGEST:
            self._put(self.at, key)
        return None

    def offer(self, text: str) -> None:
        """A line to be looked over before it is sent."""
        self.text, self.at = text, len(text)

    def _done(self) -> str:
        line, self.text, self.at = self.text, "", 0
        if line.strip() and self._before[-1:] != [line]:
            self._before = [*self._before, line][-MOST_REMEMBERED:]
        self._back = len(self._before)
        return line

    def _put(self, start: int, text: str) -> None:
        """``text`` takes the place of everything from there to the cursor."""
        self.text = self.text[:start] + text + self.text[self.at :]
        self.at = start + len(text)

    def _erase(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.at = start

    def _back_one(self) -> None:
        if self.at:
            self._erase(self.at - 1, self.at)

    def _delete(self) -> None:
        self._erase(self.at, self.at + 1)

    def _move(self, to: int) -> None:
        self.at = max(0, min(to, len(self.text)))

    def _word(self) -> None:
        kept = self.text[: self.at].rstrip().rpartition(" ")
        self._erase(len(kept[0]) + len(kept[1]), self.at)

    def _tab(self) -> None:
        before = self.text[: self.at]
        found = self._complete(before)
        start = len(before) - len(before.rpartition(" ")[2])
        if len(found) == 1:
            self._put(start, f"{found[0]} ")
        elif found:
            shared = _shared(found)
            if len(shared) > self.at - start:
                self._put(start, shared)
            self.choices = found

    def _remember(self, by: int) -> None:
        self._back = max(0, min(self._back + by, len(self._before)))
        at_end = self._back == len(self._before)
        self.offer("" if at_end else self._before[self._back])


def _shared(words: list[str]) -> str:
    """How all of them begin."""
    first, last = min(words), max(words)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]


ACTS: dict[str, Callable[[Editor], None]] = {
    "back": Editor._back_one,
    "delete": Editor._delete,
    "left": lambda line: line._move(line.at - 1),
    "right": lambda line: line._move(line.at + 1),
    "home": lambda line: line._move(0),
    "end": lambda line: line._move(len(line.text)),
    "clear": lambda line: line._erase(0, line.at),
    "cut": lambda line: line._erase(line.at, len(line.text)),
    "word": Editor._word,
    "tab": Editor._tab,
    "up": lambda line: line._remember(-1),
    "down": lambda line: line._remember(1),
}
