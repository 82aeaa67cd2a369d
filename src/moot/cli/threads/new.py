"""``moot thread new``: begin a thread."""

from typing import Any

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, to_write
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks
from moot.cli.threads.thread import THREADS


def _names(ctx: click.Context, param: click.Parameter, given: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))


@click.command()
@click.argument("title")
@click.option("--with", "members", default="", metavar="A,B", callback=_names,
              help="Agents and programs that take part from the beginning.")  # fmt: skip
@click.option("--say", "opening", metavar="TEXT", help="What you begin it with.")
@talks
def new(options: Options, title: str, members: list[str], opening: str | None) -> None:
    """Begin a thread. Prints its id.

    \b
    moot thread new "Q1 prices" --with ada,bo --say "Do we raise them?"
    """
    if not title.strip():
        raise click.UsageError("say what it is about: moot thread new TITLE.")
    api = to_write(options)
    body: dict[str, Any] = {"title": title, "participants": members}
    made = api.post(THREADS, body if opening is None else {**body, "opening": opening})
    if options.json:
        output.show_json(made)
    else:
        click.echo(output.line(made["threadId"]))
    for name in members:
        remark(api, name)


def remark(api: Api, name: str) -> None:
    """Says of whom the host does not know that it will not speak for him."""
    if (said := unknown(api, name)) is not None:
        output.complain(said)


def unknown(api: Api, name: str) -> str | None:
    """None for whom the host may know; else that it waits for him."""
    said = missing(api, name)
    return None if said is None else f"{said} It is waited for, and speaks with a key of its own."


def missing(api: Api, name: str) -> str | None:
    """That there is no such agent, with the nearest name. None for an agent of the host, and for a
    name with a place in it."""
    if ":" in name.removeprefix("host:"):
        return None
    try:
        api.get(path_of("v1", "host", "moot", "agents", name.removeprefix("host:")))
    except Trouble as trouble:
        return str(trouble) if trouble.exit_code is Exit.NOT_FOUND else None
    return None
