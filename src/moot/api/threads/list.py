"""Rows of the list of threads; with ``about`` also participants and last turn."""

from typing import Any

from moot.agents.prompts.fencing import content_text
from moot.api.http.request import Request
from moot.api.search import read_marks
from moot.api.threads.view import closing_decision
from moot.core.events import iso
from moot.core.state.titles import count_turns, is_opened_by_title
from moot.core.threads.agent_bridge import handle_from_name
from moot.engine.replay.import_log import IMPORT_RECORD
from moot.engine.threads import transcript
from moot.engine.threads.transcript import ConversationExtent
from moot.engine.workflows.built_in import TALK
from moot.store.protocol import RunIndexRow

#: Characters of the last turn and of the decision.
LONGEST_QUOTE = 160


async def thread_rows(
    request: Request, rows: list[RunIndexRow], archived: bool
) -> list[dict[str, Any]]:
    """Return one view for each row, in the same order."""
    extents = {row.run_id: _row_extent(row) for row in rows}
    unread = await read_marks.count_unread(request, extents)
    views = [{**_row_view(row, archived), "unread": unread[row.run_id]} for row in rows]
    if request.query.get("about") == "true":
        views = [{**each, **await _row_details(request, extents[each["runId"]])} for each in views]
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


def _row_view(row: RunIndexRow, archived: bool) -> dict[str, Any]:
    view: dict[str, Any] = {
        "threadId": row.run_id,
        "runId": row.run_id,
        "title": row.title or "",
        "open": row.ended_at is None,
        "archived": archived,
        "turns": row.turns or 0,
        "lastSequence": row.next_sequence - 1,
        "createdAt": iso(row.created_at * 1000),
        "updatedAt": iso(row.updated_at * 1000),
    }
    if row.fork_of is None:
        return view
    return {**view, "forkedFrom": row.fork_of, "forkNote": row.fork_note}


async def _row_details(request: Request, where: ConversationExtent) -> dict[str, Any]:
    services = request.services
    run = (await services.host.view(where.tenant, where.run_id)).run
    conversation = run.conversations.get(TALK)
    if conversation is None:
        return {}
    members = dict.fromkeys([*(conversation.roster or ()), *conversation.state.members])
    details: dict[str, Any] = {
        "paused": conversation.state.paused,
        "createdBy": run.person,
        "turnCount": count_turns(run, conversation),
        "participants": [handle_from_name(name) for name in members],
    }
    if await services.store.record(where.tenant, IMPORT_RECORD, where.run_id) is not None:
        details["imported"] = True
    if (decision := closing_decision(run, conversation)) is not None:
        details["decision"] = _shorten(decision.text)
        if not decision.adopted:
            details["adopted"] = False
    last = await transcript.newest_turn(services.store, where)
    if last is not None and not (last.index == 0 and is_opened_by_title(run)):
        details["last"] = {
            "from": handle_from_name(last.speaker),
            "content": _shorten(content_text(last.content)),
        }
    return details


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
