"""``moot memory``: what agents and workflows remember."""

from urllib.parse import urlencode

import click

from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, talks

MEMORY = "/v1/host/moot/memory"


@click.group()
def memory() -> None:
    """What is remembered: list, show, forget."""


@memory.command("list")
@click.argument("ref", required=False)
@click.option("--tag", help="Only entries with this tag.")
@click.option("--limit", type=click.IntRange(0, 1000), default=0, help="At most so many [100].")
@click.option("--run", "run_id", metavar="RUN", help="As this run sees it.")
@talks
def list_(
    options: Options, ref: str | None, tag: str | None, limit: int, run_id: str | None
) -> None:
    """List the entries of a memory, newest first, or the memories there are."""
    api = to_read(options)
    if ref is None:
        found = api.get(MEMORY)["memories"]
        rows = ([each["ref"], each["entries"]] for each in found)
        columns: tuple[str, ...] = ("MEMORY", "ENTRIES")
    else:
        seer = resolve(api, run_id) if run_id is not None else None
        found = api.get(MEMORY, ref=ref, limit=limit, tag=tag, runId=seer)["entries"]
        rows = (
            [each["id"], each["createdAt"][:16], " ".join(each["tags"]), each["content"]]
            for each in found
        )
        columns = ("ID", "SINCE", "TAGS", "CONTENT")
    if options.json:
        output.show_json(found)
    else:
        output.table(columns, rows, empty="Nothing is remembered there.")


@memory.command()
@click.argument("ref")
@click.argument("memory_id", metavar="ID")
@talks
def show(options: Options, ref: str, memory_id: str) -> None:
    """Print one entry: the text on stdout, where it comes from on stderr."""
    found = to_read(options).get(MEMORY, ref=ref, id=memory_id)["entries"]
    if not found:
        raise Trouble(
            f"'{ref}' has no entry '{memory_id}'. See: {way('memory list')}", Exit.NOT_FOUND
        )
    if options.json:
        output.show_json(found[0])
        return
    [entry] = found
    click.echo(output.lines(entry["content"]))
    until = f", until {entry['expiresAt']}" if "expiresAt" in entry else ""
    tags = f", tags {' '.join(entry['tags'])}" if entry["tags"] else ""
    click.echo(
        output.line(f"{entry['id']} by {entry['runId']}, {entry['createdAt']}{until}{tags}", True),
        err=True,
    )


@memory.command()
@click.argument("ref")
@click.argument("memory_id", metavar="ID", required=False)
@click.option("--all", "whole", is_flag=True, help="All of the memory, when no ID is given.")
@talks
def forget(options: Options, ref: str, memory_id: str | None, whole: bool) -> None:
    """Erase an entry for good, or with --all a whole memory.

    Runs that were reminded of it cannot be forked any more.
    """
    if (memory_id is None) != whole:
        raise Trouble("name the entry to forget, or say --all for the whole memory.", Exit.USAGE)
    asked = {"ref": ref} if memory_id is None else {"ref": ref, "id": memory_id}
    gone = to_write(options).delete(f"{MEMORY}?{urlencode(asked)}")
    if options.json:
        output.show_json(gone)
        return
    for name in gone["forgotten"]:
        click.echo(output.line(f"{name} is forgotten"))
