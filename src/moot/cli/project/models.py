"""``moot models``: list, add, test and remove models. Keys are never stored."""

from pathlib import Path

import click
from msgspec import Struct

from moot.agents.models.registry import DEMO, PRESETS, URLS, ModelRegistry
from moot.agents.project import build_model_registry
from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.options import CommandOptions, json_option
from moot.clock import SystemClock
from moot.config.models import ModelEntry
from moot.config.project import ProjectConfig, ProjectError, parse_project
from moot.config.settings import Settings, load_project, load_settings, project_file, read_secret
from moot.core.errors.models import ModelError
from moot.core.text.nearest import nearest_word


@click.group()
def models() -> None:
    """Models: list, add, test, remove; they are kept in moot.toml."""


@models.command("list")
@json_option
def list_(options: CommandOptions) -> None:
    """List the models that can be named; demo is always there."""
    project = _load_project()
    entries = {DEMO: PRESETS[DEMO], **(project.models if project else {})}
    output.print_list(
        options,
        [_model_row(name, entry) for name, entry in entries.items()],
        ("NAME", "PROVIDER", "MODEL", "ADDRESS", "KEY"),
        lambda row: [row.name, row.provider, row.model, row.url, _key_state(row)],
    )


@models.command()
@click.argument("name")
@click.option("--url", help="Its address, like http://localhost:11434/v1 [the provider's own].")
@click.option("--model", help="What it is called there.")
@click.option("--key-env", metavar="VARIABLE", help="The environment variable that has its key.")
@click.option("--provider", type=click.Choice(["openai", "anthropic", "demo"]),
              help="What it speaks; openai is what most do [openai].")  # fmt: skip
@json_option
def add(options: CommandOptions, name: str, **settings: str | None) -> None:
    """Write a model into moot.toml. Its key stays in the environment."""
    from moot.cli.project import toml_edit

    file, text = _read_project_file()
    project = _load_project()
    if project and name in project.models:
        raise CommandError(
            f"{file} has a model '{name}' already; to replace it, first: moot models remove {name}",
            ExitCode.USAGE,
        )
    if not settings["model"] and settings["provider"] != "demo":
        raise click.UsageError("--model is missing: what the provider calls the model.")
    values = {word: value for word in ("provider", "url", "model", "key_env")
              if (value := settings[word]) is not None}  # fmt: skip
    try:
        edited = toml_edit.add_table(text, ("models", name), values)
        entry = parse_project(edited, file, Settings).models[name]
    except toml_edit.NotEditable as error:
        raise CommandError(f"{file}: {error}; write the table yourself.") from None
    except ProjectError as error:
        raise click.UsageError(str(error)) from None
    _write_project_file(file, edited)
    row = _model_row(name, entry)
    if options.json:
        output.print_json(row)
        return
    click.echo(f"{name} is in {file} now. Try it: moot models test {name}")
    if entry.key_env and not read_secret(entry.key_env):
        click.echo(f"Its key is looked for in {entry.key_env}, which is not set yet.", err=True)


@models.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@json_option
def remove(options: CommandOptions, names: tuple[str, ...]) -> None:
    """Take models out of moot.toml; nothing else in it changes."""
    from moot.cli.project import toml_edit

    for name in names:
        file, text = _read_project_file()
        project = _load_project()
        if project is None or name not in project.models:
            suggestion = nearest_word(name, project.models if project else ())
            hint = f" Did you mean '{suggestion}'?" if suggestion else " See: moot models list"
            raise CommandError(f"there is no model '{name}' in {file}.{hint}", ExitCode.NOT_FOUND)
        try:
            edited = toml_edit.remove_table(text, ("models", name))
        except toml_edit.NotEditable as error:
            raise CommandError(f"{file}: {error}; take it out yourself.") from None
        _write_project_file(file, edited)
        if options.json:
            output.print_json_line({"name": name, "removed": True})
        else:
            click.echo(f"{name} is no longer in {file}")


@models.command()
@click.argument("reference", metavar="NAME[/MODEL]")
@click.option("--full", is_flag=True, help="Also whether it uses tools and answers in JSON.")
@json_option
def test(options: CommandOptions, reference: str, full: bool) -> ExitCode:
    """Ask a model one tiny thing: how long it takes, what it costs, or what is wrong."""
    import asyncio

    from moot.cli.project import model_probe

    registry = _load_registry()
    try:
        result = asyncio.run(model_probe.probe_model(registry, reference, full))
    except ModelError as error:
        exit_code = ExitCode.NOT_FOUND if error.code == "model_not_configured" else ExitCode.FAILED
        if not options.json:
            raise CommandError(error.message, exit_code) from None
        output.print_json({"reference": reference, "error": error.code, "message": error.message})
        return exit_code
    if options.json:
        output.print_json(result)
    else:
        model_probe.print_probe(result)
    return ExitCode.OK


def _load_registry() -> ModelRegistry:
    project_config = _load_project()
    try:
        return build_model_registry(project_config, load_settings(), read_secret, SystemClock())
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None


def _load_project() -> ProjectConfig | None:
    try:
        return load_project()
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None


def _read_project_file() -> tuple[Path, str]:
    """Return moot.toml and its text, byte for byte; the text is empty if there is no file."""
    try:
        file = project_file()
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
    return file, file.read_bytes().decode() if file.is_file() else ""


def _write_project_file(file: Path, text: str) -> None:
    """Write all of it or nothing, and keep the file's mode."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_bytes(text.encode())
    if file.exists():
        draft.chmod(file.stat().st_mode & 0o777)
    draft.replace(file)


class ModelRow(Struct, frozen=True, rename="camel"):
    """A model of the project in a list."""

    name: str
    provider: str
    model: str | None
    url: str | None
    key_env: str | None


def _model_row(name: str, entry: ModelEntry) -> ModelRow:
    url = entry.url or URLS.get(entry.provider)
    return ModelRow(name, entry.provider, entry.model, url, entry.key_env)


def _key_state(row: ModelRow) -> str:
    if row.provider == "demo":
        return "none needed"
    if row.key_env is None:
        return "none"
    return row.key_env if read_secret(row.key_env) else f"{row.key_env} (not set)"
