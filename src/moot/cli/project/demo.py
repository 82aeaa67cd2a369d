"""``moot demo``: a council of the offline model on the screen, from its question to its minutes."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.server import child_process
from moot.cli.shared import output, quantities
from moot.cli.shared.command_hint import program, way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, place

if TYPE_CHECKING:
    from moot.cli.councils.session import Council
    from moot.cli.shared.client import Api

QUESTION = "Should a 4-person startup rewrite its billing service?"
SEATS = ("ada", "bo", "cy")
MODERATOR = "mo"
#: words a second: to read along, and where nobody does
AT_EASE, AT_ONCE = "24", "100"


@click.command()
@click.option("--database", default="moot-demo.db", show_default=True, help="Where it is kept.")
@click.option("--fresh", is_flag=True, help="Keep nothing; print the minutes.")
@click.option("--no-prompt", is_flag=True, help="Only watch; type nothing.")
def demo(database: str, fresh: bool, no_prompt: bool) -> Exit:
    """Seat a council of demo agents and watch it decide. Needs no key and no network."""
    child_process.leave_on_signals()
    if fresh:
        with tempfile.TemporaryDirectory(prefix="moot-demo-") as folder:
            return _shown(Path(folder) / "moot-demo.db", None, not no_prompt)
    file = Path(database)
    if not file.parent.is_dir():
        raise click.UsageError(f"there is no folder {file.parent} for {file}; make it.")
    return _shown(file, file.with_suffix(".md"), not no_prompt)


def _shown(database: Path, minutes: Path | None, prompt: bool) -> Exit:
    seen: list[Council] = []
    try:
        with _server(database) as address:
            from moot.cli.shared.client import to_write  # while the server starts

            options = Options()
            options.database = str(database)
            if minutes is not None:  # what is said to be typed names the file that stays
                click.get_current_context().obj = kept = Options()
                kept.database = str(database)
            options.server = address()
            api = to_write(options)
            seen.append(_seated(api, options, prompt))
            end = seen[0].follow(-1)
            _keep(api, seen[0].thread_id, minutes)
    except KeyboardInterrupt:
        turns = seen[0].turns if seen else 0
        again = f" Resume: {program()} serve {shlex.quote(str(database))}" if minutes else ""
        click.echo(f"Stopping… {quantities.counted(turns, 'turn')} saved.{again}")
        raise click.Abort from None
    if minutes is not None:
        _go_on(database, seen[0].thread_id)
    return end


def _seated(api: "Api", options: Options, prompt: bool) -> "Council":
    from moot.cli.councils.session import Council, threads
    from moot.cli.shared.client import Client

    body = {"question": QUESTION, "participants": [*SEATS, MODERATOR], "moderator": MODERATOR,
            "policy": {"rounds": 2, "vote": True, "close": "moderator"}}  # fmt: skip
    thread_id = str(api.post("/v1/host/moot/councils", body)["threadId"])
    thread = api.get(threads(thread_id))
    _introduce(thread["floor"])
    shown = prompt and sys.stdin.isatty()
    return Council(api, Client(place(options)), thread, shown)


def _introduce(floor: dict[str, Any]) -> None:
    members = floor["members"]
    seats = " · ".join(
        f"{profile['name']} ({profile['role']})"
        for name, profile in members.items()
        if name != floor["moderator"]
    )
    moderator = members[floor["moderator"]]["name"]
    click.echo(f'Seated a council of {len(SEATS)} on "{QUESTION}"')
    click.echo(f"  {seats}   moderator: {moderator}\n")


def _keep(api: "Api", thread_id: str, minutes: Path | None) -> None:
    from moot.cli.councils.session import threads

    path = f"{threads(thread_id, 'export')}?format=md"
    answer = api.door.call("GET", path, None, {"Accept": "*/*"})
    if minutes is None:
        click.echo()
        output.write(answer.body)
    else:
        minutes.write_bytes(answer.body)
        click.echo(f"Minutes written to {minutes}.")


def _go_on(database: Path, thread_id: str) -> None:
    """Each command on a line of its own: it must not break where it is copied from."""
    click.echo("\nThe server has stopped; everything is kept. To go on:\n")
    for says, command in (
        ("start the server again", f"{program()} serve {shlex.quote(str(database))}"),
        ("then, in another terminal, a question of yours", way('convene "…" --with ada,bo,cy')),
        ("this council again", way(f"watch {output.short(thread_id)} --from-start")),
        ("everything else", f"{program()} --help"),
    ):
        click.echo(click.style(f"  {says}:", dim=True))
        click.echo(f"    {command}")


@contextmanager
def _server(database: Path) -> Iterator[Callable[[], str]]:
    """A server of its own on a free port, and how to learn its address once it listens; its log
    goes to a file beside the database."""
    from moot.config.settings import with_defaults

    samples = Path(__file__).parents[2] / "agents" / "samples"
    arguments = [str(database), "--port", "0", "--agents", str(samples)]
    pace = with_defaults(MOOT_DEMO_WPS=AT_EASE if output.on_terminal() else AT_ONCE)
    log = database.with_suffix(".log")
    with log.open("w") as errors:
        server = child_process.start(arguments, pace, stdout=subprocess.PIPE, stderr=errors)
    try:
        yield lambda: _address(server, log, database)
    finally:
        child_process.end(server)


def _address(server: "subprocess.Popen[str]", log: Path, database: Path) -> str:
    from moot import __version__

    assert server.stdout is not None
    banner = server.stdout.readline().strip()
    if not banner:
        why = log.read_text().strip().removeprefix("error: ")
        raise Trouble(f"the server did not start: {why or 'it has ended without a word'}")
    url = next(word for word in banner.split() if word.startswith("http"))
    output.parts(f"moot {__version__}", url, f"data {database}", "model: demo (offline, no key)")
    return url
