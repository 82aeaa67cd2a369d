"""``moot thread``: take a conversation along, bring one back, close it with a decision."""

import json
import re
from pathlib import Path
from typing import Any

import click

from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import Api, path_of, refusal, to_read, to_write
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.shared.inputs import read_bytes
from moot.cli.shared.options import Options, talks

FORMATS = ("md", "html", "json", "bundle")
THREADS = "/v1/host/moot/threads"
ANYTHING = {"Accept": "*/*"}


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
@talks
def export(options: Options, name: str, form: str, target: str | None, force: bool) -> None:
    """Write a thread's minutes or bundle. --json is -f json."""
    if target is not None and not force and Path(target).exists():
        raise click.UsageError(f"{target} is there already; --force writes over it.")
    api = to_read(options)
    form = "json" if options.json else form
    thread_id = find_thread(api, name)
    answer = api.door.call("GET", f"{_path(thread_id)}/export?format={form}", None, ANYTHING)
    if answer.status >= 400:
        raise refusal(answer, api.door.place)
    if target is None:
        output.write(answer.body)
    else:
        _write(Path(target), answer.body)
        click.echo(f"{thread_id} written to {target} ({len(answer.body)} bytes).", err=True)


def _write(file: Path, body: bytes) -> None:
    try:
        file.write_bytes(body)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}.") from None


@thread.command("import")
@click.argument("file", metavar="FILE")
@talks
def import_(options: Options, file: str) -> None:
    """Bring in a thread that `thread export -f bundle` wrote; - is stdin."""
    api, bundle = to_write(options), read_bytes(file)
    try:
        answer = api.ask("POST", f"{THREADS}:import", bundle)
    except Trouble as trouble:
        raise _known(api, bundle) or trouble from None
    if options.json:
        output.show_json(answer)
    else:
        click.echo(output.line(answer["threadId"]))


def _known(api: Api, bundle: bytes) -> Trouble | None:
    """That the thread is here already, if that is why it cannot be brought in."""
    try:
        name = str(json.loads(bundle.partition(b"\n")[0])["threadId"])
        api.get(_path(name))
    except (ValueError, KeyError, TypeError, Trouble):
        return None
    return Trouble(f"{name} is here already: {way(f'thread show {name}')}")


@thread.command()
@click.argument("name", metavar="THREAD")
@click.option("--decision", metavar="TEXT", help="What was decided.")
@click.option("--vote", "votes", multiple=True, metavar="NAME=VOTE", help="Who voted what.")
@click.option("--dissent", multiple=True, metavar="NAME=TEXT", help="Who disagreed, and why.")
@click.option("--cite", "cited", type=int, multiple=True, metavar="N", help="A turn it rests on.")
@click.option(
    "--action", "actions", multiple=True, metavar="[OWNER:] TEXT", help="What is to be done."
)
@talks
def close(
    options: Options, name: str, decision: str | None, votes: tuple[str, ...], **rest: Any
) -> None:
    """Close a thread, with or without a decision.

    \b
    moot thread close run_7q2k --decision "Pilot +8 %" --vote ada=yes --vote bo=no \\
        --dissent "bo=too early" --cite 6 --action "cy: measure churn"
    """
    body = {}
    if decision is not None:
        body["decision"] = _decision(decision, votes, **rest)
    elif votes or any(rest.values()):
        raise click.UsageError("--vote, --dissent, --cite and --action go with --decision.")
    api = to_write(options)
    thread_id = find_thread(api, name)
    answer = api.post(f"{_path(thread_id)}:close", body)
    if options.json:
        output.show_json(answer)
    else:
        decided = f' with the decision "{output.brief(decision)}"' if decision is not None else ""
        click.echo(f"{thread_id} closed{decided}. Minutes: {way(f'thread export {thread_id}')}")


def _decision(
    text: str,
    votes: tuple[str, ...],
    dissent: tuple[str, ...],
    cited: tuple[int, ...],
    actions: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "text": text,
        "votes": [{"by": who, "vote": vote} for who, vote in _pairs("--vote", votes)],
        "dissent": [{"by": who, "text": why} for who, why in _pairs("--dissent", dissent)],
        "citedTurns": list(cited),
        "actionItems": [_action(item) for item in actions],
    }


def _pairs(option: str, given: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or not name.strip() or not text.strip():
            raise click.UsageError(f"{option} {word}: write NAME=TEXT.")
        found.append((name.strip(), text.strip()))
    return found


def _action(item: str) -> dict[str, str]:
    """``owner: text`` has an owner: one word before a colon and a space."""
    owner, colon, text = item.partition(": ")
    if colon and owner and " " not in owner.strip() and text.strip():
        return {"text": text.strip(), "owner": owner.strip()}
    return {"text": item}


def _path(thread_id: str) -> str:
    return path_of("v1", "host", "moot", "threads", thread_id)


def newest_thread(api: Api) -> str:
    """Of those that are listed: the one that was begun last."""
    found = api.get(THREADS, limit=1)["threads"]
    if not found:
        begin = way("thread new TITLE --with A,B")
        raise Trouble(f"there is no thread yet. Begin one: {begin}", Exit.NOT_FOUND)
    return str(found[0]["threadId"])


def find_thread(api: Api, given: str) -> str:
    """The thread's whole id. @last is the newest thread here, whatever has run since."""
    if given == "@last":
        return newest_thread(api)
    run, mark, rest = re.fullmatch(r"([^~:]*)([~:]?)(.*)", given, re.S).groups()  # type: ignore[union-attr]
    run_id = resolve(api, run, "thread")
    if mark:
        return f"{run_id}{mark}{rest}"
    try:
        return str(api.get(_path(run_id))["threadId"])
    except Trouble as trouble:
        if several := trouble.details.get("threadIds"):
            said = f"{run_id} has several threads: {', '.join(several)}."
            raise Trouble(said, Exit.USAGE) from trouble
        raise
