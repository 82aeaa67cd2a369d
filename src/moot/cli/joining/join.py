"""``moot join``: a program takes part in a thread, as any other participant does."""

import shlex
from typing import Any

import click

from moot.cli.joining.join_key import Guest
from moot.cli.joining.jsonl import Lines
from moot.cli.joining.presets import PRESETS, TRIMS, again, as_run, words_of
from moot.cli.joining.process_tree import Family
from moot.cli.joining.program_loop import Seat
from moot.cli.joining.subprocesses import How, Once
from moot.cli.shared import output
from moot.cli.shared.client import to_write
from moot.cli.shared.errors import Exit
from moot.cli.shared.options import Options, talks
from moot.cli.threads.thread import find_thread


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
@click.option("--replace", is_flag=True, help="Take the place of one that has the name already.")
@talks
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
    from moot.config.settings import program_environment

    words = words_of(command, once, jsonl, preset)
    environment = program_environment(*how["passed"])
    run = How(as_run(words, environment), environment, how["limit"], Family())
    api = to_write(options)
    thread_id = find_thread(api, thread)
    profile = {"client": preset or words[0].rpartition("/")[2], "model": "unknown"}
    guest = Guest(api, thread_id, name, profile, how["replace"])
    if options.json:
        output.json_line({"threadId": thread_id, "as": guest.name, "runs": words})
    else:
        shown = output.line(shlex.join(words))
        click.echo(
            f"{guest.called} joined {output.short(thread_id)} · runs {shown} in an empty folder"
            f" · answers when asked · {how['limit']:g} s limit · Ctrl-C leaves"
        )
    restarts = (3 if jsonl else 0) if how["restarts"] is None else how["restarts"]
    program = Lines(run) if jsonl else Once(run, TRIMS.get(preset or ""))
    came = Seat(guest, program, restarts, options.json).stay()
    if came is Exit.FAILED:
        back = again(thread_id, str(guest.name), words, jsonl, preset)
        output.complain(f"To let it come back: {back}")
    return came
