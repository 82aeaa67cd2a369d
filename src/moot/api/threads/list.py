"""Rows of the list of threads; with ``about`` also participants and last turn."""

from msgspec import UNSET
from msgspec.structs import replace

from moot.agents.prompts.fencing import content_text
from moot.api.http.request import Request
from moot.api.search import read_marks
from moot.api.threads.view import closing_decision
from moot.core.events import iso
from moot.core.state.run import Run
from moot.core.state.titles import count_turns, is_opened_by_title
from moot.core.text.names import handle_from_name
from moot.engine.replay.import_log import IMPORT_RECORD
from moot.engine.threads import transcript
from moot.engine.threads.transcript import ConversationExtent
from moot.engine.workflows.built_in import TALK
from moot.store.protocol import RunIndexRow
from moot.wire.threads import LastTurn, ThreadSummary

#: Characters of the last turn and of the decision.
LONGEST_QUOTE = 160


async def thread_rows(
    request: Request, rows: list[RunIndexRow], archived: bool
) -> list[ThreadSummary]:
    """Return one view for each row, in the same order."""
    extents = {row.run_id: _row_extent(row) for row in rows}
    unread = await read_marks.count_unread(request, extents)
    views = [_row_view(row, archived, unread[row.run_id]) for row in rows]
    if request.query.get("about") == "true":
        views = [await _add_details(request, view, extents[view.run_id]) for view in views]
    return views


def _row_extent(row: RunIndexRow) -> ConversationExtent:
    return ConversationExtent(
        tenant=row.tenant,
        run_id=row.run_id,
        node_id=TALK,
        turns=-1 if row.turns is None else row.turns,
        length=row.next_sequence,
        first=row.fork_seq or 0,
    )


def _row_view(row: RunIndexRow, archived: bool, unread: int) -> ThreadSummary:
    return ThreadSummary(
        thread_id=row.run_id,
        run_id=row.run_id,
        title=row.title or "",
        open=row.ended_at is None,
        archived=archived,
        turns=row.turns or 0,
        last_sequence=row.next_sequence - 1,
        created_at=iso(row.created_at * 1000),
        updated_at=iso(row.updated_at * 1000),
        unread=unread,
        forked_from=row.fork_of,
        fork_note=UNSET if row.fork_of is None else row.fork_note,
    )


async def _add_details(
    request: Request, view: ThreadSummary, where: ConversationExtent
) -> ThreadSummary:
    services = request.services
    run = (await services.host.view(where.tenant, where.run_id)).run
    conversation = run.conversations.get(TALK)
    if conversation is None:
        return view
    members = dict.fromkeys([*(conversation.roster or ()), *conversation.state.members])
    mark = await services.store.record(where.tenant, IMPORT_RECORD, where.run_id)
    decision = closing_decision(run, conversation)
    return replace(
        view,
        paused=conversation.state.paused,
        created_by=run.person,
        turn_count=count_turns(run, conversation),
        participants=[handle_from_name(name) for name in members],
        imported=mark is not None,
        decision=None if decision is None else _shorten(decision.text),
        adopted=None if decision is None or decision.adopted else False,
        last=await _last_turn(request, run, where),
    )


async def _last_turn(request: Request, run: Run, where: ConversationExtent) -> LastTurn | None:
    last = await transcript.newest_turn(request.services.store, where)
    if last is None or (last.index == 0 and is_opened_by_title(run)):
        return None
    text = _shorten(content_text(last.content))
    return LastTurn(speaker=handle_from_name(last.speaker), content=text)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
