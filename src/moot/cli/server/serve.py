"""``moot serve``: run the server in this process until it is stopped."""

import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.server import child_process
from moot.cli.shared.errors import CommandError
from moot.config.server_location import read_server_address, url_file

if TYPE_CHECKING:
    from moot.api.seams import Seams
    from moot.config.settings import Settings

OPTIONS = (
    click.argument("database", required=False, metavar="[DB]"),
    click.option("--database", "database_option", metavar="DB", help="The SQLite file [moot.db]."),
    click.option("--host", help="Address to listen on [127.0.0.1]."),
    click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 takes a free one [7666]."),
    click.option("--workflows", metavar="DIR", help="Register the workflows in this folder."),
    click.option("--agents", metavar="DIR", help="Take in the agents in this folder [agents]."),
    click.option("--nodes", metavar="FILE", help="A Python file of @node functions."),
    click.option(
        "--peer", "peers", multiple=True, metavar="NAME=URL", help="A host to hand work to."
    ),
    click.option(
        "--trust-local",
        is_flag=True,
        default=None,
        help="Programs on this machine use /threads without a key.",
    ),
    click.option("--conformance", is_flag=True, default=None, help="Be a host under test."),
    click.option("--log-json", is_flag=True, help="Log lines as JSON."),
)


def serve_options(command: Any) -> Any:
    """Add the options that ``serve`` and ``dev`` have in common."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command()
@serve_options
@click.option(child_process.FLAG, "with_parent", is_flag=True, hidden=True)
def serve(log_json: bool, with_parent: bool, **flags: Any) -> None:
    """Run the server, on one database file, until Ctrl-C or SIGTERM."""
    if with_parent:
        child_process.end_with_parent()
    run_server(settings_from(**flags), log_json)


def settings_from(
    database: str | None, database_option: str | None, peers: tuple[str, ...], **flags: object
) -> "Settings":
    from moot.config.settings import load_settings

    if database and database_option and database != database_option:
        raise click.UsageError("Give the database once: as DB or as --database.")
    more = {"peers": ",".join(peers) or None, "database": database or database_option}
    try:
        settings = load_settings({**flags, **more})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    folder = Path(settings.database).parent
    if not folder.is_dir():
        raise click.UsageError(f"there is no folder {folder} for {settings.database}; make it.")
    for option, name in (("--workflows", settings.workflows), ("--agents", settings.agents)):
        if name and not Path(name).is_dir():
            raise click.UsageError(f"{option}: there is no folder {name}.")
    if settings.nodes and not Path(settings.nodes).is_file():
        raise click.UsageError(f"--nodes: there is no file {settings.nodes}.")
    if settings.tools and not Path(settings.tools).exists():
        raise click.UsageError(f"tools: there is no file or folder {settings.tools}.")
    return settings


def run_server(settings: "Settings", log_json: bool) -> None:
    from moot.api import server
    from moot.cli.server import log_format
    from moot.store.sqlite.errors import StoreBusy, StoreRefused

    log_format.log_to_stderr(log_json)
    refuse_taken_port(settings)
    try:
        server.serve(
            settings, lambda url: announce_server(settings, url), build_test_seams(settings)
        )
    except StoreBusy as busy:
        raise CommandError(database_in_use_message(Path(settings.database), busy.pid)) from busy
    except (StoreRefused, ValueError) as refusal:
        raise CommandError(str(refusal)) from refusal
    url_file(Path(settings.database)).unlink(missing_ok=True)


def build_test_seams(settings: "Settings") -> "Seams | None":
    """Return the seams of a host under test, or None. Only this command knows them."""
    if not settings.conformance:
        return None
    from moot.conformance.routes import conformance_seams

    return conformance_seams()


def database_in_use_message(database: Path, pid: int | None) -> str:
    """Return a message that names the other process, its address and a remedy."""
    url = read_server_address(database)
    facts = [*([f"process {pid}"] if pid else []), *([url] if url else [])]
    owner = f" ({', '.join(facts)})" if facts else ""
    stop = f"stop that one with: kill {pid}" if pid else "stop that one first"
    return f"{database} is in use by another Moot{owner}; {stop}, or use another file."


def refuse_taken_port(settings: "Settings") -> None:
    """Raise CommandError if the port is taken. Call it before opening the file."""
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = addresses[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"{place} is in use already, maybe by another Moot;"
                " stop that one, or choose with --port (0 takes a free one)."
            ) from error
        raise CommandError(f"Cannot listen on {place}: {error.strerror or error}.") from error


def announce_server(settings: "Settings", url: str) -> None:
    from moot import __version__
    from moot.api.server import key_file
    from moot.cli.shared import output

    output.print_facts(f"moot {__version__}", url, f"database {settings.database}",
                 f"key in {key_file(settings)}", "Ctrl-C stops")  # fmt: skip
    # commands on this machine find a server on another port by this file
    near = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    url_file(Path(settings.database)).write_text(near + "\n", encoding="utf-8")
