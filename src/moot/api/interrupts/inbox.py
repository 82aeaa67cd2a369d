"""The inbox: open interrupts and notices, and who asks each question."""

from msgspec.structs import asdict, replace

from moot.api.http.request import Endpoint, Reply, Request, whole_number
from moot.api.interrupts import notices
from moot.api.interrupts.answers import asked_question
from moot.api.runs.event_stream import seconds_until_expiry
from moot.api.views import copy_fields, iso_or_none
from moot.core.errors import RunNotFound
from moot.core.events import iso
from moot.core.interrupts.inbox import question_item
from moot.core.state import tasks
from moot.core.state.conversation import current_title
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.text.fencing import content_text
from moot.core.text.names import handle_from_name
from moot.engine.streams.hub import inbox_channel
from moot.engine.threads.transcript import StoredConversation, read_turns
from moot.store.protocol import InboxRow
from moot.wire.interrupts import (
    AnsweredQuestion,
    AskingMember,
    Inbox,
    InboxItem,
    Question,
    QuestionList,
)

#: The kind of inbox items that come from conversations.
CONVERSATION = "conversation"
#: Characters of a quoted turn.
LONGEST_QUOTE = 300

#: Seconds. Proxies usually allow a silent connection longer than this.
LONGEST_WAIT = 30


async def _add_asker(request: Request, row: InboxRow) -> InboxItem:
    """Return an item with who asks in a conversation, whom, and what.

    Other items get the member whose run asks. The words are only in the log. Nothing is added when
    the question was just answered.
    """
    services = request.services
    item = copy_fields(InboxItem, row, id=row.item_id, deadline=iso_or_none(row.deadline))
    if row.kind != CONVERSATION:
        return replace(item, member=await _asking_member(request, row))
    try:
        run = (await services.host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return item
    conversation = run.conversations.get(row.node_id)
    if conversation is None or not conversation.asked:
        return item
    index, _ = tasks.longest_awaited(conversation.asked)
    turns = await read_turns(StoredConversation(services.store, run, conversation), index, index, 1)
    if not turns:
        return item
    [turn], title = turns, current_title(run, conversation)
    people = ", ".join(map(handle_from_name, conversation.asked))
    text = " ".join(content_text(turn.content).split())
    text = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
    question = f"{handle_from_name(turn.speaker)} asks {people} in “{title}”: {text}"
    return replace(item, question=question, asked_by=turn.speaker, title=title, turn_index=index)


async def _asking_member(request: Request, row: InboxRow) -> AskingMember | None:
    """Return the standing agent of the run, under the name it had when the run began."""
    run_row = await request.store.find_run(row.tenant, row.run_id)
    if run_row is None or run_row.member is None:
        return None
    try:
        member = (await request.host.view(row.tenant, row.run_id)).run.member
    except RunNotFound:
        return None
    return None if member is None else copy_fields(AskingMember, member)


async def list_run_interrupts(request: Request) -> Reply:
    """List the open questions of a run and who answered the others."""
    run = (await request.host.view(request.tenant, request.params["run_id"])).run
    open_interrupts = [
        _open_interrupt_view(run, node_id, interrupt)
        for node_id, interrupt in run.interrupts.items()
    ]
    answered = [
        AnsweredQuestion(node_id=node_id, by=last.by, at=iso(last.at * 1000), action=last.action)
        for node_id, last in run.answered.items()
        if node_id not in run.interrupts
    ]
    questions = QuestionList(
        run_id=run.run_id, status=run.status.value, open=open_interrupts, answered=answered
    )
    return Reply(questions, 200, {"Cache-Control": "no-store"})


def _open_interrupt_view(run: Run, node_id: str, interrupt: Interrupt) -> Question:
    item = question_item(run, node_id, interrupt)
    return Question(
        **asdict(asked_question(run.run_id, node_id, interrupt)),
        question=item.question,
        actions=item.actions,
        asked_by=item.asked_by,
        votes=interrupt.votes,
        deadline=iso_or_none(interrupt.due),
    )


async def read_inbox(request: Request) -> Reply:
    """List the inbox.

    With ``wait``, answer when the revision changes from the one the caller knows.
    """
    limit = request.integer("limit", 100, 1, 1000)
    known_revision = request.integer("revision", -1, -1, 2**53)
    wait = request.integer("wait", 0, 0, LONGEST_WAIT)
    tenant, store, hub = request.tenant, request.store, request.host.hub
    # subscribe before reading, so that no change is missed
    reader = hub.subscribe(inbox_channel(tenant), holder=request.caller.id)
    try:
        rows, revision = await store.inbox(tenant, limit)
        if wait and revision == known_revision:
            await reader.wait(min(wait, seconds_until_expiry(request)))
            rows, revision = await store.inbox(tenant, limit)
    finally:
        hub.unsubscribe(inbox_channel(tenant), reader)
    inbox = Inbox(
        items=[await _add_asker(request, row) for row in rows],
        revision=revision,
        notices=await notices.list_notices(request),
    )
    return Reply(inbox)


WAIT = {
    "limit": whole_number(1, 1000), "revision": whole_number(-1),
    "wait": whole_number(0, LONGEST_WAIT),
}  # fmt: skip
INBOX_ENDPOINTS = (
    Endpoint("GET", "/v1/host/moot/inbox", read_inbox, scope="runs:read",
             query=WAIT, answer=Inbox),
    Endpoint("GET", "/v1/host/moot/runs/{run_id}/interrupts", list_run_interrupts,
             scope="runs:read", answer=QuestionList),
)  # fmt: skip
