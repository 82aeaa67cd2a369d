"""``moot demo``: a server, one run on the screen as it happens, and a clean end."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from moot.cli.options import Options, place
from moot.cli.trouble import Exit, Trouble

FLOW = "order-intake"
INPUTS = {"customer": "Ada", "amount": 250}
STOP_SECONDS = 10


@click.command()
@click.option("--folder", default="demo", show_default=True, help="Where its database goes.")
@click.option("--workflows", metavar="DIR", help="The sample workflows [examples/flows].")
def demo(folder: str, workflows: str | None) -> Exit:
    """Start a server, watch one sample workflow run, stop the server. Needs nothing."""
    from moot.cli.client import Client, to_write
    from moot.cli.watching import Follower, show_end

    samples = Path(workflows) if workflows else _samples()
    database = Path(folder) / "moot.db"
    database.parent.mkdir(parents=True, exist_ok=True)
    with _server(database, samples) as url:
        options = Options()
        options.server, options.database = url, str(database)
        api, client = to_write(options), Client(place(options))
        given = " ".join(f"--input {name}={value}" for name, value in INPUTS.items())
        click.echo(f"\n$ moot run {FLOW} {given}")
        run_id = api.post("/v1/runs", {"workflowId": FLOW, "inputs": INPUTS})["runId"]
        end = Follower(api, client, run_id, as_json=False).follow(timeout=60)
        show_end(api.get(f"/v1/runs/{run_id}"))
    click.echo(f"\nThe server has stopped; the run is kept in {database}. To go on:\n")
    program = Path(sys.argv[0]).name if Path(sys.argv[0]).stem == "moot" else "moot"
    program = ".venv/bin/moot" if Path(".venv/bin/moot").exists() else program
    for command, says in _next(program, database, samples):
        click.echo(f"  {command:<64} {click.style(says, dim=True)}")
    return end


def _next(program: str, database: Path, samples: Path) -> tuple[tuple[str, str], ...]:
    return (
        (f"{program} run show @last --database {database}", "the run, read from the file"),
        (f"{program} db verify {database}", "every byte of its log"),
        (f"{program} serve {database} --workflows {samples}", "the server again"),
        (f"{program} --help", "everything else"),
    )


def _samples() -> Path:
    for folder in (Path("examples/flows"), Path(__file__).parents[1] / "samples"):
        if folder.is_dir():
            return folder
    raise Trouble("the sample workflows are not here; name their folder with --workflows.")


@contextmanager
def _server(database: Path, samples: Path) -> Iterator[str]:
    """A server of its own on a free port; its log goes to a file beside the database."""
    command = [sys.executable, "-m", "moot.cli", "serve", str(database)]
    command += ["--port", "0", "--workflows", str(samples)]
    log = database.with_name("server.log")
    with log.open("w") as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert child.stdout is not None
    try:
        banner = child.stdout.readline().strip()
        if not banner:
            raise Trouble(f"the server did not start; {log} says: {log.read_text().strip()}")
        click.echo(banner)
        yield next(word for word in banner.split() if word.startswith("http"))
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
