"""A log that was written elsewhere is taken in as it is, or not at all."""

import asyncio
import re

import msgspec
from msgspec import Struct

from moot.core import events
from moot.core.errors import BadRequest, Conflict, SequenceConflict, Unprocessable
from moot.core.events import Event
from moot.core.flow import Flow, digest
from moot.core.initiation import own_id
from moot.core.nesting import too_deep
from moot.core.pending import pending
from moot.core.run import Run, apply
from moot.core.waiting import thread_id
from moot.engine.host import Host
from moot.engine.rebuild import EFFECT_TYPES, Messages
from moot.engine.rows import due_of, effect_rows, inbox_rows, message_ids, row_of
from moot.engine.runs import refuse_newer
from moot.store.protocol import Append, Batch, EffectRow

#: names and times as this host writes them; all of them become parts of lines
RUN_ID = re.compile(r"[\w-]{1,128}", re.ASCII)
TYPE = re.compile(r"[a-z][\w.-]{0,127}", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

_state = msgspec.json.Decoder(Run)


class Brought(Struct, frozen=True):
    """What somebody brings along: a run, by its log, and the thread in it that matters."""

    run_id: str
    thread_id: str
    definition: bytes
    rows: list[bytes]


async def adopt(host: Host, tenant: str, brought: Brought) -> Run:
    """Take in a run that was written elsewhere; it goes on from where it is.

    Raises BadRequest or Unprocessable, having kept nothing, when it is not whole.
    """
    host.refuse_when_stopping()
    # in a thread: a long log keeps nobody else waiting
    run, effects, messages = await asyncio.to_thread(_folded, tenant, brought)
    refuse_newer(run)
    flow = _checked(host, run, brought)
    append = Append(tenant=tenant, run_id=run.run_id, first=0, events=brought.rows)
    append.row, append.inbox, append.messages = row_of(run), inbox_rows(run), messages
    append.work = None if run.terminal else due_of(pending(run, flow))
    await host.flows.keep(tenant, brought.definition)
    try:
        await host.store.commit(Batch(appends=[append], effects=effects))
    except SequenceConflict:
        raise Conflict("A run with this id is already here.", runId=run.run_id) from None
    host.look_again(tenant, run.run_id)
    return run


def _folded(tenant: str, brought: Brought) -> tuple[Run, list[EffectRow], Messages]:
    """The run as its log says, and the places that speak of effects and turns."""
    if not RUN_ID.fullmatch(brought.run_id):
        raise BadRequest("This is no id of a run.")
    run, effects = Run(brought.run_id, tenant=tenant), []
    messages: Messages = []
    for row in brought.rows:
        event = _event(run, row)
        try:
            apply(run, event, strict=True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"Event {event.sequence} says what cannot be: {error!r}") from None
        messages += message_ids(event)
        if event.type in EFFECT_TYPES:
            effects += effect_rows(run, event)
    try:
        _state.decode(msgspec.json.encode(run))
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"The log does not tell of a run: {error}") from None
    return run, effects, messages


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


def _checked(host: Host, run: Run, brought: Brought) -> Flow:
    """The workflow, which must be that of the run, of its nodes and of the thread."""
    definition = brought.definition
    if run.definition != digest(definition) or too_deep(definition):
        raise BadRequest("The workflow is not the one the run was started with.")
    flow = host.flows.readable(definition)
    named = {*run.nodes, *run.interrupts, *run.conversations}
    if run.workflow_id != flow.definition.id or not named <= set(flow.nodes):
        raise BadRequest("The run tells of another workflow, or of nodes that are not in it.")
    if not run.terminal and (run.abroad or None in run.children.values()):
        raise Unprocessable("The run waits for child runs, which are not part of it.")
    threads = [thread_id(run, talk) for talk in run.conversations.values()]
    if brought.thread_id not in threads:
        raise BadRequest("The run has no such thread.", threadIds=threads)
    return flow
