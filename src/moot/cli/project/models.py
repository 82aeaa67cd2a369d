"""``moot models``: which models there are, and whether they answer. Keys are named, never kept."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moot.cli.shared import output
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.options import Options, shows

if TYPE_CHECKING:
    from moot.agents.models.config import ModelEntry
    from moot.agents.models.registry import Book
    from moot.config.project import Project


@click.group()
def models() -> None:
    """Models: list, add, test, remove; they are kept in moot.toml."""


@models.command("list")
@shows
def list_(options: Options) -> None:
    """List the models that can be named; demo is always there."""
    rows = [_row(name, entry) for name, entry in _known(_project()).items()]
    if options.json:
        output.show_json(rows)
        return
    output.table(
        ("NAME", "PROVIDER", "MODEL", "ADDRESS", "KEY"),
        ([row["name"], row["provider"], row["model"], row["url"], _key_state(row)]
         for row in rows),
    )  # fmt: skip


@models.command()
@click.argument("name")
@click.option("--url", help="Its address, like http://localhost:11434/v1 [the provider's own].")
@click.option("--model", help="What it is called there.")
@click.option("--key-env", metavar="VARIABLE", help="The environment variable that has its key.")
@click.option(
    "--provider",
    type=click.Choice(["openai", "anthropic", "demo"]),
    help="What it speaks; openai is what most do [openai].",
)
@shows
def add(options: Options, name: str, **given: str | None) -> None:
    """Write a model into moot.toml. Its key stays in the environment."""
    from moot.cli.project import toml_edit
    from moot.config.project import ProjectError, parse
    from moot.config.settings import Settings, secret

    file, text = _file()
    found = _project()
    if found and name in found.models:
        raise Trouble(
            f"{file} has a model '{name}' already; to replace it, first: moot models remove {name}",
            Exit.USAGE,
        )
    if not given["model"] and given["provider"] != "demo":
        raise click.UsageError("--model is missing: what the provider calls the model.")
    values = {word: value for word in ("provider", "url", "model", "key_env")
              if (value := given[word]) is not None}  # fmt: skip
    try:
        edited = toml_edit.with_table(text, ("models", name), values)
        entry = parse(edited, file, Settings).models[name]
    except toml_edit.NotEditable as error:
        raise Trouble(f"{file}: {error}; write the table yourself.") from None
    except ProjectError as error:
        raise click.UsageError(str(error)) from None
    _write(file, edited)
    row = _row(name, entry)
    if options.json:
        output.show_json(row)
        return
    click.echo(f"{name} is in {file} now. Try it: moot models test {name}")
    if entry.key_env and not secret(entry.key_env):
        click.echo(f"Its key is looked for in {entry.key_env}, which is not set yet.", err=True)


@models.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@shows
def remove(options: Options, names: tuple[str, ...]) -> None:
    """Take models out of moot.toml; nothing else in it changes."""
    from moot.cli.project import toml_edit
    from moot.core.text.nearest import nearest

    for name in names:
        file, text = _file()
        found = _project()
        if found is None or name not in found.models:
            meant = nearest(name, found.models if found else ())
            hint = f" Did you mean '{meant}'?" if meant else " See: moot models list"
            raise Trouble(f"there is no model '{name}' in {file}.{hint}", Exit.NOT_FOUND)
        try:
            edited = toml_edit.without_table(text, ("models", name))
        except toml_edit.NotEditable as error:
            raise Trouble(f"{file}: {error}; take it out yourself.") from None
        _write(file, edited)
        if options.json:
            output.json_line({"name": name, "removed": True})
        else:
            click.echo(f"{name} is no longer in {file}")


@models.command()
@click.argument("reference", metavar="NAME[/MODEL]")
@click.option("--full", is_flag=True, help="Also whether it uses tools and answers in JSON.")
@shows
def test(options: Options, reference: str, full: bool) -> Exit:
    """Ask a model one tiny thing: how long it takes, what it costs, or what is wrong."""
    import asyncio

    from moot.cli.project import model_probe
    from moot.core.errors.models import ModelError

    book = _book()
    try:
        found = asyncio.run(model_probe.probe(book, reference, full))
    except ModelError as error:
        exit_code = Exit.NOT_FOUND if error.code == "model_not_configured" else Exit.FAILED
        if not options.json:
            raise Trouble(error.message, exit_code) from None
        output.show_json({"reference": reference, "error": error.code, "message": error.message})
        return exit_code
    if options.json:
        output.show_json(found)
    else:
        model_probe.show(found)
    return Exit.OK


def _book() -> "Book":
    from moot.clock import SystemClock
    from moot.config.project import book_of
    from moot.config.settings import load, secret

    found = _project()
    try:
        return book_of(found, load(), secret, SystemClock())
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None


def _project() -> "Project | None":
    from moot.config.settings import project

    try:
        return project()
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None


def _file() -> tuple[Path, str]:
    """moot.toml and its text, byte for byte; an empty one where there is none."""
    from moot.config.settings import project_file

    try:
        file = project_file()
    except ValueError as error:
        raise Trouble(str(error), Exit.USAGE) from None
    return file, file.read_bytes().decode() if file.is_file() else ""


def _write(file: Path, text: str) -> None:
    """All of it or nothing, with the rights it had."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_bytes(text.encode())
    if file.exists():
        draft.chmod(file.stat().st_mode & 0o777)
    draft.replace(file)


def _known(found: "Project | None") -> "dict[str, ModelEntry]":
    from moot.agents.models.registry import DEMO, PRESETS

    return {DEMO: PRESETS[DEMO], **(found.models if found else {})}


def _row(name: str, entry: "ModelEntry") -> dict[str, Any]:
    from moot.agents.models.registry import URLS

    return {
        "name": name,
        "provider": entry.provider,
        "model": entry.model,
        "url": entry.url or URLS.get(entry.provider),
        "keyEnv": entry.key_env,
    }


def _key_state(row: dict[str, Any]) -> str:
    from moot.config.settings import secret

    if row["provider"] == "demo":
        return "none needed"
    if row["keyEnv"] is None:
        return "none"
    return row["keyEnv"] if secret(row["keyEnv"]) else f"{row['keyEnv']} (not set)"
