"""The inbox: open interrupts and notices, and who asks each question."""

from typing import Any

from moot.agents.prompts.fencing import content_text
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import notices
from moot.api.interrupts.answers import question_view
from moot.api.runs.event_stream import seconds_until_expiry
from moot.core.errors import RunNotFound
from moot.core.events import iso
from moot.core.interrupts.inbox import question_item
from moot.core.state import awaited_people
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.threads.agent_bridge import handle_from_name
from moot.engine.streams.hub import inbox_channel
from moot.engine.threads.transcript import StoredConversation, read_turns
from moot.store.protocol import InboxRow

#: The kind of inbox items that come from conversations.
CONVERSATION = "conversation"
#: Characters of a quoted turn.
LONGEST_QUOTE = 300

#: Seconds. Proxies usually allow a silent connection longer than this.
LONGEST_WAIT = 30


async def describe_asker(request: Request, row: InboxRow) -> dict[str, Any]:
    """Return who asks in a conversation, whom, and what; for other items the member whose run asks.

    The words are only in the log. The result is empty when the question was just answered.
    """
    services = request.services
    if row.kind != CONVERSATION:
        return await _asking_member(request, row)
    try:
        run = (await services.host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return {}
    conversation = run.conversations.get(row.node_id)
    if conversation is None or not conversation.asked:
        return {}
    index, _ = awaited_people.longest_awaited(conversation.asked)
    turns = await read_turns(StoredConversation(services.store, run, conversation), index, index, 1)
    if not turns:
        return {}
    [turn], title = turns, current_title(run, conversation)
    people = ", ".join(map(handle_from_name, conversation.asked))
    text = " ".join(content_text(turn.content).split())
    text = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
    question = f"{handle_from_name(turn.speaker)} asks {people} in “{title}”: {text}"
    return {"question": question, "askedBy": turn.speaker, "title": title, "turnIndex": index}


async def _asking_member(request: Request, row: InboxRow) -> dict[str, Any]:
    """Return the standing agent of the run, under the name it had when the run began."""
    run_row = await request.services.store.find_run(row.tenant, row.run_id)
    if run_row is None or run_row.member is None:
        return {}
    try:
        member = (await request.services.host.view(row.tenant, row.run_id)).run.member
    except RunNotFound:
        return {}
    if member is None:
        return {}
    return {"member": {"rosterId": member.roster_id, "persona": member.persona}}


async def list_run_interrupts(request: Request) -> Reply:
    """List the open questions of a run and who answered the others."""
    run = (await request.services.host.view(request.caller.tenant, request.params["run_id"])).run
    open_interrupts = [
        _open_interrupt_view(run, node_id, interrupt)
        for node_id, interrupt in run.interrupts.items()
    ]
    answered = [
        {"nodeId": node_id, "by": last.by, "at": iso(last.at * 1000), "action": last.action}
        for node_id, last in run.answered.items()
        if node_id not in run.interrupts
    ]
    body = {
        "runId": run.run_id,
        "status": run.status.value,
        "open": open_interrupts,
        "answered": answered,
    }
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _open_interrupt_view(run: Run, node_id: str, interrupt: Interrupt) -> dict[str, Any]:
    item = question_item(run, node_id, interrupt)
    body = {
        **question_view(run.run_id, node_id, interrupt),
        "question": item.question,
        "actions": item.actions,
        "askedBy": item.asked_by,
    }
    if interrupt.votes:
        body["votes"] = interrupt.votes
    if interrupt.due is not None:
        body["deadline"] = iso(interrupt.due * 1000)
    return body


async def read_inbox(request: Request) -> Reply:
    """List the inbox.

    With ``wait``, answer when the revision changes from the one the caller knows.
    """
    limit = request.integer("limit", 100, 1, 1000)
    known_revision = request.integer("revision", -1, -1, 2**53)
    wait = request.integer("wait", 0, 0, LONGEST_WAIT)
    tenant, store, hub = request.caller.tenant, request.services.store, request.services.host.hub
    # subscribe before reading, so that no change is missed
    reader = hub.subscribe(inbox_channel(tenant), holder=request.caller.id)
    try:
        rows, revision = await store.inbox(tenant, limit)
        if wait and revision == known_revision:
            await reader.wait(min(wait, seconds_until_expiry(request)))
            rows, revision = await store.inbox(tenant, limit)
    finally:
        hub.unsubscribe(inbox_channel(tenant), reader)
    items = [_inbox_item(row) | await describe_asker(request, row) for row in rows]
    answer = {"items": items, "revision": revision}
    return Reply({**answer, **await notices.list_notices(request)})


def _inbox_item(row: InboxRow) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": row.item_id,
        "runId": row.run_id,
        "nodeId": row.node_id,
        "kind": row.kind,
        "question": row.question,
        "actions": row.actions,
        "askedBy": row.asked_by,
        "since": iso(row.since * 1000),
    }
    if row.deadline is not None:
        item["deadline"] = iso(row.deadline * 1000)
    return item


INBOX_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/inbox", call=read_inbox, scope="runs:read",
        summary="Everything that waits for a person, longest first",
        query={
            "limit": ({"type": "integer", "minimum": 1, "maximum": 1000}, "rows at most"),
            "revision": ({"type": "integer", "minimum": -1}, "the revision already known"),
            "wait": ({"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
                     "seconds to wait for another revision"),
        },
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/runs/{run_id}/interrupts", call=list_run_interrupts,
        scope="runs:read", summary="What a run waits for, and who has answered", errors=(404,),
    ),
)  # fmt: skip
