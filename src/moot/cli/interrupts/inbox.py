"""``moot inbox``: list everything that waits for a person, and watch for more."""

import re
import time
from collections.abc import Iterator

import click
from msgspec import to_builtins

from moot.cli.interrupts.questions import ACTION_NAMES, MAX_ITEMS
from moot.cli.runs.follow import PATIENCE_SECONDS
from moot.cli.schedules.wording import localize_times, missed_fire_hint
from moot.cli.shared import output
from moot.cli.shared.client import ServerUnreachable, api_for_reading, api_for_writing
from moot.cli.shared.options import CommandOptions, server_options
from moot.cli.shared.streams import RETRY_SECONDS
from moot.cli.triggers.item import notice_hint
from moot.client.operations import runs
from moot.wire.interrupts import Inbox, InboxItem, InboxNotice

#: terminal width from which the asker and the actions are shown, too
WIDE_COLUMNS = 120
#: seconds that the server may wait for a change before it answers
WAIT_SECONDS = 25

NumberedItem = tuple[int, InboxItem]


@click.command()
@click.option("-w", "--watch", is_flag=True, help="Stay, and show what comes.")
@server_options
def inbox(options: CommandOptions, watch: bool) -> None:
    """List what waits for a person, longest first.

    Answer by number or run: moot approve, moot reject, moot answer.
    """
    if watch:
        _watch_inbox(options)
        return
    page = api_for_reading(options).send(runs.get_inbox(limit=MAX_ITEMS))
    items, notices = list(enumerate(page.items, 1)), page.notices
    if options.json:
        output.print_json([*(_item_json(*item) for item in items), *notices])
        return
    if items or not notices:
        _print_items(items, heading=True)
    for notice in notices:
        click.echo(output.safe_line(_notice_line(notice)))


def _item_json(number: int, item: InboxItem) -> dict[str, object]:
    return {"number": number, **to_builtins(item)}


def _notice_line(notice: InboxNotice) -> str:
    """Return a notice with the commands that deal with it."""
    about = notice.workflow_id or notice.queue
    commands = "".join(f" · {word}" for word in _notice_commands(notice))
    text = localize_times(notice.text)
    return f"{about}: {text}{commands}" if about else f"{text}{commands}"


def _notice_commands(notice: InboxNotice) -> Iterator[str]:
    """Yield the commands that show the cause of a notice or end it."""
    if notice.schedule_id is not None:
        yield missed_fire_hint(notice.schedule_id)
    elif notice.limit is not None:
        limit = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", notice.limit)
        yield f"moot agent set {(notice.roster_id or '').removeprefix('host:')} {limit}=N"
    elif notice.source == "outbound":
        yield from (
            f"moot webhook {verb} {notice.id}{'' if verb == 'resume' else ' --all'}"
            for verb in notice.actions
        )
    elif notice.subscription_id is not None:
        yield notice_hint(notice)


def _print_items(items: list[NumberedItem], heading: bool) -> None:
    """Print the items. The question is last, because a narrow terminal cuts the last column."""
    import shutil

    wide = not output.on_terminal() or shutil.get_terminal_size().columns >= WIDE_COLUMNS
    columns = ("#", "KIND", "AGE", "RUN", *(("ASKED BY", "ACTIONS") if wide else ()), "QUESTION")
    rows = (_item_row(number, item, wide) for number, item in items)
    output.print_table(columns, rows, empty="Nothing waits for a person.", heading=heading)


def _item_row(number: int, item: InboxItem, wide: bool) -> list[object]:
    actions = " ".join(ACTION_NAMES.get(action, action) for action in item.actions)
    place = item.asked_by.removeprefix("host:")
    asker = f"{item.member.persona} · {place}" if item.member else place
    return [
        number, item.kind, *_time_columns(item.since, item.deadline),
        output.short_id(item.run_id),
        *((asker, actions) if wide else ()),
        item.question,
    ]  # fmt: skip


def _time_columns(since: str, deadline: str | None) -> list[str | None]:
    """Return two columns for a pipe, one for a terminal."""
    if not output.on_terminal():
        return [since, deadline]
    due = f", due in {output.format_span(-output.seconds_since(deadline))}" if deadline else ""
    return [f"{output.format_age(since)}{due}"]


def _watch_inbox(options: CommandOptions) -> None:
    """Print new items and notices. A question that is asked again, or a changed notice, is new."""
    printed: set[tuple[str, str]] = set()
    headed = False
    for count, page in enumerate(_inbox_changes(options)):
        items, notices = page.items, page.notices
        new_items = [
            (number, item)
            for number, item in enumerate(items, 1)
            if (item.id, item.question) not in printed
        ]
        new_notices = [notice for notice in notices if (notice.id, notice.text) not in printed]
        printed = {(item.id, item.question) for item in items}
        printed |= {(notice.id, notice.text) for notice in notices}
        if options.json:
            for number, item in new_items:
                output.print_json_line(_item_json(number, item))
            for notice in new_notices:
                output.print_json_line(notice)
            continue
        if new_items or not (count or new_notices):
            _print_items(new_items, heading=not headed)
            headed = True
        for notice in new_notices:
            click.echo(output.safe_line(_notice_line(notice)))


def _inbox_changes(options: CommandOptions) -> Iterator[Inbox]:
    """Yield the whole inbox whenever it changes, across restarts of the server."""
    api = api_for_writing(options)
    revision, lost_at = -1, None
    while True:
        try:
            page = api.send(runs.get_inbox(limit=MAX_ITEMS, revision=revision, wait=WAIT_SECONDS))
        except ServerUnreachable:
            now = time.monotonic()
            lost_at = lost_at or now
            if revision < 0 or now - lost_at > PATIENCE_SECONDS:
                raise
            time.sleep(RETRY_SECONDS)
            continue
        lost_at = None
        if page.revision != revision:
            revision = page.revision
            yield page
