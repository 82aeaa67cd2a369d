"""``moot inbox``: everything that waits for a person, and what comes while one looks."""

import re
import time
from collections.abc import Iterator
from typing import Any

import click

from moot.cli.interrupts.questions import INBOX, MOST, WORDS
from moot.cli.runs.follow import PATIENCE, RETRY
from moot.cli.schedules.wording import missed_ways, with_times
from moot.cli.shared import output
from moot.cli.shared.client import Unreachable, to_read, to_write
from moot.cli.shared.options import Options, talks
from moot.cli.triggers.item import ways as item_ways

#: columns of a terminal on which who asks and what can be done is shown, too
WIDE = 120
#: seconds the server may wait for news before it answers
WAIT = 25

Numbered = tuple[int, dict[str, Any]]


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Stay, and show what comes.")
@talks
def inbox(options: Options, watch: bool) -> None:
    """List what waits for a person, longest first.

    Answer by number or run: moot approve, moot reject, moot answer.
    """
    if watch:
        _watch(options)
        return
    page = to_read(options).get(INBOX, limit=MOST)
    found, notices = list(enumerate(page["items"], 1)), page.get("notices", [])
    if options.json:
        output.show_json([*({"number": number, **item} for number, item in found), *notices])
        return
    if found or not notices:
        _show(found, heading=True)
    for notice in notices:
        click.echo(output.line(_told(notice)))


def _told(notice: dict[str, Any]) -> str:
    """What nobody waits for, and what can be done about it."""
    about = notice.get("workflowId") or notice.get("queue", "")
    ways = "".join(f" · {word}" for word in _ways(notice))
    text = with_times(notice["text"])
    return f"{about}: {text}{ways}" if about else f"{text}{ways}"


def _ways(notice: dict[str, Any]) -> Iterator[str]:
    """The commands that show it or end it."""
    if "scheduleId" in notice:
        yield missed_ways(notice["scheduleId"])
    elif "limit" in notice:
        limit = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", notice["limit"])
        yield f"moot agent set {notice['rosterId'].removeprefix('host:')} {limit}=N"
    elif notice.get("source") == "outbound":
        yield from (
            f"moot webhook {verb} {notice['id']}{'' if verb == 'resume' else ' --all'}"
            for verb in notice["actions"]
        )
    elif "subscriptionId" in notice:
        yield item_ways(notice)


def _show(found: list[Numbered], heading: bool) -> None:
    """The question comes last: on a narrow terminal the last column gives way."""
    import shutil

    wide = not output.on_terminal() or shutil.get_terminal_size().columns >= WIDE
    columns = ("#", "KIND", "AGE", "RUN", *(("ASKED BY", "ACTIONS") if wide else ()), "QUESTION")
    rows = (_row(number, item, wide) for number, item in found)
    output.table(columns, rows, empty="Nothing waits for a person.", heading=heading)


def _row(number: int, item: dict[str, Any], wide: bool) -> list[Any]:
    actions = " ".join(WORDS.get(action, action) for action in item["actions"])
    return [
        number, item["kind"], *_times(item["since"], item.get("deadline")),
        output.short(item["runId"]),
        *((_asker(item), actions) if wide else ()),
        item["question"],
    ]  # fmt: skip


def _asker(item: dict[str, Any]) -> str:
    """``Sally · lead-triage/ok``"""
    place = str(item["askedBy"]).removeprefix("host:")
    return f"{item['member']['persona']} · {place}" if "member" in item else place


def _times(since: str, deadline: str | None) -> list[str | None]:
    """Two columns for programs, one for people."""
    if not output.on_terminal():
        return [since, deadline]
    due = f", due in {output.left(deadline)}" if deadline else ""
    return [f"{output.age(since)}{due}"]


def _watch(options: Options) -> None:
    """A question that is asked again, as a conversation does turn by turn, is a new row; so is a
    notice that says more than before."""
    seen: set[tuple[str, str]] = set()
    headed = False
    for count, page in enumerate(_changes(options)):
        items, notices = page["items"], page.get("notices", [])
        fresh = [
            (number, item)
            for number, item in enumerate(items, 1)
            if (item["id"], item["question"]) not in seen
        ]
        news = [notice for notice in notices if (notice["id"], notice["text"]) not in seen]
        seen = {(item["id"], item["question"]) for item in items}
        seen |= {(notice["id"], notice["text"]) for notice in notices}
        if options.json:
            for number, item in fresh:
                output.json_line({"number": number, **item})
            for notice in news:
                output.json_line(notice)
            continue
        if fresh or not (count or news):
            _show(fresh, heading=not headed)
            headed = True
        for notice in news:
            click.echo(output.line(_told(notice)))


def _changes(options: Options) -> Iterator[dict[str, Any]]:
    """The whole inbox whenever it has changed, also over a restart of the server."""
    api = to_write(options)
    revision, lost_at = -1, None
    while True:
        try:
            page = api.get(INBOX, limit=MOST, revision=revision, wait=WAIT)
        except Unreachable:
            now = time.monotonic()
            lost_at = lost_at or now
            if revision < 0 or now - lost_at > PATIENCE:
                raise
            time.sleep(RETRY)
            continue
        lost_at = None
        if page["revision"] != revision:
            revision = page["revision"]
            yield page
