"""``moot init``: a project that runs offline as it is. Nothing that is there is overwritten."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from moot.cli.shared import output
from moot.cli.shared.command_hint import NAME as NAME_OF_PROGRAM
from moot.cli.shared.command_hint import program
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, shows

#: how the files of the starter are called, and those that cannot be called as they shall be
SUFFIX = ".in"
NAMES = {"gitignore": ".gitignore"}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@click.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--here", is_flag=True, help="Into this folder; files that are here are kept.")
@shows
def init(options: Options, name: str | None, here: bool) -> None:
    """Make a project: agents, a workflow, a node, a tool, tests. It runs offline at once."""
    if name is None and not here:
        raise click.UsageError("say how the project is called, or --here to use this folder.")
    if name is not None and here:
        said = f"--here makes the project in this folder; leave out '{name}', or leave out --here."
        raise click.UsageError(said)
    folder = Path() if name is None else Path(name)
    called = folder.resolve().name
    if not NAME.fullmatch(called):
        raise Trouble(f"'{called}' is no name: use letters, digits, '.', '_' and '-'.", Exit.USAGE)
    if name is not None and folder.exists():
        way = f"cd {folder} && {program(elsewhere=True)} init --here"
        raise Trouble(f"{folder} is there already; for its sake: {way}")
    made, kept = _written(folder, called)
    if options.json:
        output.show_json({"folder": str(folder), "made": made, "kept": kept})
        return
    for file in kept:
        click.echo(f"kept   {file}")
    for file in made:
        click.echo(f"wrote  {file}")
    way = "" if name is None else f"cd {folder} && "
    moot = program(elsewhere=name is not None)
    click.echo(f"\nIt runs as it is: {way}{moot} check && {moot} test && {moot} dev")
    if moot != NAME_OF_PROGRAM:
        click.echo(f"To type only {NAME_OF_PROGRAM}: source {Path(moot).parent / 'activate'}")


def _written(folder: Path, called: str) -> tuple[list[str], list[str]]:
    made, kept = [], []
    for place, source in sorted(_starter()):
        target = folder / place
        text = source.read_text(encoding="utf-8").replace("{{name}}", called)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            kept.append(str(place))
        else:
            made.append(str(place))
    return made, kept


def _starter() -> list[tuple[Path, Traversable]]:
    """Where each file of a new project goes, and what is in it."""
    return _inside(files("moot.cli.project").joinpath("starter"), Path())


def _inside(folder: Traversable, place: Path) -> list[tuple[Path, Traversable]]:
    found: list[tuple[Path, Traversable]] = []
    for item in folder.iterdir():
        if item.is_dir():
            found += _inside(item, place / item.name)
        elif item.name.endswith(SUFFIX):
            name = item.name.removesuffix(SUFFIX)
            found.append((place / NAMES.get(name, name), item))
    return found
