"""A log that was written elsewhere is taken in as it is, or not at all."""

import asyncio
import re
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.core import events
from moot.core.errors import BadRequest, Conflict, Forbidden, SequenceConflict, Unprocessable
from moot.core.events import Event, event_id
from moot.core.json.nesting import too_deep
from moot.core.pending import pending
from moot.core.replay import carried_approvals
from moot.core.state.conversation import THREAD, thread_id
from moot.core.state.initiation import own_id
from moot.core.state.run import Run, apply
from moot.core.workflows.definition import RESERVED
from moot.core.workflows.graph import Flow, digest
from moot.engine.derived_rows import Gathered, due_of, inbox_rows, row_of
from moot.engine.host import Host
from moot.engine.run_cache import refuse_newer
from moot.store.protocol import Append, Batch, EffectRow, Record

#: names and times as this host writes them; all of them become parts of lines
RUN_ID = re.compile(r"[\w-]{1,128}", re.ASCII)
TYPE = re.compile(r"[a-z][\w.-]{0,127}", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

_state = msgspec.json.Decoder(Run)


#: how far the clocks of two hosts may be apart: whatever follows a log has later times than it
SLACK_S = 300
#: the record that a run was taken in, when and by whom: its log says nothing of that
TAKEN_IN = "import"

#: what an import that goes on asks for, beside the right to import: it is a run of a workflow
BEGINS, REGISTERS = "runs:create", "manifest:write"


class Brought(Struct, frozen=True):
    """What somebody brings along: a run, by its log, and the thread in it that matters."""

    run_id: str
    thread_id: str
    definition: bytes
    rows: list[bytes]
    #: scopes of who brings it; None for all
    rights: frozenset[str] | None = None
    #: the key of who brings it
    by: str = ""

    def must(self, scope: str) -> None:
        if self.rights is not None and scope not in self.rights:
            raise Forbidden(
                f"The run is of a workflow and would go on here: that needs {scope}.",
                scopeRequired=scope,
            )


async def adopt(host: Host, tenant: str, brought: Brought) -> Run:
    """Take in a run that was written elsewhere; it goes on from where it is. What people allowed
    there they did not allow here: members ask again for their tools.

    Raises BadRequest or Unprocessable, having kept nothing, when it is not whole, or goes on by
    somebody's word.
    """
    host.refuse_when_stopping()
    # in a thread: a long log keeps nobody else waiting
    latest = events.iso(host.clock.micros() + SLACK_S * 1_000_000)
    run, gathered = await asyncio.to_thread(_folded, tenant, brought, latest)
    refuse_newer(run)
    flow = _checked(host, run, brought)
    if not run.terminal:
        await _check_kin(host, run)
        if flow.definition.id != THREAD:
            await _check_goes_on(host, run, flow, brought)
    rows = [*brought.rows, *_asked_again(host, run)]
    append = Append(tenant=tenant, run_id=run.run_id, first=0, events=rows)
    append.row, append.inbox = row_of(run), inbox_rows(run)
    append.messages, append.texts = gathered.messages, gathered.texts
    append.work = None if run.terminal else due_of(pending(run, flow))
    await host.flows.keep(tenant, brought.definition)
    now = host.clock.millis()
    mark = Record(
        tenant=tenant, kind=TAKEN_IN, name=run.run_id, version=str(now), body=b"{}",
        created_at=now, by=brought.by,
    )  # fmt: skip
    effects = _elsewhere(gathered.effects)
    try:
        await host.store.commit(Batch(appends=[append], effects=effects, records=[mark]))
    except SequenceConflict:
        raise Conflict("A run cannot be taken in here under this id.") from None
    host.look_again(tenant, run.run_id)
    return run


def _elsewhere(effects: list[EffectRow]) -> list[EffectRow]:
    """What they used up was used up elsewhere."""
    return [replace(row, day=0, tokens=0, money=0) for row in effects]


def _folded(tenant: str, brought: Brought, latest: str) -> tuple[Run, Gathered]:
    """The run as its log says, and the places that speak of effects and turns. Whatever comes
    after a log has later times, so that nothing could follow one that ends with time itself."""
    if not RUN_ID.fullmatch(brought.run_id):
        raise BadRequest("This is no id of a run.")
    run, gathered = Run(brought.run_id, tenant=tenant), Gathered()
    for row in brought.rows:
        event = _event(run, row)
        if event.timestamp > latest:
            raise BadRequest(f"Event {event.sequence} is of the future: {event.timestamp}.")
        try:
            apply(run, event, strict=True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"Event {event.sequence} says what cannot be: {error!r}") from None
        gathered.take(run, event)
    try:
        _state.decode(msgspec.json.encode(run))
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"The log does not tell of a run: {error}") from None
    return run, gathered


def _asked_again(host: Host, run: Run) -> list[bytes]:
    """One event for each conversation in which the use of a tool was allowed: it is not any more.
    It is part of the state from here on."""
    found = []
    for node_id, asks in carried_approvals.tools(run) if not run.terminal else []:
        talk = run.conversations[node_id]
        payload = {"conversationId": talk.conversation_id, "askIds": asks, "reason": "imported"}
        event = Event(
            event_id=event_id(run.run_id, run.next_sequence),
            run_id=run.run_id,
            sequence=run.next_sequence,
            type="moot.tool.reopened",
            timestamp=events.iso(max(host.clock.micros(), run.updated_at * 1000 + 999)),
            payload=payload,
            node_id=node_id,
            causation_id=event_id(run.run_id, talk.last_seq),
        )
        apply(run, event)
        found.append(events.encode(event))
    return found


async def _check_kin(host: Host, run: Run) -> None:
    """What it says it comes from it would take over from there: outcomes, artifacts, memory."""
    mark: Any = (run.forked_from or {}).get("sourceRunId")
    memory = run.memory
    claimed = {mark, run.parent_run, *(memory.ancestors if memory is not None else ())}
    claimed |= {each.run for each in memory.inherited} if memory is not None else set()
    for name in claimed - {None, run.run_id}:
        if isinstance(name, str) and await host.store.head(run.tenant, name) is not None:
            raise Unprocessable(
                "The run says that it comes from one that is here, which knows nothing of it. Take"
                " it in when it has ended.",
            )


async def _check_goes_on(host: Host, run: Run, flow: Flow, brought: Brought) -> None:
    """A run of a workflow that goes on here is begun here, and nobody here has let it pass."""
    brought.must(BEGINS)
    if await host.store.definition_by_digest(run.tenant, flow.digest) is None:
        brought.must(REGISTERS)
    if passed := carried_approvals.given(run, flow):
        raise Unprocessable(
            "The run goes on by what somebody allowed elsewhere; that does not count here. Take it"
            " in when it has ended.",
            nodeIds=passed,
        )


def _event(run: Run, row: bytes) -> Event:
    """One row, which must be the next of this very run."""
    place = f"Event {run.next_sequence}"
    if too_deep(row) or b"\r" in row:
        raise BadRequest(f"{place} is nested too deep, or more than a line.")
    try:
        event = events.decode(row)
        events.millis(event.timestamp)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as error:
        raise BadRequest(f"{place} cannot be read: {error}") from None
    if not (TYPE.fullmatch(event.type) and TIMESTAMP.fullmatch(event.timestamp)):
        raise BadRequest(f"{place} has a type or a time that nobody writes.")
    mine = (run.run_id, run.next_sequence, own_id(run, event))
    if (event.run_id, event.sequence, event.event_id) != mine:
        raise BadRequest(f"{place} is missing, or of another run.")
    if (event.type == "run.started") != (event.sequence == 0) or run.terminal:
        raise BadRequest(f"{place} cannot stand there: a run starts once and ends once.")
    return event


def _refuse_own(flow: Flow) -> None:
    """Of the host's own workflows only a thread can be brought along, and only as such."""
    types = {node.type.type_id for node in flow.nodes.values()}
    if flow.definition.id.startswith(RESERVED) and types != {carried_approvals.CONVERSATION}:
        raise BadRequest(f"Ids that begin with '{RESERVED}' belong to the host.", field="id")


def _checked(host: Host, run: Run, brought: Brought) -> Flow:
    """The workflow, which must be that of the run, of its nodes and of the thread."""
    definition = brought.definition
    if run.definition != digest(definition) or too_deep(definition):
        raise BadRequest("The workflow is not the one the run was started with.")
    flow = host.flows.readable(definition)
    _refuse_own(flow)
    named = {*run.nodes, *run.interrupts, *run.conversations}
    if run.workflow_id != flow.definition.id or not named <= set(flow.nodes):
        raise BadRequest("The run tells of another workflow, or of nodes that are not in it.")
    if not run.terminal and (run.abroad or None in run.children.values()):
        raise Unprocessable("The run waits for child runs, which are not part of it.")
    threads = [thread_id(run, talk) for talk in run.conversations.values()]
    if brought.thread_id not in threads:
        raise BadRequest("The run has no such thread.", threadIds=threads)
    return flow
