"""``moot thread new``: start a thread."""

import click

from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_writing
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host, threads


def _parse_names(ctx: click.Context, param: click.Parameter, text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@click.command()
@click.argument("title")
@click.option("--with", "members", default="", metavar="A,B", callback=_parse_names,
              help="Agents and programs that take part from the beginning.")  # fmt: skip
@click.option("--say", "opening", metavar="TEXT", help="What you begin it with.")
@server_options
def new(options: CommandOptions, title: str, members: list[str], opening: str | None) -> None:
    """Begin a thread. Prints its id.

    \b
    moot thread new "Q1 prices" --with ada,bo --say "Do we raise them?"
    """
    if not title.strip():
        raise click.UsageError("say what it is about: moot thread new TITLE.")
    api = api_for_writing(options)
    created = api.send(threads.begin_thread(title, members, opening=opening))
    output.print_answer(options, created, created.thread_id)
    for name in members:
        warn_if_unknown(api, name)


def warn_if_unknown(api: Api, name: str) -> None:
    """Warn if the host does not know the participant, because then it does not speak for it."""
    if (warning := unknown_agent_warning(api, name)) is not None:
        output.print_error(warning)


def unknown_agent_warning(api: Api, name: str) -> str | None:
    """Return None for a participant that the host may know."""
    message = missing_agent_message(api, name)
    return message and f"{message} It is waited for, and speaks with a key of its own."


def missing_agent_message(api: Api, name: str) -> str | None:
    """Return a message with the nearest name, or None.

    None is for an agent of the host, and for a name with a host in it.
    """
    if ":" in name.removeprefix("host:"):
        return None
    try:
        api.send(host.get_agent(name.removeprefix("host:")))
    except CommandError as error:
        return str(error) if error.exit_code is ExitCode.NOT_FOUND else None
    return None
