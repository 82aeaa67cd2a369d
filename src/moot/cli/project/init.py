"""``moot init``: make a project that runs offline. It overwrites no file."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from moot.cli.shared import output
from moot.cli.shared.command_hint import PROGRAM_NAME, program_name
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, json_option

#: suffix of the starter's files, and the files whose real name a package cannot hold
SUFFIX = ".in"
NAMES = {"gitignore": ".gitignore"}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@click.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--here", is_flag=True, help="Into this folder; files that are here are kept.")
@json_option
def init(options: CommandOptions, name: str | None, here: bool) -> None:
    """Make a project: agents, a workflow, a node, a tool, tests. It runs offline at once."""
    if name is None and not here:
        raise click.UsageError("say how the project is called, or --here to use this folder.")
    if name is not None and here:
        message = (
            f"--here makes the project in this folder; leave out '{name}', or leave out --here."
        )
        raise click.UsageError(message)
    folder = Path() if name is None else Path(name)
    project_name = folder.resolve().name
    if not NAME.fullmatch(project_name):
        raise CommandError(
            f"'{project_name}' is no name: use letters, digits, '.', '_' and '-'.", ExitCode.USAGE
        )
    if name is not None and folder.exists():
        cd = f"cd {folder} && {program_name(elsewhere=True)} init --here"
        raise CommandError(f"{folder} is there already; for its sake: {cd}")
    written, skipped = _write_project(folder, project_name)
    if options.json:
        output.print_json({"folder": str(folder), "made": written, "kept": skipped})
        return
    for file in skipped:
        click.echo(f"kept   {file}")
    for file in written:
        click.echo(f"wrote  {file}")
    cd = "" if name is None else f"cd {folder} && "
    moot = program_name(elsewhere=name is not None)
    click.echo(f"\nIt runs as it is: {cd}{moot} check && {moot} test && {moot} dev")
    if moot != PROGRAM_NAME:
        click.echo(f"To type only {PROGRAM_NAME}: source {Path(moot).parent / 'activate'}")


def _write_project(folder: Path, project_name: str) -> tuple[list[str], list[str]]:
    written, skipped = [], []
    starter = files("moot.cli.project").joinpath("starter")
    for place, source in sorted(_files_in(starter, Path())):
        target = folder / place
        text = source.read_text(encoding="utf-8").replace("{{name}}", project_name)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            skipped.append(str(place))
        else:
            written.append(str(place))
    return written, skipped


def _files_in(folder: Traversable, place: Path) -> list[tuple[Path, Traversable]]:
    files_found: list[tuple[Path, Traversable]] = []
    for item in folder.iterdir():
        if item.is_dir():
            files_found += _files_in(item, place / item.name)
        elif item.name.endswith(SUFFIX):
            name = item.name.removesuffix(SUFFIX)
            files_found.append((place / NAMES.get(name, name), item))
    return files_found
