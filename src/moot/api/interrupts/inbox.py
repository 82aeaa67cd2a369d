"""The inbox: open interrupts and notices, and who asks each question."""

from msgspec.structs import asdict, replace

from moot.agents.prompts.fencing import content_text
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import notices
from moot.api.interrupts.answers import asked_question
from moot.api.runs.event_stream import seconds_until_expiry
from moot.core.errors import RunNotFound
from moot.core.events import iso
from moot.core.interrupts.inbox import question_item
from moot.core.state import awaited_people
from moot.core.state.interrupt import Interrupt
from moot.core.state.run import Run
from moot.core.state.titles import current_title
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
    services, item = request.services, _inbox_item(row)
    if row.kind != CONVERSATION:
        return replace(item, member=await _asking_member(request, row))
    try:
        run = (await services.host.view(row.tenant, row.run_id)).run
    except RunNotFound:
        return item
    conversation = run.conversations.get(row.node_id)
    if conversation is None or not conversation.asked:
        return item
    index, _ = awaited_people.longest_awaited(conversation.asked)
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
    run_row = await request.services.store.find_run(row.tenant, row.run_id)
    if run_row is None or run_row.member is None:
        return None
    try:
        member = (await request.services.host.view(row.tenant, row.run_id)).run.member
    except RunNotFound:
        return None
    if member is None:
        return None
    return AskingMember(roster_id=member.roster_id, persona=member.persona)


async def list_run_interrupts(request: Request) -> Reply:
    """List the open questions of a run and who answered the others."""
    run = (await request.services.host.view(request.caller.tenant, request.params["run_id"])).run
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
        deadline=None if interrupt.due is None else iso(interrupt.due * 1000),
    )


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
    inbox = Inbox(
        items=[await _add_asker(request, row) for row in rows],
        revision=revision,
        notices=await notices.list_notices(request),
    )
    return Reply(inbox)


def _inbox_item(row: InboxRow) -> InboxItem:
    return InboxItem(
        id=row.item_id,
        run_id=row.run_id,
        node_id=row.node_id,
        kind=row.kind,
        question=row.question,
        actions=row.actions,
        asked_by=row.asked_by,
        since=iso(row.since * 1000),
        deadline=None if row.deadline is None else iso(row.deadline * 1000),
    )


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
        tag="Inbox", operation_id="readInbox", answer=Inbox,
        description="Lists the questions that wait for a person, the oldest first, and notices "
        "about failures. With `wait` and the known `revision` it answers when the "
        "inbox changes.",
    ),
    Endpoint(
        method="GET", path="/v1/host/moot/runs/{run_id}/interrupts", call=list_run_interrupts,
        scope="runs:read", summary="What a run waits for, and who has answered", errors=(404,),
        tag="Inbox", operation_id="listRunQuestions", answer=QuestionList,
        description="Lists the open questions of a run, and who answered the others.",
    ),
)  # fmt: skip
