"""Programs that stay in a thread: one JSON object per line in, one per line out."""

import json
import time
from contextlib import suppress
from typing import Any

from moot.cli.joining.subprocesses import LONGEST, Beat, Failed, How, Process, bounded, ending
from moot.cli.shared import output

#: bytes of one line
LONGEST_LINE = 8 * LONGEST

#: what it says, and how
Said = tuple[str, dict[str, Any]]


class Lines:
    """A question, an answer: what it prints besides is dropped, so that no answer can be taken for
    that to another question."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._process: Process | None = None
        self._rest = b""
        #: lines that nobody had asked for
        self.dropped = 0

    def answer(self, asked: dict[str, Any], beat: Beat) -> Said:
        until = time.monotonic() + self._how.limit
        process = self._ready()
        process.write(json.dumps(asked).encode() + b"\n", close=False)
        try:
            for piece in process.pieces(until, beat):
                self._rest += piece
                while (line := self._line()) is not None:
                    if not line.strip():
                        continue
                    if (said := read_line(line, asked.get("seq"))) is not None:
                        return said
                    self.dropped += 1
                if len(self._rest) > LONGEST_LINE:
                    raise Failed("a line without an end", process.last())
        except Failed as failure:
            begun = bounded(self._rest)
            self.close()
            raise Failed(failure.how, failure.last, begun) from None
        except BaseException:
            self.close()
            raise
        self._process = None
        raise Failed(ending(process.end(until), False), process.last(), bounded(self._rest))

    def check(self) -> None:
        """Raises Failed when it has ended."""
        if self._process is not None and self._process.ended:
            process, self._process = self._process, None
            raise Failed(ending(process.end(), False), process.last())

    def close(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def _ready(self) -> Process:
        """Running, and with nothing left of what it said before."""
        if self._process is None:
            self._process = Process(self._how)
        else:
            left = self._rest + self._process.unread()
            self.dropped += sum(1 for line in left.splitlines() if line.strip())
        self._rest = b""
        return self._process

    def _line(self) -> bytes | None:
        line, end, rest = self._rest.partition(b"\n")
        if not end:
            return None
        self._rest = rest
        return line


def read_line(line: bytes, seq: Any = None) -> Said | None:
    """``{"content": "...", "to": "ada"}``; without content it has nothing to say. None for a line
    that names another ``seq`` than the one that was asked."""
    said, text = None, line.decode(errors="replace")
    with suppress(ValueError, RecursionError):
        said = json.loads(text)
    if not isinstance(said, dict):
        raise Failed("a line that is no JSON object", output.brief(text[:1000], 300))
    if "seq" in said and said["seq"] != seq:
        return None
    content, to = said.get("content"), said.get("to")
    if content is not None and not isinstance(content, str):
        raise Failed("content that is no text", output.brief(text[:1000], 300))
    if to is not None and not isinstance(to, str):
        raise Failed("an address that is no name", output.brief(text[:1000], 300))
    return bounded((content or "").encode(errors="replace")), {"to": to} if to else {}
