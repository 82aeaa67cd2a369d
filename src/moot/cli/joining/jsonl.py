"""Programs that keep running in a thread: one JSON object per line in and out."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress

from moot.cli.joining.subprocesses import (
    MAX_ANSWER,
    ProgramFailed,
    ProgramProcess,
    ProgramSettings,
    ProgressCallback,
    bounded_text,
    describe_exit,
)
from moot.cli.shared import output

#: the longest line, in bytes
MAX_LINE_BYTES = 8 * MAX_ANSWER

#: the text of an answer, and its addressee if it has one
ProgramAnswer = tuple[str, str | None]


class JsonlProgram:
    """A running program. Unexpected lines are dropped, so that each answer fits its question."""

    def __init__(self, settings: ProgramSettings) -> None:
        self._settings = settings
        self._process: ProgramProcess | None = None
        self._rest = b""
        #: lines that no question had asked for
        self.dropped = 0

    def answer(self, question: Mapping[str, object], beat: ProgressCallback) -> ProgramAnswer:
        until = time.monotonic() + self._settings.limit
        process = self._ready_process()
        process.write(json.dumps(question).encode() + b"\n", close=False)
        try:
            for piece in process.pieces(until, beat):
                self._rest += piece
                while (line := self._next_line()) is not None:
                    if not line.strip():
                        continue
                    if (answer := parse_answer_line(line, question.get("seq"))) is not None:
                        return answer
                    self.dropped += 1
                if len(self._rest) > MAX_LINE_BYTES:
                    raise ProgramFailed("a line without an end", process.last())
        except ProgramFailed as failure:
            partial = bounded_text(self._rest)
            self.close()
            raise ProgramFailed(failure.how, failure.last, partial) from None
        except BaseException:
            self.close()
            raise
        self._process = None
        raise ProgramFailed(
            describe_exit(process.end(until), False), process.last(), bounded_text(self._rest)
        )

    def check(self) -> None:
        """Raise ProgramFailed if the program has ended."""
        if self._process is not None and self._process.ended:
            process, self._process = self._process, None
            raise ProgramFailed(describe_exit(process.end(), False), process.last())

    def close(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def _ready_process(self) -> ProgramProcess:
        """Return the running program, and drop everything that it printed before."""
        if self._process is None:
            self._process = ProgramProcess(self._settings)
        else:
            unread = self._rest + self._process.unread()
            self.dropped += sum(1 for line in unread.splitlines() if line.strip())
        self._rest = b""
        return self._process

    def _next_line(self) -> bytes | None:
        line, end, rest = self._rest.partition(b"\n")
        if not end:
            return None
        self._rest = rest
        return line


def parse_answer_line(line: bytes, seq: object = None) -> ProgramAnswer | None:
    """Return the answer in ``{"content": "...", "to": "ada"}``; no content means nothing to say.

    Return None for a line that names another ``seq``. Raise ProgramFailed for a malformed line.
    """
    answer, text = None, line.decode(errors="replace")
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
    if not isinstance(answer, dict):
        raise ProgramFailed("a line that is no JSON object", output.shorten(text[:1000], 300))
    if "seq" in answer and answer["seq"] != seq:
        return None
    content, to = answer.get("content"), answer.get("to")
    if content is not None and not isinstance(content, str):
        raise ProgramFailed("content that is no text", output.shorten(text[:1000], 300))
    if to is not None and not isinstance(to, str):
        raise ProgramFailed("an address that is no name", output.shorten(text[:1000], 300))
    return bounded_text((content or "").encode(errors="replace")), to or None
