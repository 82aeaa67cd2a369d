"""Run a program in a thread: ask it, wait for its answer, and report its failures."""

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple, TypeVar

import click
from msgspec import to_builtins

from moot.cli.joining import briefing
from moot.cli.joining.join_key import GuestParticipant, JoinSeatTaken
from moot.cli.joining.jsonl import JsonlProgram, ProgramAnswer
from moot.cli.joining.participant import POLL, SpokenTurn
from moot.cli.joining.subprocesses import OneShotProgram, ProgramFailed
from moot.cli.shared import output
from moot.cli.shared.client import ServerUnreachable
from moot.cli.shared.errors import CommandError, ExitCode
from moot.wire.agent_bridge import PostedType
from moot.wire.threads import DueRequest

T = TypeVar("T")

#: seconds that a server may be away, seconds between two tries, and the longest pause before a
#: program is started again
PATIENCE, RETRY_SECONDS, LONGEST_PAUSE = 60.0, 0.5, 30.0
#: statuses of a server or proxy that is not ready
AWAY_STATUSES = frozenset({429, 502, 503, 504})
#: refusals that end some time: the loop keeps the answer until then
HELD_CODES = frozenset({"participant_muted", "thread_paused"})
#: characters of an unfinished answer in the report of a failure
MAX_PARTIAL_ANSWER = 2000

#: a closed terminal leaves as Ctrl-C does
END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class ProgramTurn(NamedTuple):
    """The text of a turn, and the question that it answers."""

    seq: int | None
    text: str
    reply_to: str | None = None
    kind: PostedType = "message"
    to: str | None = None
    #: ``failed`` or ``left``, if it reports a failure
    tag: str | None = None
    #: it is the program's last turn
    last: bool = False


class ProgramLoop:
    """Asks a program whenever its participant is asked.

    A question is done only when the server has the answer. Each turn has an id of its own, so that
    it can be sent again after a lost answer.
    """

    def __init__(
        self,
        guest: GuestParticipant,
        program: OneShotProgram | JsonlProgram,
        restarts: int,
        as_json: bool = False,
    ) -> None:
        self._guest, self._program, self._restarts = guest, program, restarts
        self._as_json = as_json
        self._failures = self._idle = 0
        self._after: int | None = None
        #: an answer that could not be sent yet
        self._unsent: ProgramTurn | None = None

    def stay(self) -> ExitCode:
        """Run until the user leaves, the thread closes, or the program has failed too often."""
        handlers = {number: signal.signal(number, _raise_interrupt) for number in END_SIGNALS}
        try:
            return self._run()
        except KeyboardInterrupt:
            output.print_error(f"{self._guest.called} leaves.")
            return ExitCode.OK
        finally:
            self._program.close()
            self._guest.leave()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _run(self) -> ExitCode:
        while True:
            try:
                due = self._patiently(lambda: self._guest.next(self._after, POLL))
            except (ServerUnreachable, JoinSeatTaken):
                raise
            except CommandError:
                if self._patiently(self._guest.thread).open:
                    raise
                output.print_error("The thread is closed.")
                return ExitCode.OK
            if not (self._check_program() if due is None else self._answer_question(due)):
                return ExitCode.FAILED

    def _patiently(self, call: Callable[[], T]) -> T:
        """Wait for a server that is away for a while, and renew an expired key."""
        since = 0.0
        while True:
            try:
                return self._call_with_renewal(call)
            except CommandError as error:
                if not isinstance(error, ServerUnreachable) and error.status not in AWAY_STATUSES:
                    raise
                since = since or time.monotonic()
                if time.monotonic() - since > PATIENCE:
                    raise
            time.sleep(RETRY_SECONDS)

    def _call_with_renewal(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except CommandError as error:
            if error.status != 401:
                raise
            if not self._guest.renew():
                name = self._guest.called
                raise JoinSeatTaken(f"{name} has lost its place: its key was revoked.") from error
        return call()

    def _check_program(self) -> bool:
        """Report a program that ends while it is not asked."""
        try:
            self._program.check()
        except ProgramFailed as failure:
            self._idle += 1
            return self._send(self._failure_turn(failure, None, None))
        return True

    def _answer_question(self, due: DueRequest) -> bool:
        """Return False when the program has failed once too often."""
        seq, unsent = due.seq, self._unsent
        turn = unsent if unsent is not None and unsent.seq == seq else self._ask_program(seq, due)
        continues = self._send(turn)
        self._guest.sign("listening")
        return continues

    def _ask_program(self, seq: int, due: DueRequest) -> ProgramTurn:
        """Return the program's answer, or the report of its failure."""
        self._guest.sign("thinking")
        reply_to = due.event.id if due.event else None
        try:
            text, to = self._program_answer(due)
        except ProgramFailed as failure:
            return self._failure_turn(failure, seq, reply_to)
        self._failures = 0
        text = "" if text == briefing.PASS else text
        return ProgramTurn(seq, text, reply_to, "result" if due.task else "message", to)

    def _program_answer(self, due: DueRequest) -> ProgramAnswer:
        guest, program = self._guest, self._program
        thread, events = self._patiently(guest.thread), self._patiently(guest.events)
        if isinstance(program, OneShotProgram):
            prompt = briefing.build_prompt(thread, str(guest.name), due, events)
            return program.answer(prompt, self._report_progress), None
        context = to_builtins(briefing.newest_turns(events))
        question = {"type": "asked", **to_builtins(due), "title": thread.title, "context": context}
        answer = program.answer(question, self._report_progress)
        if program.dropped:
            output.print_error(
                f"{guest.called} printed {program.dropped} lines that nobody had asked for; one"
                " question has one line as its answer."
            )
            program.dropped = 0
        return answer

    def _send(self, turn: ProgramTurn) -> bool:
        """Send the turn, or keep it until it may be sent. Return False after the last turn."""
        guest, self._unsent = self._guest, None
        own_id = f"{guest.mark}.{f'idle-{self._idle}' if turn.seq is None else turn.seq}"
        try:
            if turn.text:
                self._show(self._patiently(lambda: self._say(turn, own_id)))
        except (ServerUnreachable, JoinSeatTaken):
            raise  # the question stays open for the next program that joins
        except CommandError as error:
            if error.code in HELD_CODES and not turn.last:
                self._unsent = turn
                return True
            output.print_error(f"{turn.text}\n{guest.called} was not heard: {error}")
        self._after = self._after if turn.seq is None else turn.seq
        if not turn.last and turn.tag == "failed":
            time.sleep(min(LONGEST_PAUSE, 0.5 * 2**self._failures))
        return not turn.last

    def _say(self, turn: ProgramTurn, own_id: str) -> SpokenTurn:
        tags = [turn.tag] if turn.tag else []
        return self._guest.say(
            turn.text, own_id=own_id, reply_to=turn.reply_to, kind=turn.kind, to=turn.to, tags=tags
        )

    def _show(self, turn: SpokenTurn) -> None:
        if self._as_json:
            output.print_json_line(turn.as_json())
        else:
            click.echo(f"{self._guest.called}: {output.shorten(turn.event.content)}")

    def _report_progress(self, begun: bool) -> None:
        self._guest.sign("typing" if begun else "thinking")

    def _failure_turn(
        self, failure: ProgramFailed, seq: int | None, reply_to: str | None
    ) -> ProgramTurn:
        """Return a turn that reports the failure to everyone, under the program's name."""
        continues = self._failures < self._restarts
        self._failures += 1
        outcome = "failed, and stays" if continues else "left"
        lines = [f"{self._guest.called} {outcome} ({failure.how})"]
        lines += [failure.last] if failure.last else []
        if partial := failure.begun[:MAX_PARTIAL_ANSWER]:
            lines.append(f"It had begun: {partial}")
        # a mention in an error message must not wake anyone
        text = "\n".join(lines).replace("@", "\uff20")
        tag = "failed" if continues else "left"
        return ProgramTurn(seq, text, reply_to, tag=tag, last=not continues)


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
