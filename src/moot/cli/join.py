"""``moot join``: a program takes part in a thread, as any other participant does."""

import json
import shlex
import signal
import time
from types import FrameType
from typing import Any

import click

from moot.cli import briefing, output
from moot.cli.client import Unreachable, to_write
from moot.cli.options import Options, talks
from moot.cli.participant import POLL, Guest
from moot.cli.programs import Failed, Lines, Once, bounded
from moot.cli.thread import find_thread
from moot.cli.trouble import Exit, Trouble

#: how each program takes a prompt on stdin and answers on stdout, with no more rights than it has
#: by itself: whoever wants to give it more writes the command himself
PRESETS = {
    "codex": "codex exec --sandbox read-only --skip-git-repo-check -",
    "claude": "claude -p",
    "gemini": "gemini",
    "aider": "aider --chat-mode ask --no-git --no-pretty --no-stream --message-file /dev/stdin",
}
#: seconds a server may be away, and the longest pause before a program is started again
PATIENCE, LONGEST_PAUSE = 60.0, 30.0

#: a closed terminal leaves as Ctrl-C does
ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.argument("thread")
@click.argument("command", nargs=-1, metavar="[-- CMD...]")
@click.option("--as", "name", required=True, metavar="NAME", help="Under which name.")
@click.option(
    "--exec",
    "once",
    metavar="CMD",
    help="Run CMD for every answer: the prompt on stdin, the answer on stdout.",
)
@click.option("--jsonl", is_flag=True, help="Keep CMD running: one JSON object per line.")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="A program that is known.")
@click.option(
    "--limit",
    type=click.FloatRange(0.1, 3600),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an answer may take.",
)
@click.option(
    "--restarts",
    type=click.IntRange(0, 100),
    metavar="N",
    help="How often in a row it may fail and stay [0, with --jsonl 3].",
)
@click.option(
    "--env",
    "passed",
    multiple=True,
    metavar="NAME",
    help="A variable of your environment that it needs, such as its key.",
)
@talks  # fmt: skip
def join(
    options: Options,
    thread: str,
    command: tuple[str, ...],
    name: str,
    once: str | None,
    jsonl: bool,
    preset: str | None,
    **how: Any,
) -> Exit:
    """Let a program take part in a thread: it answers when it is asked.

    It runs in an empty folder with a cleaned environment. When it fails, everybody in the thread
    sees that, under its name. Ctrl-C leaves.

    \b
    moot join th_9f3a --as rex --exec "codex exec -"
    moot join th_9f3a --as clara --preset claude
    moot join th_9f3a --as bot --jsonl -- python my_bot.py
    """
    from moot.config import program_environment

    words = _words(command, once, jsonl, preset)
    kind, restarts = (Lines, 3) if jsonl else (Once, 0)
    program = kind(words, program_environment(*how["passed"]), how["limit"])
    api = to_write(options)
    thread_id = find_thread(api, thread)
    profile = {"client": preset or words[0].rpartition("/")[2], "model": "unknown"}
    guest = Guest(api, thread_id, name, profile)
    if options.json:
        output.json_line({"threadId": thread_id, "as": guest.name, "runs": words})
    else:
        shown = output.line(shlex.join(words))
        click.echo(
            f"{guest.called} joined {output.short(thread_id)} · runs {shown} in an empty folder"
            f" · answers when asked · {how['limit']:g} s limit · Ctrl-C leaves"
        )
    given = how["restarts"]
    return Seat(guest, program, restarts if given is None else given, options.json).stay()


def _words(
    command: tuple[str, ...], once: str | None, jsonl: bool, preset: str | None
) -> list[str]:
    """What is run: one of the three ways to say it."""
    ways = [once is not None, jsonl, preset is not None]
    if sum(ways) != 1 or bool(command) != jsonl:
        raise click.UsageError("Say what to run: --exec CMD, --preset NAME, or --jsonl -- CMD.")
    try:
        words = list(command) if jsonl else shlex.split(PRESETS[preset] if preset else once or "")
    except ValueError as error:
        raise click.UsageError(f"--exec: {error}.") from None
    if not words:
        raise click.UsageError("Say what to run: --exec CMD.")
    return words


class Seat:
    """A program in its place: asked, waited for, and spoken for when it cannot."""

    def __init__(
        self, guest: Guest, program: Once | Lines, restarts: int, as_json: bool = False
    ) -> None:
        self._guest, self._program, self._restarts = guest, program, restarts
        self._as_json = as_json
        self._failures = 0
        self._after: int | None = None

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
        lost = 0.0
        while True:
            try:
                due = self._guest.next(self._after, POLL)
                lost = 0.0
            except Unreachable:
                lost = lost or time.monotonic()
                if time.monotonic() - lost > PATIENCE:
                    raise
                time.sleep(0.5)
                continue
            except Trouble:
                if self._guest.thread()["open"]:
                    raise
                output.complain("The thread is closed.")
                return Exit.OK
            if due is None:
                if not self._alive():
                    return Exit.FAILED
                continue
            self._after = int(due["seq"])
            if not self._answer(due):
                return Exit.FAILED

    def _alive(self) -> bool:
        """Who dies while nobody asks is missed all the same."""
        try:
            self._program.check()
        except Failed as failure:
            return self._failed(failure, None)
        return True

    def _answer(self, due: dict[str, Any]) -> bool:
        """False when it has failed once too often."""
        guest = self._guest
        guest.sign("thinking")
        about = due["event"]["id"] if due["event"] else None
        try:
            said, more = self._said(due)
        except Failed as failure:
            return self._failed(failure, about)
        self._failures = 0
        kind = "result" if due["task"] else "message"
        try:
            if said and said != briefing.PASS:
                self._show(guest.say(said, kind=kind, reply_to=about, **more))
        except Trouble as trouble:
            output.complain(f"{guest.called} was not heard: {trouble}")
        guest.sign("listening")
        return True

    def _said(self, due: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        guest = self._guest
        thread, events = guest.thread(), guest.events()
        if isinstance(self._program, Once):
            asked = briefing.prompt(thread, str(guest.name), due, events)
            return self._program.answer(asked, self._beat), {}
        told = {"type": "asked", **due, "title": thread.get("title"),
                "context": briefing.spoken(events)}  # fmt: skip
        return _read_line(self._program.answer(json.dumps(told), self._beat))

    def _show(self, event: dict[str, Any]) -> None:
        if self._as_json:
            output.json_line(event)
        else:
            click.echo(f"{self._guest.called}: {output.brief(event['content'])}")

    def _beat(self, begun: bool) -> None:
        self._guest.sign("typing" if begun else "thinking")

    def _failed(self, failure: Failed, about: str | None) -> bool:
        """Everybody is told, under its own name."""
        guest, goes_on = self._guest, self._failures < self._restarts
        self._failures += 1
        how = "failed, and stays" if goes_on else "left"
        last = f"\n{failure.last}" if failure.last else ""
        # nobody is woken by what a program complained of
        text = f"{guest.called} {how} ({failure.how}){last}".replace("@", "\uff20")
        try:
            tags = ["failed" if goes_on else "left"]
            self._show(guest.say(text, reply_to=about, tags=tags))
        except Trouble as trouble:
            output.complain(f"{text}\n{guest.called} was not heard: {trouble}")
        guest.sign("listening")
        if goes_on:
            time.sleep(min(LONGEST_PAUSE, 0.5 * 2**self._failures))
        return goes_on


def _read_line(line: str) -> tuple[str, dict[str, Any]]:
    """``{"content": "...", "to": "ada"}``; without content it has nothing to say."""
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise Failed("a line that is no JSON object", output.brief(line, 300))
    content = said.get("content")
    if content is not None and not isinstance(content, str):
        raise Failed("content that is no text", output.brief(line, 300))
    to = said.get("to")
    return bounded((content or "").encode(errors="replace")), {"to": to} if to else {}


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
