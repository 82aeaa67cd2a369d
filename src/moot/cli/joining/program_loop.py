"""A program in its place in a thread: asked, waited for, and spoken for when it cannot."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import click

from moot.cli.joining import briefing
from moot.cli.joining.join_key import Guest, Taken
from moot.cli.joining.jsonl import Lines
from moot.cli.joining.participant import POLL
from moot.cli.joining.subprocesses import Failed, Once
from moot.cli.shared import output
from moot.cli.shared.client import Unreachable
from moot.cli.shared.errors import Exit, Trouble

T = TypeVar("T")

#: seconds a server may be away, how long until it is tried again, and the longest pause before a
#: program is started again
PATIENCE, AGAIN, LONGEST_PAUSE = 60.0, 0.5, 30.0
#: answers of a server, or of what stands before it, that is not ready
AWAY = frozenset({429, 502, 503, 504})
#: refusals that are over some time: what was to be said is kept until then
HELD = frozenset({"participant_muted", "thread_paused"})
#: characters of an unfinished answer that are shown
BEGUN = 2000

#: a closed terminal leaves as Ctrl-C does
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class Words(NamedTuple):
    """What is to be said, and to which question."""

    seq: int | None
    text: str
    more: dict[str, Any]
    #: it is the last that is said
    last: bool = False


class Seat:
    """A question is done with when its answer was heard, and not before: what is said has a name
    by which the server knows it, so that it can be said again where no answer came."""

    def __init__(
        self, guest: Guest, program: Once | Lines, restarts: int, as_json: bool = False
    ) -> None:
        self._guest, self._program, self._restarts = guest, program, restarts
        self._as_json = as_json
        self._failures = self._idle = 0
        self._after: int | None = None
        #: an answer that could not be said yet
        self._kept: Words | None = None

    def stay(self) -> Exit:
        """Until it is left, the thread is closed, or the program has failed too often."""
        before = {number: signal.signal(number, _interrupt) for number in ENDINGS}
        try:
            return self._attend()
        except KeyboardInterrupt:
            output.complain(f"{self._guest.called} leaves.")
            return Exit.OK
        finally:
            self._program.close()
            self._guest.leave()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _attend(self) -> Exit:
        while True:
            try:
                due = self._patiently(lambda: self._guest.next(self._after, POLL))
            except (Unreachable, Taken):
                raise
            except Trouble:
                if self._patiently(self._guest.thread)["open"]:
                    raise
                output.complain("The thread is closed.")
                return Exit.OK
            if not (self._alive() if due is None else self._answer(due)):
                return Exit.FAILED

    def _patiently(self, call: Callable[[], T]) -> T:
        """A server that is away for a while is waited for, and a key that is over is renewed."""
        since = 0.0
        while True:
            try:
                return self._with_a_key(call)
            except Trouble as trouble:
                if not isinstance(trouble, Unreachable) and trouble.status not in AWAY:
                    raise
                since = since or time.monotonic()
                if time.monotonic() - since > PATIENCE:
                    raise
            time.sleep(AGAIN)

    def _with_a_key(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Trouble as trouble:
            if trouble.status != 401:
                raise
            if not self._guest.renew():
                who = self._guest.called
                raise Taken(f"{who} has lost its place: its key was revoked.") from trouble
        return call()

    def _alive(self) -> bool:
        """Who dies while nobody asks is missed all the same."""
        try:
            self._program.check()
        except Failed as failure:
            self._idle += 1
            return self._say(self._failed(failure, None, {}))
        return True

    def _answer(self, due: dict[str, Any]) -> bool:
        """False when it has failed once too often."""
        seq, kept = int(due["seq"]), self._kept
        said = kept if kept is not None and kept.seq == seq else self._made(seq, due)
        goes_on = self._say(said)
        self._guest.sign("listening")
        return goes_on

    def _made(self, seq: int, due: dict[str, Any]) -> Words:
        """The program is asked."""
        self._guest.sign("thinking")
        about = {"reply_to": due["event"]["id"]} if due["event"] else {}
        try:
            said, more = self._said(due)
        except Failed as failure:
            return self._failed(failure, seq, about)
        self._failures = 0
        kind = "result" if due["task"] else "message"
        return Words(seq, "" if said == briefing.PASS else said, {"kind": kind, **about, **more})

    def _said(self, due: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        guest, program = self._guest, self._program
        thread, events = self._patiently(guest.thread), self._patiently(guest.events)
        if isinstance(program, Once):
            asked = briefing.prompt(thread, str(guest.name), due, events)
            return program.answer(asked, self._beat), {}
        told = {"type": "asked", **due, "title": thread.get("title"),
                "context": briefing.spoken(events)}  # fmt: skip
        said = program.answer(told, self._beat)
        if program.dropped:
            output.complain(
                f"{guest.called} printed {program.dropped} lines that nobody had asked for; one"
                " question has one line as its answer."
            )
            program.dropped = 0
        return said

    def _say(self, words: Words) -> bool:
        """Heard, or kept until it may be. False when it was the last."""
        guest, self._kept = self._guest, None
        own_id = f"{guest.mark}.{f'idle-{self._idle}' if words.seq is None else words.seq}"
        try:
            if words.text:
                self._show(
                    self._patiently(lambda: guest.say(words.text, own_id=own_id, **words.more))
                )
        except (Unreachable, Taken):
            raise  # the question stays open, for whoever joins next
        except Trouble as trouble:
            if trouble.code in HELD and not words.last:
                self._kept = words
                return True
            output.complain(f"{words.text}\n{guest.called} was not heard: {trouble}")
        self._after = self._after if words.seq is None else words.seq
        if not words.last and "failed" in words.more.get("tags", ()):
            time.sleep(min(LONGEST_PAUSE, 0.5 * 2**self._failures))
        return not words.last

    def _show(self, event: dict[str, Any]) -> None:
        if self._as_json:
            output.json_line(event)
        else:
            click.echo(f"{self._guest.called}: {output.brief(event['content'])}")

    def _beat(self, begun: bool) -> None:
        self._guest.sign("typing" if begun else "thinking")

    def _failed(self, failure: Failed, seq: int | None, about: dict[str, Any]) -> Words:
        """Everybody is told, under its own name."""
        goes_on = self._failures < self._restarts
        self._failures += 1
        how = "failed, and stays" if goes_on else "left"
        told = [f"{self._guest.called} {how} ({failure.how})"]
        told += [failure.last] if failure.last else []
        if begun := failure.begun[:BEGUN]:
            told.append(f"It had begun: {begun}")
        # nobody is woken by what a program complained of
        text = "\n".join(told).replace("@", "\uff20")
        tags = ["failed" if goes_on else "left"]
        return Words(seq, text, {**about, "tags": tags}, last=not goes_on)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
