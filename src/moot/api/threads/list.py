"""A list of threads: what its rows say; with ``about`` who takes part and what was said last."""

from typing import Any

from moot.agents.prompts.fencing import words
from moot.api.http.request import Request
from moot.api.search import read_marks
from moot.api.threads.view import decided
from moot.core.events import iso
from moot.core.state.conversation import only_titled, turns_said
from moot.core.threads.agent_bridge import handle
from moot.engine.replay.import_log import TAKEN_IN
from moot.engine.threads import transcript
from moot.engine.threads.transcript import Extent
from moot.engine.workflows.built_in import TALK
from moot.store.protocol import RunRow

#: characters of what was said last
BRIEF = 160


async def rows(request: Request, found: list[RunRow], put_away: bool) -> list[dict[str, Any]]:
    """As many as were found, in their order."""
    extents = {row.run_id: _extent(row) for row in found}
    unread = await read_marks.unread(request, extents)
    told = [{**_row(row, put_away), "unread": unread[row.run_id]} for row in found]
    if request.query.get("about") == "true":
        told = [{**each, **await _about(request, extents[each["runId"]])} for each in told]
    return told


def _extent(row: RunRow) -> Extent:
    return Extent(
        tenant=row.tenant,
        run_id=row.run_id,
        node_id=TALK,
        turns=-1 if row.turns is None else row.turns,
        length=row.next_sequence,
        first=row.fork_seq or 0,
    )


def _row(row: RunRow, put_away: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "threadId": row.run_id,
        "runId": row.run_id,
        "title": row.title or "",
        "open": row.ended_at is None,
        "archived": put_away,
        "turns": row.turns or 0,
        "lastSequence": row.next_sequence - 1,
        "createdAt": iso(row.created_at * 1000),
        "updatedAt": iso(row.updated_at * 1000),
    }
    if row.fork_of is None:
        return told
    return {**told, "forkedFrom": row.fork_of, "forkNote": row.fork_note}


async def _about(request: Request, where: Extent) -> dict[str, Any]:
    services = request.services
    run = (await services.host.view(where.tenant, where.run_id)).run
    talk = run.conversations.get(TALK)
    if talk is None:
        return {}
    members = dict.fromkeys([*(talk.roster or ()), *talk.state.members])
    told: dict[str, Any] = {
        "paused": talk.state.paused,
        "createdBy": run.person,
        "turnCount": turns_said(run, talk),
        "participants": [handle(name) for name in members],
    }
    if await services.store.record(where.tenant, TAKEN_IN, where.run_id) is not None:
        told["imported"] = True
    if (decision := decided(run, talk)) is not None:
        told["decision"] = _brief(decision.text)
        if not decision.adopted:
            told["adopted"] = False
    last = await transcript.newest(services.store, where)
    if last is not None and not (last.index == 0 and only_titled(run)):
        told["last"] = {"from": handle(last.speaker), "content": _brief(words(last.content))}
    return told


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "…"
