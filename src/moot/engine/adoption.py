"""A log that was written elsewhere is taken in as it is, or not at all."""

import asyncio
import re

import msgspec

from moot.core import events
from moot.core.errors import BadRequest, Conflict, SequenceConflict, Unprocessable
from moot.core.events import Event
from moot.core.flow import Flow
from moot.core.nesting import too_deep
from moot.core.pending import pending
from moot.core.run import Run, apply
from moot.engine.host import Host
from moot.engine.rebuild import EFFECT_TYPES
from moot.engine.turn import due_of, effect_row, inbox_rows, message_ids, row_of
from moot.store.protocol import Append, Batch

RUN_ID = re.compile("(run|th)_[a-z2-7]{20}")

_state = msgspec.json.Decoder(Run)
_encode = msgspec.json.Encoder().encode


async def adopt(host: Host, tenant: str, run_id: str, definition: bytes, rows: list[bytes]) -> Run:
    """Take in a run that was written elsewhere; it goes on from where it is."""
    host.refuse_when_stopping()
    flow = host.flows.readable(definition)
    run, batch = await asyncio.to_thread(_adopted, flow, tenant, run_id, rows)
    host.refuse_newer(run)
    await host.flows.keep(tenant, definition)
    try:
        await host.store.commit(batch)
    except SequenceConflict:
        raise Conflict("A run with this id is already here.", runId=run_id) from None
    host.look_again(tenant, run_id)
    return run


def _adopted(flow: Flow, tenant: str, run_id: str, rows: list[bytes]) -> tuple[Run, Batch]:
    """The run as its log says and the rows to keep. Raises BadRequest or Unprocessable."""
    if not RUN_ID.fullmatch(run_id):
        raise BadRequest("This is not the id of a run.", field="runId")
    run, batch = Run(run_id, tenant=tenant), Batch()
    append = Append(tenant=tenant, run_id=run_id, first=0, events=rows)
    for row in rows:
        event = _event(run, row)
        apply(run, event)
        append.messages += message_ids(event)
        if event.type in EFFECT_TYPES:
            batch.effects.append(effect_row(run, event))
    if _unlike(run):
        raise BadRequest("The log says what no run can be.")
    if run.definition != flow.digest:
        raise BadRequest("The workflow is not the one the run was started with.")
    if not run.terminal and None in run.children.values():
        raise Unprocessable("The run waits for child runs, which are not part of it.")
    append.row, append.inbox = row_of(run), inbox_rows(run)
    append.work = None if run.terminal else due_of(pending(run, flow))
    batch.appends.append(append)
    return run, batch


def _unlike(run: Run) -> bool:
    """Whether the state could not be read back: some event had a value of another kind."""
    try:
        return _state.decode(_encode(run)) != run
    except (msgspec.MsgspecError, ValueError):
        return True


def _event(run: Run, row: bytes) -> Event:
    """One row, which must be the next of this very run."""
    place = f"Event {run.next_sequence}"
    if too_deep(row):
        raise BadRequest(f"{place} is nested too deep.")
    try:
        event = events.decode(row)
        events.millis(event.timestamp)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as error:
        raise BadRequest(f"{place} cannot be read: {error}") from None
    if event.run_id != run.run_id or event.sequence != run.next_sequence:
        raise BadRequest(f"{place} is missing, or of another run.")
    if (event.type == "run.started") != (event.sequence == 0) or run.terminal:
        raise BadRequest(f"{place} cannot stand there: a run starts once and ends once.")
    return event
