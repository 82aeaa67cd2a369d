"""``moot thread`` controls: who is in, who may speak, how it goes on, what is taken back."""

import contextlib
from collections.abc import Callable
from typing import Any

import click

from moot.cli.councils.prompt_actions import take_back
from moot.cli.councils.session import threads
from moot.cli.shared import output, quantities
from moot.cli.shared.client import Api, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, span, talks
from moot.cli.threads.new import remark
from moot.cli.threads.thread import find_thread


def _names(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for name in given:
        if not name or name.split() != [name]:
            raise click.BadParameter(f"'{name}' is no name; names have no blanks.")
    return given


NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_names)
THREAD = click.argument("thread", metavar="THREAD")


def act(options: Options, thread: str, said: str, call: Callable[[Api, str], Any]) -> Exit:
    """Does it, and says what has been done. What the server warns of was done in vain, for the
    names it tells; for others of the same command it holds."""
    api = to_write(options)
    thread_id = find_thread(api, thread)
    answer = call(api, thread_id)
    warnings = answer.get("warnings", [])
    if options.json:
        output.show_json(answer)
    elif not warnings:
        click.echo(output.line(f"{thread_id}: {said}"))
    for each in warnings:
        output.complain(str(each))
    return Exit.FAILED if warnings else Exit.OK


def steer(options: Options, thread: str, said: str, **content: Any) -> Exit:
    return act(options, thread, said, lambda api, name: api.post(
        threads(name, "controls"), {"content": content}))  # fmt: skip


@click.command()
@THREAD
@NAMES
@click.option("--role", metavar="TEXT", help="What they are there for.")
@talks
def invite(options: Options, thread: str, names: tuple[str, ...], role: str | None) -> None:
    """Let agents or programs take part from the next turn on."""
    for name in names:
        profile = {"profile": {"role": role}} if role else {}
        steer(options, thread, f"invited {name}", invite={"participant_id": name, **profile})
        remark(to_write(options), name)


@click.command()
@THREAD
@NAMES
@talks
def uninvite(options: Options, thread: str, names: tuple[str, ...]) -> Exit:
    """Let them take part no longer; what they said stays."""
    return max(
        steer(options, thread, f"sent {name} away", uninvite={"participant_id": name})
        for name in names
    )


@click.command()
@THREAD
@NAMES
@click.option("--for", "seconds", callback=span, metavar="SPAN", help="90s, 10m, 2h [for good].")
@talks
def mute(options: Options, thread: str, names: tuple[str, ...], seconds: int | None) -> Exit:
    """Refuse what they say, for a while or until unmuted: mute THREAD ada 10m."""
    if seconds is None and len(names) > 1:  # as it is typed in the thread itself
        with contextlib.suppress(ValueError):
            seconds, names = quantities.seconds(names[-1]), names[:-1]
    content: Any = {"targets": list(names)} | ({"seconds": seconds} if seconds else {})
    how_long = f" for {quantities.in_words(seconds)}" if seconds else ""
    return steer(options, thread, f"muted {', '.join(names)}{how_long}", mute=content)


@click.command()
@THREAD
@NAMES
@talks
def unmute(options: Options, thread: str, names: tuple[str, ...]) -> Exit:
    """Let them speak again."""
    return steer(options, thread, f"unmuted {', '.join(names)}", unmute=list(names))


@click.command()
@THREAD
@talks
def pause(options: Options, thread: str) -> Exit:
    """Only people speak."""
    return steer(options, thread, "paused", pause={"on": True})


@click.command()
@THREAD
@talks
def resume(options: Options, thread: str) -> Exit:
    """Agents speak again."""
    return steer(options, thread, "resumed", pause={"on": False})


@click.command()
@THREAD
@NAMES
@talks
def prod(options: Options, thread: str, names: tuple[str, ...]) -> Exit:
    """Ask them to speak once."""
    return steer(options, thread, f"asked to speak once: {', '.join(names)}", prod=list(names))


@click.command()
@THREAD
@talks
def undo(options: Options, thread: str) -> None:
    """Take back what you have steered last, if it still holds."""
    api = to_write(options)
    thread_id = find_thread(api, thread)
    said = take_back(api, thread_id)
    if options.json:
        output.show_json(api.get(threads(thread_id)))
    else:
        click.echo(output.line(f"{thread_id}: taken back: {said}"))


def _span_or_off(ctx: click.Context, param: click.Parameter, given: str) -> int | None:
    return None if given == "off" else span(ctx, param, given)


@click.command()
@THREAD
@click.argument("seconds", metavar="SPAN|off", callback=_span_or_off)
@talks
def ttl(options: Options, thread: str, seconds: int | None) -> Exit:
    """Let agents go on by themselves for so long: 90s, 10m, 2h; or off, for as long as they like.

    After that only who is addressed alone, or prodded, is woken.
    """
    said = "agents go on as long as they like"
    if seconds is not None:
        said = f"agents go on by themselves for {quantities.in_words(seconds)}"
    return steer(options, thread, said, ttl_seconds=seconds)


SWITCH = click.argument("switch", metavar="on|off", type=click.Choice(("on", "off")))


@click.command()
@THREAD
@SWITCH
@talks
def discussion(options: Options, thread: str, switch: str) -> Exit:
    """Let agents wake one another with @NAME, or no longer."""
    said = "agents wake one another" if switch == "on" else "agents wake nobody"
    return steer(options, thread, said, discussion={"on": switch == "on"})


@click.command()
@THREAD
@SWITCH
@talks
def auto(options: Options, thread: str, switch: str) -> Exit:
    """Have everybody answer what a person says to all, however many there are."""
    said = "all answer what is said to all" if switch == "on" else "who is named answers"
    return steer(options, thread, said, invited_auto={"on": switch == "on"})


@click.command()
@THREAD
@talks
def done(options: Options, thread: str) -> Exit:
    """Say that you have nothing more to say. A thread in which all are done is closed."""
    return steer(options, thread, "you are done", done=True)


@click.command()
@THREAD
@click.argument("mode", metavar="auto|small|large", type=click.Choice(("auto", "small", "large")))
@talks
def mode(options: Options, thread: str, mode: str) -> Exit:
    """Say who answers a person: small all, large who is named, auto by how many there are."""
    api = to_write(options)
    floor = api.get(threads(find_thread(api, thread))).get("floor")
    if floor is None or floor["mode"] not in ("auto", "small", "large"):
        raise Trouble("It is led as a council is; a thread has such modes.")
    policy = {"mode": mode, "renews": True, "limits": floor["limits"]}
    return steer(options, thread, f"answers as a thread that is {mode}", participation=policy)
