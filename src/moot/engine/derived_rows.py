"""Rows that are derived from a run and its events, as the store keeps them."""

from msgspec import Struct

from moot.core.events import Event, millis
from moot.core.interrupts import inbox
from moot.core.pending import Owed
from moot.core.replay.origin import origin
from moot.core.search.indexed_text import FOUND
from moot.core.state.conversation import THREAD, title_of
from moot.core.state.run import Run
from moot.core.state.usage import ABANDONED, CHARGED, FINISHED
from moot.core.tenants import is_room
from moot.core.verify.controls import WORDS
from moot.engine.effects.agent_budgets import DAY_MS, PARTS
from moot.store.protocol import EffectRow, InboxRow, RunRow
from moot.store.search import TextRow

EFFECTS = ("moot.effect.started", "moot.effect.finished", "moot.effect.abandoned")
#: events that carry a turn
SPOKEN = {"conversation.exchanged": "turn", "conversation.closed": "finalTurn"}
#: events that may bring along a name of their sender's
NAMED = frozenset({*SPOKEN, *WORDS})


def row_of(run: Run) -> RunRow:
    fork = origin(run.forked_from)
    talk = next(iter(run.conversations.values()), None) if run.workflow_id == THREAD else None
    return RunRow(
        tenant=run.tenant,
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        status=run.status.value,
        created_at=run.started_at,
        updated_at=run.updated_at,
        ended_at=run.ended_at or None,
        parent_run=run.parent_run,
        scope_id=run.scope_id,
        error_code=run.error.get("code") if run.error else None,
        next_sequence=run.next_sequence,
        fork_of=fork.source_run_id if fork else None,
        fork_seq=fork.from_seq if fork else None,
        fork_mode=fork.mode if fork else None,
        fork_note=fork.note if fork else None,
        member=run.member.roster_id if run.member else None,
        title=title_of(run, talk) if talk is not None else None,
        turns=talk.turns if talk is not None else None,
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
        for item in inbox.items(run)
    ]


def message_ids(event: Event) -> list[tuple[str, int]]:
    """The id that a turn or a control brought along; those the host makes are unique by
    themselves."""
    if event.type not in NAMED:
        return []
    turn = event.payload if event.type in WORDS else event.payload.get(SPOKEN[event.type])
    name = turn.get("messageId") if isinstance(turn, dict) else None
    own = f"{event.payload.get('conversationId')}:"
    return [(name, event.sequence)] if isinstance(name, str) and not name.startswith(own) else []


def text_rows(run: Run, event: Event, at: int) -> list[TextRow]:
    """That the event has words to be found by. What a run was started with is its own; in a room
    nobody searches."""
    if event.type not in FOUND or is_room(run.tenant):
        return []
    fork = origin(run.forked_from) if 0 < event.sequence < run.inherited else None
    return [TextRow(event.sequence, at, fork.source_run_id if fork else None)]


class Gathered(Struct):
    """What is derived from the events of a whole log, one by one, beside the run's state."""

    effects: list[EffectRow] = []
    messages: list[tuple[str, int]] = []
    texts: list[TextRow] = []

    def take(self, run: Run, event: Event) -> None:
        """The next event; the run is folded up to it."""
        if event.type in EFFECTS:
            self.effects += effect_rows(run, event)
        self.messages += message_ids(event)
        self.texts += text_rows(run, event, run.updated_at)


def due_of(owed: Owed) -> int | None:
    """When the host must look at the run again after a restart."""
    return 0 if owed.now else owed.due


def effect_rows(run: Run, event: Event) -> list[EffectRow]:
    """Where an effect of the run stands; one that a fork says again is its source's."""
    if event.sequence < run.inherited:
        return []
    day, tokens, money = _used_up(event)
    row = EffectRow(
        tenant=run.tenant,
        invocation_id=str(event.payload.get("invocationId", "")),
        run_id=run.run_id,
        sequence=event.sequence,
        finished=event.type == FINISHED,
        day=day,
        tokens=tokens,
        money=money,
        member=_payer(run, event) if day else None,
    )
    return [row]


def _payer(run: Run, event: Event) -> str | None:
    """Who is charged; where nobody was found then, whoever's run it is."""
    found = event.payload.get(CHARGED)
    if isinstance(found, str):
        return found
    return run.member.roster_id if run.member is not None else None


def _used_up(event: Event) -> tuple[int, int, int]:
    """The day, tokens and millionths of money, where an answer of a model says so."""
    result = event.payload.get("result")
    usage = result.get("usage") if isinstance(result, dict) else None
    if not isinstance(usage, dict) or event.type not in (FINISHED, ABANDONED):
        return 0, 0, 0
    tokens = [usage.get("inputTokens"), usage.get("outputTokens")]
    cost = result.get("cost") if isinstance(result, dict) else None
    price = cost if isinstance(cost, float | int) and 0 < cost < 1e9 else 0
    used = sum(count for count in tokens if isinstance(count, int) and 0 < count < 2**40)
    return millis(event.timestamp) // DAY_MS, used, round(price * PARTS)
