"""Edit one line at the prompt: keys in, text and cursor out.

This is pure; the screen draws the line.
"""

import codecs
from collections.abc import Callable

#: escape sequences of terminals -> names of keys
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
MAX_LINE = 100_000
MAX_HISTORY = 500

Completer = Callable[[str], list[str]]


class KeyDecoder:
    """Decodes a terminal's bytes into keys: characters, or names of special keys."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        #: an unfinished escape sequence
        self._partial: str | None = None

    def read(self, data: bytes) -> list[str]:
        return [key for mark in self._decode(data) if (key := self._key(mark))]

    def _key(self, mark: str) -> str | None:
        if self._partial is not None:
            return self._sequence(mark)
        if mark == "\x1b":
            self._partial = ""
            return None
        return CONTROLS.get(mark, mark if mark.isprintable() else None)

    def _sequence(self, mark: str) -> str | None:
        """Take one character of an escape sequence; a letter or a tilde ends it."""
        partial = (self._partial or "") + mark
        inside = partial in ("[", "O") or (partial[0] == "[" and mark in "0123456789;?")
        self._partial = partial if inside and len(partial) < 16 else None
        return None if inside else SEQUENCES.get(partial)


class LineEditor:
    """The line that is being typed, and the lines before it."""

    def __init__(self, complete: Completer) -> None:
        self.text, self.at = "", 0
        #: completions of the word when there are several
        self.choices: list[str] = []
        self._complete = complete
        self._history: list[str] = []
        #: index into the history; at its end is the new line
        self._history_index = 0

    def take(self, key: str) -> str | None:
        """Return the line when this key ends it. ``eof`` on an empty line returns ``/quit``."""
        self.choices = []
        action = KEY_ACTIONS.get(key)
        if key == "enter":
            return self._finish_line()
        if key == "eof":
            return "/quit" if not self.text else None
        if action is not None:
            action(self)
        elif len(key) == 1 and len(self.text) < MAX_LINE:
            self._put(self.at, key)
        return None

    def offer(self, text: str) -> None:
        """Show a line that the user checks before sending it."""
        self.text, self.at = text, len(text)

    def _finish_line(self) -> str:
        line, self.text, self.at = self.text, "", 0
        if line.strip() and self._history[-1:] != [line]:
            self._history = [*self._history, line][-MAX_HISTORY:]
        self._history_index = len(self._history)
        return line

    def _put(self, start: int, text: str) -> None:
        """Replace everything from ``start`` to the cursor with ``text``."""
        self.text = self.text[:start] + text + self.text[self.at :]
        self.at = start + len(text)

    def _erase(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.at = start

    def _move(self, to: int) -> None:
        self.at = max(0, min(to, len(self.text)))

    def _erase_word(self) -> None:
        parts = self.text[: self.at].rstrip().rpartition(" ")
        self._erase(len(parts[0]) + len(parts[1]), self.at)

    def _complete_word(self) -> None:
        before = self.text[: self.at]
        choices = self._complete(before)
        start = len(before) - len(before.rpartition(" ")[2])
        if len(choices) == 1:
            self._put(start, f"{choices[0]} ")
        elif choices:
            first, last = min(choices), max(choices)
            pairs = enumerate(zip(first, last, strict=False))
            prefix = first[: next((at for at, (a, b) in pairs if a != b), len(first))]
            if len(prefix) > self.at - start:
                self._put(start, prefix)
            self.choices = choices

    def _recall_line(self, by: int) -> None:
        self._history_index = max(0, min(self._history_index + by, len(self._history)))
        at_end = self._history_index == len(self._history)
        self.offer("" if at_end else self._history[self._history_index])


KEY_ACTIONS: dict[str, Callable[[LineEditor], None]] = {
    "back": lambda line: line._erase(max(0, line.at - 1), line.at),
    "delete": lambda line: line._erase(line.at, line.at + 1),
    "left": lambda line: line._move(line.at - 1),
    "right": lambda line: line._move(line.at + 1),
    "home": lambda line: line._move(0),
    "end": lambda line: line._move(len(line.text)),
    "clear": lambda line: line._erase(0, line.at),
    "cut": lambda line: line._erase(line.at, len(line.text)),
    "word": LineEditor._erase_word,
    "tab": LineEditor._complete_word,
    "up": lambda line: line._recall_line(-1),
    "down": lambda line: line._recall_line(1),
}
