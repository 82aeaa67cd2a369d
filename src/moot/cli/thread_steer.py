"""``moot thread`` controls: who is in, who may speak, how it goes on, what is taken back."""

from collections.abc import Callable
from typing import Any

import click

from moot.cli import output, quantities
from moot.cli.client import Api, to_write
from moot.cli.council import threads
from moot.cli.options import Options, talks
from moot.cli.thread import find_thread
from moot.cli.thread_new import remark
from moot.cli.trouble import Exit

NAMES = click.argument("names", metavar="NAME...", nargs=-1, required=True)
THREAD = click.argument("thread", metavar="THREAD")


def act(options: Options, thread: str, said: str, call: Callable[[Api, str], Any]) -> Exit:
    """Does it, and says what has been done. What the server warns of was done in vain."""
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


def span(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    try:
        return None if given is None else quantities.seconds(given)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command()
@THREAD
@NAMES
@click.option("--for", "seconds", callback=span, metavar="SPAN", help="90s, 10m, 2h [for good].")
@talks
def mute(options: Options, thread: str, names: tuple[str, ...], seconds: int | None) -> Exit:
    """Refuse what they say, for a while or until unmuted."""
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
