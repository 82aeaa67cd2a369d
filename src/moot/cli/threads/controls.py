"""``moot thread`` controls: invite, mute, pause, prod, undo and the like."""

import contextlib
from collections.abc import Callable
from typing import Any

import click
from msgspec import to_builtins

from moot.cli.councils.prompt_actions import undo_last_control
from moot.cli.shared import output, quantities
from moot.cli.shared.client import api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, parse_span_option, server_options
from moot.cli.threads.new import warn_if_unknown
from moot.cli.threads.thread import find_thread
from moot.client.http.operation import PreparedCall
from moot.client.operations import threads
from moot.core.text.quantities import format_duration
from moot.wire.threads import ThreadView


def _check_names(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        if not name or name.split() != [name]:
            raise click.BadParameter(f"'{name}' is no name; names have no blanks.")
    return names


NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_check_names)
THREAD = click.argument("thread", metavar="THREAD")


def run_thread_action(
    options: CommandOptions,
    thread: str,
    result: str,
    call: Callable[[str], PreparedCall[ThreadView]],
) -> ExitCode:
    """Carry out an action and print the result.

    A warning of the server means that the action failed for the names in it, not for the others.
    """
    api = api_for_writing(options)
    thread_id = find_thread(api, thread)
    answer = api.send(call(thread_id))
    if options.json:
        output.print_json(answer)
    elif not answer.warnings:
        click.echo(output.safe_line(f"{thread_id}: {result}"))
    for warning in answer.warnings:
        output.print_error(warning)
    return ExitCode.FAILED if answer.warnings else ExitCode.OK


def post_control(options: CommandOptions, thread: str, result: str, **content: Any) -> ExitCode:
    return run_thread_action(
        options, thread, result, lambda thread_id: threads.control_thread(thread_id, content)
    )


@click.command()
@THREAD
@NAMES
@click.option("--role", metavar="TEXT", help="What they are there for.")
@server_options
def invite(options: CommandOptions, thread: str, names: tuple[str, ...], role: str | None) -> None:
    """Let agents or programs take part from the next turn on."""
    for name in names:
        profile = {"profile": {"role": role}} if role else {}
        post_control(options, thread, f"invited {name}", invite={"participant_id": name, **profile})
        warn_if_unknown(api_for_writing(options), name)


@click.command()
@THREAD
@NAMES
@server_options
def uninvite(options: CommandOptions, thread: str, names: tuple[str, ...]) -> ExitCode:
    """Let them take part no longer; what they said stays."""
    return max(
        post_control(options, thread, f"sent {name} away", uninvite={"participant_id": name})
        for name in names
    )


@click.command()
@THREAD
@NAMES
@click.option(
    "--for", "seconds", callback=parse_span_option, metavar="SPAN", help="90s, 10m, 2h [for good]."
)
@server_options
def mute(
    options: CommandOptions, thread: str, names: tuple[str, ...], seconds: int | None
) -> ExitCode:
    """Refuse what they say, for a while or until unmuted: mute THREAD ada 10m."""
    if seconds is None and len(names) > 1:  # as at the prompt of the thread
        with contextlib.suppress(ValueError):
            seconds, names = quantities.parse_seconds(names[-1]), names[:-1]
    content: Any = {"targets": list(names)} | ({"seconds": seconds} if seconds else {})
    how_long = f" for {format_duration(seconds)}" if seconds else ""
    return post_control(options, thread, f"muted {', '.join(names)}{how_long}", mute=content)


@click.command()
@THREAD
@NAMES
@server_options
def unmute(options: CommandOptions, thread: str, names: tuple[str, ...]) -> ExitCode:
    """Let them speak again."""
    return post_control(options, thread, f"unmuted {', '.join(names)}", unmute=list(names))


@click.command()
@THREAD
@server_options
def pause(options: CommandOptions, thread: str) -> ExitCode:
    """Only people speak."""
    return post_control(options, thread, "paused", pause={"on": True})


@click.command()
@THREAD
@server_options
def resume(options: CommandOptions, thread: str) -> ExitCode:
    """Agents speak again."""
    return post_control(options, thread, "resumed", pause={"on": False})


@click.command()
@THREAD
@NAMES
@server_options
def prod(options: CommandOptions, thread: str, names: tuple[str, ...]) -> ExitCode:
    """Ask them to speak once."""
    return post_control(
        options, thread, f"asked to speak once: {', '.join(names)}", prod=list(names)
    )


@click.command()
@THREAD
@server_options
def undo(options: CommandOptions, thread: str) -> None:
    """Take back what you have steered last, if it still holds."""
    api = api_for_writing(options)
    thread_id = find_thread(api, thread)
    sentence = undo_last_control(api, thread_id)
    if options.json:
        output.print_json(api.send(threads.get_thread(thread_id)))
    else:
        click.echo(output.safe_line(f"{thread_id}: taken back: {sentence}"))


def _parse_span_or_off(ctx: click.Context, param: click.Parameter, text: str) -> int | None:
    return None if text == "off" else parse_span_option(ctx, param, text)


@click.command()
@THREAD
@click.argument("seconds", metavar="SPAN|off", callback=_parse_span_or_off)
@server_options
def ttl(options: CommandOptions, thread: str, seconds: int | None) -> ExitCode:
    """Let agents go on by themselves for so long: 90s, 10m, 2h; or off, for as long as they like.

    After that only who is addressed alone, or prodded, is woken.
    """
    result = "agents go on as long as they like"
    if seconds is not None:
        result = f"agents go on by themselves for {format_duration(seconds)}"
    return post_control(options, thread, result, ttl_seconds=seconds)


SWITCH = click.argument("switch", metavar="on|off", type=click.Choice(("on", "off")))


@click.command()
@THREAD
@SWITCH
@server_options
def discussion(options: CommandOptions, thread: str, switch: str) -> ExitCode:
    """Let agents wake one another with @NAME, or no longer."""
    result = "agents wake one another" if switch == "on" else "agents wake nobody"
    return post_control(options, thread, result, discussion={"on": switch == "on"})


@click.command()
@THREAD
@SWITCH
@server_options
def auto(options: CommandOptions, thread: str, switch: str) -> ExitCode:
    """Have everybody answer what a person says to all, however many there are."""
    result = "all answer what is said to all" if switch == "on" else "who is named answers"
    return post_control(options, thread, result, invited_auto={"on": switch == "on"})


@click.command()
@THREAD
@server_options
def done(options: CommandOptions, thread: str) -> ExitCode:
    """Say that you have nothing more to say. A thread in which all are done is closed."""
    return post_control(options, thread, "you are done", done=True)


@click.command()
@THREAD
@click.argument("mode", metavar="auto|small|large", type=click.Choice(("auto", "small", "large")))
@server_options
def mode(options: CommandOptions, thread: str, mode: str) -> ExitCode:
    """Say who answers a person: small all, large who is named, auto by how many there are."""
    api = api_for_writing(options)
    floor = api.send(threads.get_thread(find_thread(api, thread))).floor
    if floor is None or floor.mode not in ("auto", "small", "large"):
        raise CommandError("It is led as a council is; a thread has such modes.")
    policy = {"mode": mode, "renews": True, "limits": to_builtins(floor.limits)}
    return post_control(
        options, thread, f"answers as a thread that is {mode}", participation=policy
    )
