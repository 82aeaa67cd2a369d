"""Derive store rows from a run and its events."""

from msgspec import Struct

from moot.core.catalogue import TERMINAL_TYPES
from moot.core.events import Event, millis
from moot.core.interrupts import inbox
from moot.core.payloads.conversations import ConversationEnded, ConversationExchanged
from moot.core.payloads.memory import EffectAbandoned, EffectFinished, EffectStarted
from moot.core.pending import PendingWork
from moot.core.search.indexed_text import TYPES_WITH_TEXT
from moot.core.state.conversation import THREAD
from moot.core.state.run import Run
from moot.core.state.titles import current_title
from moot.core.tenants import is_private_tenant
from moot.core.verify.controls import WORDS_BY_EVENT
from moot.engine.effects.agent_budgets import DAY_MS, MONEY_PARTS
from moot.store.protocol import EffectRow, InboxRow, RunIndexRow
from moot.store.search import TextRow

EFFECT_EVENTS = (EffectStarted, EffectFinished, EffectAbandoned)
#: event types with a turn -> the payload key of the turn
#: events that may carry a message id of their sender
EVENTS_WITH_MESSAGE_ID = frozenset(
    {ConversationExchanged.event_type, ConversationEnded.event_type, *WORDS_BY_EVENT}
)


def run_row(run: Run) -> RunIndexRow:
    fork = run.forked_from
    conversation = (
        next(iter(run.conversations.values()), None) if run.workflow_id == THREAD else None
    )
    return RunIndexRow(
        tenant=run.tenant,
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        status=run.status.value,
        created_at=run.started_at,
        updated_at=run.updated_at,
        ended_at=run.ended_at or None,
        parent_run=run.parent_run,
        scope_id=run.scope_id,
        error_code=run.error.code if run.error else None,
        next_sequence=run.next_sequence,
        fork_of=fork.source_run_id if fork else None,
        fork_seq=fork.from_seq if fork else None,
        fork_mode=fork.mode if fork else None,
        fork_note=fork.note if fork else None,
        member=run.member.roster_id if run.member else None,
        title=current_title(run, conversation) if conversation is not None else None,
        turns=conversation.turns if conversation is not None else None,
        dead_after=run.dead_after or None,
    )


def inbox_rows(run: Run) -> list[InboxRow]:
    return [
        InboxRow(
            tenant=run.tenant,
            item_id=item.id,
            run_id=item.run_id,
            node_id=item.node_id,
            kind=item.kind,
            question=item.question,
            actions=item.actions,
            asked_by=item.asked_by,
            since=item.since,
            deadline=item.deadline,
        )
        for item in inbox.inbox_items(run)
    ]


def message_ids(event: Event) -> list[tuple[str, int]]:
    """Return the message id that the sender of a turn or control chose, with its sequence.

    Ids made by the host are unique by themselves and need no row.
    """
    if event.type not in EVENTS_WITH_MESSAGE_ID:
        return []
    payload = event.payload
    match payload:
        case ConversationExchanged(turn=turn) | ConversationEnded(final_turn=turn):
            message_id = turn.message_id
        case _:
            message_id = getattr(payload, "message_id", None)
    host_prefix = f"{getattr(payload, 'conversation_id', None)}:"
    return (
        [(message_id, event.sequence)]
        if isinstance(message_id, str) and not message_id.startswith(host_prefix)
        else []
    )


def text_rows(run: Run, event: Event, at: int) -> list[TextRow]:
    """Return a row for the index when the event has searchable text.

    An inherited event counts for the fork's source, except the first one. Private rooms are not
    searched.
    """
    if event.type not in TYPES_WITH_TEXT or is_private_tenant(run.tenant):
        return []
    if event.type in TERMINAL_TYPES and not (
        getattr(event.payload, "outputs", None) or getattr(event.payload, "error", None)
    ):
        return []  # an end without outputs and without an error has no text
    if run.forked_from is None or not 0 < event.sequence < run.inherited:
        return [TextRow(event.sequence, at, None)]
    return [TextRow(event.sequence, at, run.forked_from.source_run_id)]


class DerivedRows(Struct):
    """Rows derived from the single events of a log, besides the run's state."""

    effects: list[EffectRow] = []
    messages: list[tuple[str, int]] = []
    texts: list[TextRow] = []

    def take(self, run: Run, event: Event) -> None:
        """Add the rows of the next event; the run is folded up to it."""
        if isinstance(event.payload, EFFECT_EVENTS):
            self.effects += effect_rows(run, event)
        self.messages += message_ids(event)
        self.texts += text_rows(run, event, run.updated_at)


def next_due(owed: PendingWork) -> int | None:
    """Return the time at which the host must check the run after a restart."""
    return 0 if owed.now else owed.due


def effect_rows(run: Run, event: Event) -> list[EffectRow]:
    """Return the effect's row. An event inherited by a fork belongs to the source and has none."""
    if event.sequence < run.inherited:
        return []
    day, tokens, money = _usage_of(event)
    row = EffectRow(
        tenant=run.tenant,
        invocation_id=str(getattr(event.payload, "invocation_id", "")),
        run_id=run.run_id,
        sequence=event.sequence,
        finished=isinstance(event.payload, EffectFinished),
        day=day,
        tokens=tokens,
        money=money,
        member=_charged_member(run, event) if day else None,
    )
    return [row]


def _charged_member(run: Run, event: Event) -> str | None:
    """Return the standing agent charged for the effect, else the one that owns the run."""
    charged: str | None = getattr(event.payload, "charged_to", None)
    if charged is not None:
        return charged
    return run.member.roster_id if run.member is not None else None


def _usage_of(event: Event) -> tuple[int, int, int]:
    """Return the day, tokens and millionths of money that a model's answer reports."""
    payload = event.payload
    result = payload.result if isinstance(payload, EffectFinished | EffectAbandoned) else None
    usage = result.get("usage") if isinstance(result, dict) else None
    if not isinstance(usage, dict):
        return 0, 0, 0
    tokens = [usage.get("inputTokens"), usage.get("outputTokens")]
    cost = result.get("cost") if isinstance(result, dict) else None
    price = cost if isinstance(cost, float | int) and 0 < cost < 1e9 else 0
    used = sum(count for count in tokens if isinstance(count, int) and 0 < count < 2**40)
    return millis(event.timestamp) // DAY_MS, used, round(price * MONEY_PARTS)
