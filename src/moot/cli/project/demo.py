"""``moot demo``: show a council of the offline model, from question to minutes."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moot.cli.server import child_process
from moot.cli.shared import output
from moot.cli.shared.command_hint import command_hint, program_name
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions
from moot.core.text.quantities import format_count

if TYPE_CHECKING:
    from moot.cli.councils.session import CouncilSession
    from moot.cli.shared.client import Api
    from moot.wire.councils import CouncilFloor

QUESTION = "Should a 4-person startup rewrite its billing service?"
MEMBERS = ("ada", "bo", "cy")
MODERATOR = "mo"
#: speed of the demo model on a terminal, and in a pipe
WORDS_PER_SECOND, WORDS_PER_SECOND_IN_PIPE = "24", "100"


@click.command()
@click.option("--database", default="moot-demo.db", show_default=True, help="Where it is kept.")
@click.option("--fresh", is_flag=True, help="Keep nothing; print the minutes.")
@click.option("--no-prompt", is_flag=True, help="Only watch; type nothing.")
def demo(database: str, fresh: bool, no_prompt: bool) -> ExitCode:
    """Seat a council of demo agents and watch it decide. Needs no key and no network."""
    child_process.leave_on_signals()
    if fresh:
        with tempfile.TemporaryDirectory(prefix="moot-demo-") as folder:
            return _run_demo(Path(folder) / "moot-demo.db", None, not no_prompt)
    file = Path(database)
    if not file.parent.is_dir():
        raise click.UsageError(f"there is no folder {file.parent} for {file}; make it.")
    return _run_demo(file, file.with_suffix(".md"), not no_prompt)


def _run_demo(database: Path, minutes: Path | None, prompt: bool) -> ExitCode:
    sessions: list[CouncilSession] = []
    try:
        with _demo_server(database) as address:
            from moot.cli.shared.client import api_for_writing  # while the server starts

            options = CommandOptions()
            options.database = str(database)
            if minutes is not None:  # hints name the database that stays
                click.get_current_context().obj = lasting_options = CommandOptions()
                lasting_options.database = str(database)
            options.server = address()
            api = api_for_writing(options)
            sessions.append(_start_council(api, prompt))
            end = sessions[0].follow(-1)
            _save_minutes(api, sessions[0].thread_id, minutes)
    except KeyboardInterrupt:
        turns = sessions[0].turns if sessions else 0
        hint = f" Resume: {program_name()} serve {shlex.quote(str(database))}" if minutes else ""
        click.echo(f"Stopping… {format_count(turns, 'turn')} saved.{hint}")
        raise click.Abort from None
    if minutes is not None:
        _print_next_steps(database, sessions[0].thread_id)
    return end


def _start_council(api: "Api", prompt: bool) -> "CouncilSession":
    from moot.cli.councils.session import CouncilSession
    from moot.client.operations import threads

    policy = {"rounds": 2, "vote": True, "close": "moderator"}
    call = threads.convene_council(
        QUESTION, [*MEMBERS, MODERATOR], moderator=MODERATOR, policy=policy
    )
    thread = api.send(threads.get_thread(api.send(call).thread_id))
    if thread.floor is not None:
        _print_members(thread.floor)
    interactive = prompt and sys.stdin.isatty()
    return CouncilSession(api, thread, interactive)


def _print_members(floor: "CouncilFloor") -> None:
    members, moderator_id = floor.members, floor.moderator or MODERATOR
    member_names = " · ".join(
        f"{profile['name']} ({profile['role']})"
        for name, profile in members.items()
        if name != moderator_id
    )
    moderator = members[moderator_id]["name"]
    click.echo(f'Seated a council of {len(MEMBERS)} on "{QUESTION}"')
    click.echo(f"  {member_names}   moderator: {moderator}\n")


def _save_minutes(api: "Api", thread_id: str, minutes: Path | None) -> None:
    from moot.client.operations import threads

    body = api.send(threads.export_thread(thread_id))
    if minutes is None:
        click.echo()
        output.write_bytes(body)
    else:
        minutes.write_bytes(body)
        click.echo(f"Minutes written to {minutes}.")


def _print_next_steps(database: Path, thread_id: str) -> None:
    """Print each command on its own line, so that it can be copied."""
    click.echo("\nThe server has stopped; everything is kept. To go on:\n")
    for label, command in (
        ("start the server again", f"{program_name()} serve {shlex.quote(str(database))}"),
        (
            "then, in another terminal, a question of yours",
            command_hint('convene "…" --with ada,bo,cy'),
        ),
        ("this council again", command_hint(f"watch {output.short_id(thread_id)} --from-start")),
        ("everything else", f"{program_name()} --help"),
    ):
        click.echo(click.style(f"  {label}:", dim=True))
        click.echo(f"    {command}")


@contextmanager
def _demo_server(database: Path) -> Iterator[Callable[[], str]]:
    """Start a server on a free port, and yield a function that waits for its address.

    Its log goes to a file beside the database.
    """
    from moot.config.settings import child_environment

    samples = Path(__file__).parents[2] / "agents" / "samples"
    arguments = [str(database), "--port", "0", "--agents", str(samples)]
    pace = child_environment(
        MOOT_DEMO_WPS=WORDS_PER_SECOND if output.on_terminal() else WORDS_PER_SECOND_IN_PIPE
    )
    log = database.with_suffix(".log")
    with log.open("w") as errors:
        server = child_process.start_server(arguments, pace, stdout=subprocess.PIPE, stderr=errors)
    try:
        yield lambda: _server_address(server, log, database)
    finally:
        child_process.stop_server(server)


def _server_address(server: "subprocess.Popen[str]", log: Path, database: Path) -> str:
    from moot import __version__

    assert server.stdout is not None
    banner = server.stdout.readline().strip()
    if not banner:
        problem = log.read_text().strip().removeprefix("error: ")
        raise CommandError(f"the server did not start: {problem or 'it has ended without a word'}")
    url = next(word for word in banner.split() if word.startswith("http"))
    output.print_facts(
        f"moot {__version__}", url, f"data {database}", "model: demo (offline, no key)"
    )
    return url
