"""``moot thread`` commands that change one thread: controls, actions and forks."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click
from msgspec import to_builtins

from moot.cli.councils.prompt_actions import undo_last_control
from moot.cli.joining.briefing import read_newest_turns
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, parse_span_option, server_options
from moot.cli.threads.thread import find_thread, warn_if_unknown
from moot.client.http.operation import PreparedCall
from moot.client.operations import runs, threads
from moot.core.text.quantities import format_duration
from moot.wire.threads import ThreadView


def _check_names(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        if not name or name.split() != [name]:
            raise click.BadParameter(f"'{name}' is no name; names have no blanks.")
    return names


def _parse_span_or_off(ctx: click.Context, param: click.Parameter, text: str) -> int | None:
    return None if text == "off" else parse_span_option(ctx, param, text)


THREAD = click.argument("thread", metavar="THREAD")
NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_check_names)
SWITCH = click.argument("switch", metavar="on|off", type=click.Choice(("on", "off")))
SPAN = click.argument("seconds", metavar="SPAN|off", callback=_parse_span_or_off)
MODE = click.argument("mode", metavar="auto|small|large", type=click.Choice(
    ("auto", "small", "large")))  # fmt: skip
SPAN_OPTION = click.option("--for", "seconds", callback=parse_span_option, metavar="SPAN",
                           help="90s, 10m, 2h [for good].")  # fmt: skip
NOTE = click.option("--note", metavar="TEXT", help="Why.")


def _change_thread(
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
    output.print_answer(options, answer, *([] if answer.warnings else [f"{thread_id}: {result}"]))
    for warning in answer.warnings:
        output.print_error(warning)
    return ExitCode.FAILED if answer.warnings else ExitCode.OK


def _post_control(options: CommandOptions, thread: str, result: str, **content: Any) -> ExitCode:
    def call(thread_id: str) -> PreparedCall[ThreadView]:
        return threads.control_thread(thread_id, content)

    return _change_thread(options, thread, result, call)


def _mute(names: tuple[str, ...], seconds: int | None) -> tuple[str, Mapping[str, object]]:
    if seconds is None and len(names) > 1:  # as at the prompt of the thread
        with contextlib.suppress(ValueError):
            seconds, names = quantities.parse_seconds(names[-1]), names[:-1]
    content = {"targets": list(names)} | ({"seconds": seconds} if seconds else {})
    how_long = f" for {format_duration(seconds)}" if seconds else ""
    return f"muted {', '.join(names)}{how_long}", {"mute": content}


def _ttl(seconds: int | None) -> tuple[str, Mapping[str, object]]:
    result = "agents go on as long as they like"
    if seconds is not None:
        result = f"agents go on by themselves for {format_duration(seconds)}"
    return result, {"ttl_seconds": seconds}


def _switch(control: str, on: str, off: str) -> Callable[[str], tuple[str, Mapping[str, object]]]:
    return lambda switch: (on if switch == "on" else off, {control: {"on": switch == "on"}})


class ControlCommand(NamedTuple):
    """A command that sends one control."""

    help: str
    #: its parameters after the thread
    parameters: tuple[Callable[[Any], Any], ...]
    #: the result and the control, from the parameters
    control: Callable[..., tuple[str, Mapping[str, object]]]


CONTROLS = {
    "mute": ControlCommand(
        "Refuse what they say, for a while or until unmuted: mute THREAD ada 10m.",
        (NAMES, SPAN_OPTION), _mute,
    ),
    "unmute": ControlCommand(
        "Let them speak again.", (NAMES,),
        lambda names: (f"unmuted {', '.join(names)}", {"unmute": list(names)}),
    ),
    "prod": ControlCommand(
        "Ask them to speak once.", (NAMES,),
        lambda names: (f"asked to speak once: {', '.join(names)}", {"prod": list(names)}),
    ),
    "pause": ControlCommand(
        "Only people speak.", (), lambda: ("paused", {"pause": {"on": True}})
    ),
    "resume": ControlCommand(
        "Agents speak again.", (), lambda: ("resumed", {"pause": {"on": False}})
    ),
    "done": ControlCommand(
        "Say that you have nothing more to say. A thread in which all are done is closed.",
        (), lambda: ("you are done", {"done": True}),
    ),
    "ttl": ControlCommand(
        "Let agents go on by themselves for so long: 90s, 10m, 2h; or off, for as long as they"
        " like.\n\nAfter that only who is addressed alone, or prodded, is woken.",
        (SPAN,), _ttl,
    ),
    "discussion": ControlCommand(
        "Let agents wake one another with @NAME, or no longer.", (SWITCH,),
        _switch("discussion", "agents wake one another", "agents wake nobody"),
    ),
    "auto": ControlCommand(
        "Have everybody answer what a person says to all, however many there are.", (SWITCH,),
        _switch("invited_auto", "all answer what is said to all", "who is named answers"),
    ),
}  # fmt: skip


def _control_command(name: str) -> click.Command:
    row = CONTROLS[name]

    def run(options: CommandOptions, thread: str, **values: Any) -> ExitCode:
        result, content = row.control(**values)
        return _post_control(options, thread, result, **content)

    command = server_options(run)
    for parameter in reversed((THREAD, *row.parameters)):
        command = parameter(command)
    return click.command(name, help=row.help)(command)


@click.command()
@THREAD
@NAMES
@click.option("--role", metavar="TEXT", help="What they are there for.")
@server_options
def invite(options: CommandOptions, thread: str, names: tuple[str, ...], role: str | None) -> None:
    """Let agents or programs take part from the next turn on."""
    profile = {"profile": {"role": role}} if role else {}
    for name in names:
        invited = {"participant_id": name, **profile}
        _post_control(options, thread, f"invited {name}", invite=invited)
        warn_if_unknown(api_for_writing(options), name)


@click.command()
@THREAD
@NAMES
@server_options
def uninvite(options: CommandOptions, thread: str, names: tuple[str, ...]) -> ExitCode:
    """Let them take part no longer; what they said stays."""
    return max(
        _post_control(options, thread, f"sent {name} away", uninvite={"participant_id": name})
        for name in names
    )


@click.command()
@THREAD
@server_options
def undo(options: CommandOptions, thread: str) -> None:
    """Take back what you have steered last, if it still holds."""
    api = api_for_writing(options)
    thread_id = find_thread(api, thread)
    sentence = undo_last_control(api, thread_id)
    answer = api.send(threads.get_thread(thread_id)) if options.json else None
    output.print_answer(options, answer, f"{thread_id}: taken back: {sentence}")


@click.command()
@THREAD
@MODE
@server_options
def mode(options: CommandOptions, thread: str, mode: str) -> ExitCode:
    """Say who answers a person: small all, large who is named, auto by how many there are."""
    api = api_for_writing(options)
    floor = api.send(threads.get_thread(find_thread(api, thread))).floor
    if floor is None or floor.mode not in ("auto", "small", "large"):
        raise CommandError("It is led as a council is; a thread has such modes.")
    policy = {"mode": mode, "renews": True, "limits": to_builtins(floor.limits)}
    result = f"answers as a thread that is {mode}"
    return _post_control(options, thread, result, participation=policy)


@click.command()
@THREAD
@click.argument("title")
@server_options
def rename(options: CommandOptions, thread: str, title: str) -> ExitCode:
    """Give a thread another title."""
    if not title.strip():
        raise click.UsageError("say how it is called: moot thread rename THREAD TITLE.")
    return _change_thread(options, thread, f"renamed to “{title}”",
         lambda name: threads.rename_thread(name, title))  # fmt: skip


@click.command()
@THREAD
@server_options
def archive(options: CommandOptions, thread: str) -> ExitCode:
    """Put a thread away: lists leave it out."""
    return _change_thread(options, thread, "archived", threads.archive_thread)


@click.command()
@THREAD
@server_options
def unarchive(options: CommandOptions, thread: str) -> ExitCode:
    """Take a thread out again."""
    return _change_thread(options, thread, "taken out of the archive", threads.unarchive_thread)


@click.command()
@THREAD
@click.option("--to", "other", metavar="THREAD", help="One that is there.")
@click.option("--title", metavar="TEXT", help="The title of a new side thread.")
@server_options
def link(options: CommandOptions, thread: str, other: str | None, title: str | None) -> None:
    """Link a thread that is there, or begin a side thread. Prints its id."""
    if (other is None) == (title is None):
        raise click.UsageError("Say which: --to THREAD, or --title TEXT for a new one.")
    api = api_for_writing(options)
    thread_id = find_thread(api, thread)
    if other is not None:
        linked = api.send(threads.link_thread(thread_id, find_thread(api, other)))
    else:
        linked = api.send(threads.begin_side_thread(thread_id, title or ""))
    output.print_answer(options, linked, linked.thread_id)


@click.command()
@THREAD
@NOTE
@server_options
def reopen(options: CommandOptions, thread: str, note: str | None) -> None:
    """Go on with a closed thread in a new one that has its history. Prints its id."""
    api = api_for_writing(options)
    reopened = api.send(threads.reopen_thread(find_thread(api, thread), note=note or None))
    output.print_answer(options, reopened, reopened.thread_id)


@click.command()
@THREAD
@click.option("--at", type=click.IntRange(1), metavar="TURN", help="From this turn on [its end].")
@NOTE
@server_options
def fork(options: CommandOptions, thread: str, at: int | None, note: str | None) -> None:
    """Begin another thread with the history of this one. Prints its id."""
    api = api_for_writing(options)
    source = api.send(threads.get_thread(find_thread(api, thread)))
    if at is None:
        first = api.send(runs.get_run(source.run_id)).metrics.event_count
    else:
        first = _turn_sequence(api, source, at)
    forked = api.send(runs.fork_run(source.run_id, first, note=note or None))
    thread_id = forked.run_id + source.thread_id.removeprefix(source.run_id)
    output.print_answer(options, {**to_builtins(forked), "threadId": thread_id}, thread_id)


def _turn_sequence(api: Api, thread: ThreadView, turn: int) -> int:
    """Return the event of a turn. Raise UsageError if there is none."""
    behind = thread.turns - turn
    turns = read_newest_turns(api, thread.thread_id, behind + 1) if behind >= 0 else []
    if not turns or turns[0].turn != turn:
        raise click.UsageError(f"there is no turn {turn}: the newest is {thread.turns}.")
    return turns[0].seq


CONTROL_COMMANDS = (
    *map(_control_command, CONTROLS), invite, uninvite, undo, mode, rename, archive, unarchive,
    link, reopen, fork,
)  # fmt: skip
