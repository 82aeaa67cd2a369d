"""``moot memory``: list, show and forget what agents and workflows remember."""

import click

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host

NOTHING = "Nothing is remembered there."


@click.group()
def memory() -> None:
    """What is remembered: list, show, forget."""


@memory.command("list")
@click.argument("ref", required=False)
@click.option("--tag", help="Only entries with this tag.")
@click.option("--limit", type=click.IntRange(0, 1000), default=0, help="At most so many [100].")
@click.option("--run", "run_id", metavar="RUN", help="As this run sees it.")
@server_options
def list_(
    options: CommandOptions, ref: str | None, tag: str | None, limit: int, run_id: str | None
) -> None:
    """List the entries of a memory, newest first, or the memories there are."""
    api = api_for_reading(options)
    if ref is None:
        memories = api.send(host.list_memories()).memories
        columns = ("MEMORY", "ENTRIES")
        output.print_list(
            options, memories, columns, lambda each: [each.ref, each.entries], NOTHING
        )
        return
    reader_run = resolve_run_id(api, run_id) if run_id is not None else None
    call = host.list_memory_entries(ref, limit=limit, tag=tag, run_id=reader_run)
    output.print_list(
        options,
        api.send(call).entries,
        ("ID", "SINCE", "TAGS", "CONTENT"),
        lambda entry: [entry.id, entry.created_at[:16], " ".join(entry.tags), entry.content],
        NOTHING,
    )


@memory.command()
@click.argument("ref")
@click.argument("memory_id", metavar="ID")
@server_options
def show(options: CommandOptions, ref: str, memory_id: str) -> None:
    """Print one entry: the text on stdout, where it comes from on stderr."""
    call = host.list_memory_entries(ref, id=memory_id)
    entries = api_for_reading(options).send(call).entries
    if not entries:
        raise CommandError(
            f"'{ref}' has no entry '{memory_id}'. See: {command_hint('memory list')}",
            ExitCode.NOT_FOUND,
        )
    [entry] = entries
    if options.json:
        output.print_json(entry)
        return
    click.echo(output.safe_lines(entry.content))
    until = "" if entry.expires_at is None else f", until {entry.expires_at}"
    tags = f", tags {' '.join(entry.tags)}" if entry.tags else ""
    origin = f"{entry.id} by {entry.run_id}, {entry.created_at}{until}{tags}"
    click.echo(output.safe_line(origin, True), err=True)


@memory.command()
@click.argument("ref")
@click.argument("memory_id", metavar="ID", required=False)
@click.option("--all", "whole", is_flag=True, help="All of the memory, when no ID is given.")
@server_options
def forget(options: CommandOptions, ref: str, memory_id: str | None, whole: bool) -> None:
    """Erase an entry for good, or with --all a whole memory.

    Runs that were reminded of it cannot be forked any more.
    """
    if (memory_id is None) != whole:
        raise CommandError(
            "name the entry to forget, or say --all for the whole memory.", ExitCode.USAGE
        )
    answer = api_for_writing(options).send(host.forget_memory(ref, id=memory_id))
    output.print_answer(options, answer, *(f"{name} is forgotten" for name in answer.forgotten))
