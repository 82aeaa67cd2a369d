"""``moot join``: a program joins a thread like any other participant."""

import shlex
from typing import Any

import click

from moot.cli.joining.join_key import GuestParticipant
from moot.cli.joining.jsonl import JsonlProgram
from moot.cli.joining.presets import (
    ANSWER_TRIMMERS,
    PRESETS,
    absolute_command,
    command_words,
    rejoin_command,
)
from moot.cli.joining.process_tree import ProcessFamily
from moot.cli.joining.program_loop import ProgramLoop
from moot.cli.joining.subprocesses import OneShotProgram, ProgramSettings
from moot.cli.shared import output
from moot.cli.shared.client import api_for_writing
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.options import CommandOptions, server_options
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
@server_options
def join(
    options: CommandOptions,
    thread: str,
    command: tuple[str, ...],
    name: str,
    once: str | None,
    jsonl: bool,
    preset: str | None,
    **settings: Any,
) -> ExitCode:
    """Let a program take part in a thread: it answers when it is asked.

    It runs in an empty folder with a cleaned environment. When it fails, everybody in the thread
    sees that, under its name. Ctrl-C leaves.

    \b
    moot join th_9f3a --as rex --exec "codex exec -"
    moot join th_9f3a --as clara --preset claude
    moot join th_9f3a --as bot --jsonl -- python my_bot.py
    """
    from moot.config.settings import program_environment

    words = command_words(command, once, jsonl, preset)
    environment = program_environment(*settings["passed"])
    run = ProgramSettings(
        absolute_command(words, environment), environment, settings["limit"], ProcessFamily()
    )
    api = api_for_writing(options)
    thread_id = find_thread(api, thread)
    profile = {"client": preset or words[0].rpartition("/")[2], "model": "unknown"}
    guest = GuestParticipant(api, thread_id, name, profile, settings["replace"])
    if options.json:
        output.print_json_line({"threadId": thread_id, "as": guest.name, "runs": words})
    else:
        command_text = output.safe_line(shlex.join(words))
        click.echo(
            f"{guest.called} joined {output.short_id(thread_id)} · runs {command_text}"
            f" in an empty folder · answers when asked · {settings['limit']:g} s limit"
            " · Ctrl-C leaves"
        )
    restarts = (3 if jsonl else 0) if settings["restarts"] is None else settings["restarts"]
    program = JsonlProgram(run) if jsonl else OneShotProgram(run, ANSWER_TRIMMERS.get(preset or ""))
    came = ProgramLoop(guest, program, restarts, options.json).stay()
    if came is ExitCode.FAILED:
        back = rejoin_command(thread_id, str(guest.name), words, jsonl, preset)
        output.print_error(f"To let it come back: {back}")
    return came
