"""``moot thread`` new, export, import and close, and finding a thread by its name."""

import json
import re
from pathlib import Path
from typing import Any

import click

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading, api_for_writing
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import CommandOptions, server_options
from moot.client.operations import host, threads

FORMATS: tuple[threads.ExportFormat, ...] = ("md", "html", "json", "bundle")


@click.group()
def thread() -> None:
    """Conversations: list, show, follow, steer, close, take along.

    A thread is named by its id (run:node:attempt, the run also by a unique prefix), by its run
    when that has only one, or as @last: the newest of those that `thread list` lists.
    """


@thread.command()
@click.argument("name", metavar="THREAD")
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="md", show_default=True,
    help="Minutes (md, html, json), or what `thread import` takes (bundle).",
)  # fmt: skip
@click.option("-o", "--output", "target", metavar="FILE", help="Write there, not to stdout.")
@click.option("--force", is_flag=True, help="Write over a FILE that is there.")
@server_options
def export(
    options: CommandOptions,
    name: str,
    form: threads.ExportFormat,
    target: str | None,
    force: bool,
) -> None:
    """Write a thread's minutes or bundle. --json is -f json."""
    if target is not None and not force and Path(target).exists():
        raise click.UsageError(f"{target} is there already; --force writes over it.")
    api = api_for_reading(options)
    form = "json" if options.json else form
    thread_id = find_thread(api, name)
    body = api.send(threads.export_thread(thread_id, form))
    if target is None:
        output.write_bytes(body)
    else:
        try:
            Path(target).write_bytes(body)
        except OSError as error:
            raise click.UsageError(f"{target} cannot be written: {error.strerror}.") from None
        click.echo(f"{thread_id} written to {target} ({len(body)} bytes).", err=True)


@thread.command("import")
@click.argument("file", metavar="FILE")
@server_options
def import_(options: CommandOptions, file: str) -> None:
    """Bring in a thread that `thread export -f bundle` wrote; - is stdin."""
    api, bundle = api_for_writing(options), read_bytes(file)
    try:
        imported = api.send(threads.import_thread(bundle))
    except CommandError as error:
        raise _already_here_error(api, bundle) or error from None
    output.print_answer(options, imported, imported.thread_id)


def _already_here_error(api: Api, bundle: bytes) -> CommandError | None:
    """Return an error if the import failed because the thread is here already."""
    try:
        name = str(json.loads(bundle.partition(b"\n")[0])["threadId"])
        api.send(threads.get_thread(name))
    except (ValueError, KeyError, TypeError, CommandError):
        return None
    return CommandError(f"{name} is here already: {command_hint(f'thread show {name}')}")


@thread.command()
@click.argument("name", metavar="THREAD")
@click.option("--decision", metavar="TEXT", help="What was decided.")
@click.option("--vote", "votes", multiple=True, metavar="NAME=VOTE", help="Who voted what.")
@click.option("--dissent", multiple=True, metavar="NAME=TEXT", help="Who disagreed, and why.")
@click.option("--cite", "cited", type=int, multiple=True, metavar="N", help="A turn it rests on.")
@click.option(
    "--action", "actions", multiple=True, metavar="[OWNER:] TEXT", help="What is to be done."
)
@server_options
def close(
    options: CommandOptions, name: str, decision: str | None, votes: tuple[str, ...], **rest: Any
) -> None:
    """Close a thread, with or without a decision.

    \b
    moot thread close run_7q2k --decision "Pilot +8 %" --vote ada=yes --vote bo=no \\
        --dissent "bo=too early" --cite 6 --action "cy: measure churn"
    """
    decision_body = None
    if decision is not None:
        decision_body = _decision_body(decision, votes, **rest)
    elif votes or any(rest.values()):
        raise click.UsageError("--vote, --dissent, --cite and --action go with --decision.")
    api = api_for_writing(options)
    thread_id = find_thread(api, name)
    answer = api.send(threads.close_thread(thread_id, decision_body))
    adopted = f' with the decision "{output.shorten(decision)}"' if decision is not None else ""
    minutes = command_hint(f"thread export {thread_id}")
    output.print_answer(options, answer, f"{thread_id} closed{adopted}. Minutes: {minutes}")


def _decision_body(
    text: str,
    votes: tuple[str, ...],
    dissent: tuple[str, ...],
    cited: tuple[int, ...],
    actions: tuple[str, ...],
) -> dict[str, object]:
    return {
        "text": text,
        "votes": [{"by": name, "vote": vote} for name, vote in _parse_pairs("--vote", votes)],
        "dissent": [{"by": name, "text": why} for name, why in _parse_pairs("--dissent", dissent)],
        "citedTurns": list(cited),
        "actionItems": [_parse_action(item) for item in actions],
    }


def _parse_pairs(option: str, words: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise click.UsageError(f"{option} {word}: write NAME=TEXT.")
        pairs.append((name.strip(), text.strip()))
    return pairs


def _parse_action(item: str) -> dict[str, str]:
    """Split ``owner: text``. An owner is one word before a colon and a space."""
    owner, colon, text = item.partition(": ")
    if colon and owner and " " not in owner.strip() and text.strip():
        return {"text": text.strip(), "owner": owner.strip()}
    return {"text": item}


def newest_thread(api: Api) -> str:
    """Return the thread that was started last among the listed ones."""
    newest = api.send(threads.list_threads(limit=1)).threads
    if not newest:
        hint = command_hint("thread new TITLE --with A,B")
        raise CommandError(f"there is no thread yet. Begin one: {hint}", ExitCode.NOT_FOUND)
    return newest[0].thread_id


def find_thread(api: Api, text: str) -> str:
    """Return the thread's full id. @last is the newest thread."""
    if text == "@last":
        return newest_thread(api)
    run, mark, rest = re.fullmatch(r"([^~:]*)([~:]?)(.*)", text, re.S).groups()  # type: ignore[union-attr]
    run_id = resolve_run_id(api, run, "thread")
    if mark:
        return f"{run_id}{mark}{rest}"
    try:
        return api.send(threads.get_thread(run_id)).thread_id
    except CommandError as error:
        if several := error.details.get("threadIds"):
            message = f"{run_id} has several threads: {', '.join(several)}."
            raise CommandError(message, ExitCode.USAGE) from error
        raise


def _parse_names(ctx: click.Context, param: click.Parameter, text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@click.command()
@click.argument("title")
@click.option("--with", "members", default="", metavar="A,B", callback=_parse_names,
              help="Agents and programs that take part from the beginning.")  # fmt: skip
@click.option("--say", "opening", metavar="TEXT", help="What you begin it with.")
@server_options
def new(options: CommandOptions, title: str, members: list[str], opening: str | None) -> None:
    """Begin a thread. Prints its id.

    \b
    moot thread new "Q1 prices" --with ada,bo --say "Do we raise them?"
    """
    if not title.strip():
        raise click.UsageError("say what it is about: moot thread new TITLE.")
    api = api_for_writing(options)
    created = api.send(threads.begin_thread(title, members, opening=opening))
    output.print_answer(options, created, created.thread_id)
    for name in members:
        warn_if_unknown(api, name)


def warn_if_unknown(api: Api, name: str) -> None:
    """Warn if the host does not know the participant, because then it does not speak for it."""
    if (warning := unknown_agent_warning(api, name)) is not None:
        output.print_error(warning)


def unknown_agent_warning(api: Api, name: str) -> str | None:
    """Return None for a participant that the host may know."""
    message = missing_agent_message(api, name)
    return message and f"{message} It is waited for, and speaks with a key of its own."


def missing_agent_message(api: Api, name: str) -> str | None:
    """Return a message with the nearest name, or None.

    None is for an agent of the host, and for a name with a host in it.
    """
    if ":" in name.removeprefix("host:"):
        return None
    try:
        api.send(host.get_agent(name.removeprefix("host:")))
    except CommandError as error:
        return str(error) if error.exit_code is ExitCode.NOT_FOUND else None
    return None
