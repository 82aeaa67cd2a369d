"""``moot search``: find turns, decisions, threads and runs by their words."""

import functools
import re
from collections.abc import Callable
from typing import Any

import click

from moot.cli.runs.find import resolve_run_id
from moot.cli.shared import output
from moot.cli.shared.client import Api, api_for_reading
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.threads.thread import newest_thread
from moot.client.http.operation import PreparedCall
from moot.client.operations.search import SearchKind, find_texts
from moot.wire.search import SearchResult, SearchResultList

KINDS: tuple[SearchKind, ...] = ("thread", "turn", "decision", "run")
THREAD_KINDS = KINDS[:3]
PAGE_SIZE = 100


def search_options(command: Any) -> Any:
    """Add the options that both commands take."""
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
    return server_options(command)


@click.command()
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only of this kind.")
@search_options
def search(
    options: CommandOptions, kinds: tuple[SearchKind, ...], words: tuple[str, ...], **how: Any
) -> None:
    """Find threads, turns, decisions and runs by their words.

    \b
    TEXT is words, "phrases", beginnings*, and in between
    from:ada   kind:decision   thread:th_…
    """
    _print_results(options, words, kinds, **how)


@click.command("search")
@search_options
def search_threads(options: CommandOptions, words: tuple[str, ...], **how: Any) -> None:
    """Find titles, turns and decisions by their words; TEXT as in `moot search`."""
    _print_results(options, words, THREAD_KINDS, **how)


def _print_results(
    options: CommandOptions,
    words: tuple[str, ...],
    kinds: tuple[SearchKind, ...],
    limit: int,
    best: bool,
    place: str | None,
    sender: str | None,
) -> None:
    api = api_for_reading(options)
    thread_id = _resolve_place(api, place) if place is not None else None
    find = functools.partial(find_texts, " ".join(words), kinds=kinds, sender=sender,
                             thread_id=thread_id, order="best" if best else None)  # fmt: skip
    hits = _read_results(api, find, limit)
    if not hits and not options.json and not output.on_terminal():
        output.print_error(f"Nothing was found. {_prefix_hint(words)}".strip())
    columns = ("KIND", "AGE", "WHERE", "TURN", "WHO", "TEXT")
    output.print_list(options, hits, columns, _hit_row, "Nothing was found.")


def _prefix_hint(query_words: tuple[str, ...]) -> str:
    """Return a hint that only whole words are found, unless the query is special."""
    plain_words = [word for word in " ".join(query_words).split() if word.isalnum()]
    hint = "Words are found whole; what begins like one with:"
    return f"{hint} {plain_words[-1]}*" if plain_words else ""


def _resolve_place(api: Api, text: str) -> str:
    """Return a run by id or prefix, or one of its conversations; @last is a thread."""
    if text == "@last":
        return newest_thread(api)
    run = re.split("[~:]", text, maxsplit=1)[0]
    return resolve_run_id(api, run) + text.removeprefix(run)


def _read_results(
    api: Api, find: Callable[..., PreparedCall[SearchResultList]], limit: int
) -> list[SearchResult]:
    hits: list[SearchResult] = []
    cursor = None
    while len(hits) < limit:
        page = api.send(find(limit=min(PAGE_SIZE, limit - len(hits)), cursor=cursor))
        hits += page.results
        cursor = page.next_cursor
        if cursor is None:
            break
    return hits


def _hit_row(hit: SearchResult) -> list[Any]:
    where = hit.thread_id or hit.run_id
    sender = (hit.sender or "").removeprefix("host:")
    place = output.short_id(where) if "~" not in where else where
    text = ("… " if hit.snippet.start else "") + hit.snippet.text
    return [hit.kind, output.format_age(hit.at), place, hit.turn_index, sender, text]
