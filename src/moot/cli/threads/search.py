"""``moot search``: whatever was said, asked or decided, by its words."""

import re
from typing import Any

import click

from moot.cli.runs.find import resolve
from moot.cli.shared import output
from moot.cli.shared.client import Api, to_read
from moot.cli.shared.options import Options, talks
from moot.cli.threads.thread import newest_thread

SEARCH = "/v1/host/moot/search"
KINDS = ("thread", "turn", "decision", "run")
OF_THREADS = "thread,turn,decision"
PAGE = 100


def narrowed(command: Any) -> Any:
    """What both commands take."""
    for option in (
        click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True,
                     help="At most so many."),
        click.option("--best", is_flag=True,
                     help="The best of the newest 500 first, not the newest."),
        click.option("--in", "place", metavar="THREAD", help="Only in this thread or run."),
        click.option("--from", "sender", metavar="NAME", help="Only what this participant said."),
        click.argument("words", metavar="TEXT", nargs=-1, required=True),
    ):  # fmt: skip
        command = option(command)
    return talks(command)


@click.command()
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only of this kind.")
@narrowed
def search(options: Options, kinds: tuple[str, ...], words: tuple[str, ...], **how: Any) -> None:
    """Find threads, turns, decisions and runs by their words.

    \b
    TEXT is words, "phrases", beginnings*, and in between
    from:ada   kind:decision   thread:th_…
    """
    _find(options, words, ",".join(kinds) or None, **how)


@click.command("search")
@narrowed
def search_threads(options: Options, words: tuple[str, ...], **how: Any) -> None:
    """Find titles, turns and decisions by their words; TEXT as in `moot search`."""
    _find(options, words, OF_THREADS, **how)


def _find(
    options: Options,
    words: tuple[str, ...],
    kinds: str | None,
    limit: int,
    best: bool,
    place: str | None,
    sender: str | None,
) -> None:
    api = to_read(options)
    query = {
        "q": " ".join(words),
        "kind": kinds,
        "from": sender,
        "thread": _place(api, place) if place is not None else None,
        "order": "best" if best else None,
    }
    found = _pages(api, query, limit)
    if options.json:
        output.show_json(found)
        return
    if not found and not output.on_terminal():
        output.complain(f"Nothing was found. {_wider(words)}".strip())
    columns = ("KIND", "AGE", "WHERE", "TURN", "WHO", "TEXT")
    output.table(columns, map(_row, found), empty="Nothing was found.")


def _wider(asked: tuple[str, ...]) -> str:
    """How a word is found in a longer one, where that was not asked for."""
    found = [word for word in " ".join(asked).split() if word.isalnum()]
    return f"Words are found whole; what begins like one with: {found[-1]}*" if found else ""


def _place(api: Api, given: str) -> str:
    """A run by its id or a prefix of it, or a conversation of one; @last is a thread."""
    if given == "@last":
        return newest_thread(api)
    run = re.split("[~:]", given, maxsplit=1)[0]
    return resolve(api, run) + given.removeprefix(run)


def _pages(api: Api, query: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = None
    while len(found) < limit:
        size = min(PAGE, limit - len(found))
        page = api.get(SEARCH, **query, limit=size, cursor=cursor)
        found += page["results"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return found


def _row(hit: dict[str, Any]) -> list[Any]:
    where = hit.get("threadId", hit["runId"])
    who = str(hit.get("from", "")).removeprefix("host:")
    shown = output.short(where) if "~" not in where else where
    return [hit["kind"], output.age(hit["at"]), shown, hit.get("turnIndex"), who, _marked(hit)]


def _marked(hit: dict[str, Any]) -> str:
    """The part of the text with the words in it; dots where there is more of it."""
    snippet = hit["snippet"]
    return ("… " if snippet["start"] else "") + str(snippet["text"])
