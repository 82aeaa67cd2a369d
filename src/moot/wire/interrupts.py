"""Requests and answers about interrupts and the inbox."""

from typing import Annotated, Any

from msgspec import Meta

from moot.wire.json import JsonObject, WireStruct
from moot.wire.request import RequestStruct


class AnswerBody(RequestStruct, frozen=True, kw_only=True):
    """An answer to an interrupt."""

    resume_value: Annotated[
        Any,
        Meta(
            description="The answer, in the form that the question asks for.",
            examples=[{"action": "accept"}, {"answers": {"answer": "red"}}],
        ),
    ]


class RunAnswerBody(AnswerBody, frozen=True, kw_only=True):
    """An answer to a question of a run; without a node the run must have only one."""

    node_id: str | None = None


class OpenQuestion(WireStruct, frozen=True):
    """The question that a run waits for, with a link that answers it without a key."""

    node_id: str
    interrupt_id: str
    kind: str
    data: JsonObject
    requested_at: str
    intent: str
    interrupt_token: str
    callback_url: str


class AskedQuestion(WireStruct, frozen=True):
    """The fields of every view of an open question."""

    kind: str
    key: str
    data: JsonObject
    run_id: str
    node_id: str
    interrupt_id: str
    requested_at: str
    resume_schema: JsonObject | None = None


class Question(AskedQuestion, frozen=True, kw_only=True):
    """An open question of a run."""

    question: str
    actions: list[str]
    asked_by: str
    votes: dict[str, str] = {}
    deadline: str | None = None


class LinkedQuestion(AskedQuestion, frozen=True, kw_only=True):
    """An open question, read by its link."""

    expires_at: str
    intent: str


class AnsweredQuestion(WireStruct, frozen=True):
    """An answered question of a run."""

    node_id: str
    by: str | None
    at: str
    action: str | None


class QuestionList(WireStruct, frozen=True):
    """The open and answered questions of a run."""

    run_id: str
    status: str
    open: list[Question]
    answered: list[AnsweredQuestion]


class ConversationPosition(WireStruct, frozen=True):
    """The turn that an answer became."""

    conversation_id: str | None
    operation: str
    turn_index: int | None
    turns: int
    sequence: int


class AnswerResult(WireStruct, frozen=True):
    """The result of an answer or of a turn."""

    run_id: str
    node_id: str
    status: str
    conversation: ConversationPosition | None = None


class AskingMember(WireStruct, frozen=True):
    """The standing agent of the run that asks."""

    roster_id: str
    persona: str


class InboxItem(WireStruct, frozen=True):
    """An interrupt that waits for a person."""

    id: str
    run_id: str
    node_id: str
    kind: str
    question: str
    actions: list[str]
    asked_by: str
    since: str
    deadline: str | None = None
    #: of a conversation: its title, and the turn that asks
    title: str | None = None
    turn_index: int | None = None
    member: AskingMember | None = None


class InboxNotice(WireStruct, frozen=True):
    """A notice: missed slots, a run that could not begin, or a budget near its limit."""

    id: str
    kind: str
    text: str
    actions: list[str]
    since: str
    schedule_id: str | None = None
    workflow_id: str | None = None
    roster_id: str | None = None
    at: str | None = None
    count: int | None = None
    #: of a failed delivery: its source and the reason
    source: str | None = None
    subscription_id: str | None = None
    queue: str | None = None
    reason: str | None = None
    #: of a standing agent: the limit, such as tokensPerDay
    limit: str | None = None


class Inbox(WireStruct, frozen=True):
    """All items and notices for a person."""

    items: list[InboxItem]
    revision: int
    #: lines without a question, such as dead letters
    notices: list[InboxNotice] = []
