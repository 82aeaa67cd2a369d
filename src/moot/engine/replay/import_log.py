"""Import a run whose log another host wrote, unchanged or not at all."""

import asyncio
import re

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.core import events
from moot.core.errors import BadRequest, Conflict, Forbidden, SequenceConflict, Unprocessable
from moot.core.events import Event, event_id
from moot.core.json.nesting import is_too_deep
from moot.core.payloads.councils import ToolReopened
from moot.core.payloads.runs import RunStarted
from moot.core.pending import pending
from moot.core.replay import carried_approvals
from moot.core.state.conversation import THREAD, thread_id
from moot.core.state.initiation import next_event_id
from moot.core.state.run import Run, apply
from moot.core.workflows.definition import RESERVED
from moot.core.workflows.flow import Flow, definition_digest
from moot.engine.derived_rows import DerivedRows, inbox_rows, next_due, run_row
from moot.engine.host import Host
from moot.engine.run_cache import refuse_newer_engine
from moot.store.protocol import Append, Batch, EffectRow
from moot.store.records import Record

#: names and times as this host writes them; all of them become parts of lines of text
RUN_ID = re.compile(r"[\w-]{1,128}", re.ASCII)
TYPE = re.compile(r"[a-z][\w.-]{0,127}", re.ASCII)
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

_run_decoder = msgspec.json.Decoder(Run)


#: how far the clocks of two hosts may differ, because later events need later times
CLOCK_TOLERANCE_S = 300
#: the kind of record that names the time and caller of an import; the log does not
IMPORT_RECORD = "import"

#: scopes that an unfinished run needs besides the import scope
CREATE_SCOPE, REGISTER_SCOPE = "runs:create", "manifest:write"


class ImportedLog(Struct, frozen=True):
    """A run to import: its log, its workflow, and the thread in it."""

    run_id: str
    thread_id: str
    definition: bytes
    rows: list[bytes]
    #: scopes of the caller; None for all
    rights: frozenset[str] | None = None
    #: the caller's key
    by: str = ""

    def require_scope(self, scope: str) -> None:
        if self.rights is not None and scope not in self.rights:
            raise Forbidden(
                f"The run is of a workflow and would go on here: that needs {scope}.",
                scopeRequired=scope,
            )


async def import_run(host: Host, tenant: str, imported: ImportedLog) -> Run:
    """Import a run that another host wrote. It continues from its last event.

    Approvals of tools given there do not count here: members must ask again. Raise BadRequest or
    Unprocessable, with nothing stored, when the log is not valid or relies on an approval given
    there.
    """
    host.refuse_when_stopping()
    # in a worker thread, because a long log would block the loop
    latest = events.iso(host.clock.micros() + CLOCK_TOLERANCE_S * 1_000_000)
    run, derived = await asyncio.to_thread(_fold_imported, tenant, imported, latest)
    refuse_newer_engine(run)
    flow = _check_workflow(host, run, imported)
    if not run.terminal:
        await _refuse_local_origin(host, run)
        if flow.definition.id != THREAD:
            await _check_continuation(host, run, flow, imported)
    rows = [*imported.rows, *_reopen_tool_requests(host, run)]
    append = Append(tenant=tenant, run_id=run.run_id, first=0, events=rows)
    append.row, append.inbox = run_row(run), inbox_rows(run)
    append.messages, append.texts = derived.messages, derived.texts
    append.work = None if run.terminal else next_due(pending(run, flow))
    await host.flows.keep(tenant, imported.definition)
    now = host.clock.millis()
    mark = Record(
        tenant=tenant, kind=IMPORT_RECORD, name=run.run_id, version=str(now), body=b"{}",
        created_at=now, by=imported.by,
    )  # fmt: skip
    effects = _without_usage(derived.effects)
    try:
        await host.store.commit(Batch(appends=[append], effects=effects, records=[mark]))
    except SequenceConflict:
        raise Conflict("A run cannot be taken in here under this id.") from None
    host.look_again(tenant, run.run_id)
    return run


def _without_usage(effects: list[EffectRow]) -> list[EffectRow]:
    """Clear the usage of effects, which another host has paid."""
    return [replace(row, day=0, tokens=0, money=0) for row in effects]


def _fold_imported(tenant: str, imported: ImportedLog, latest: str) -> tuple[Run, DerivedRows]:
    """Fold the log and return the run with its derived rows.

    Raise BadRequest for an event from the future, because later events could not follow it.
    """
    if not RUN_ID.fullmatch(imported.run_id):
        raise BadRequest("This is no id of a run.")
    run, derived = Run(imported.run_id, tenant=tenant), DerivedRows()
    for row in imported.rows:
        event = _decode_next(run, row)
        if event.timestamp > latest:
            raise BadRequest(f"Event {event.sequence} is of the future: {event.timestamp}.")
        try:
            apply(run, event, strict=True)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"Event {event.sequence} says what cannot be: {error!r}") from None
        derived.take(run, event)
    try:
        _run_decoder.decode(msgspec.json.encode(run))
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"The log does not tell of a run: {error}") from None
    return run, derived


def _reopen_tool_requests(host: Host, run: Run) -> list[bytes]:
    """Return one event for each conversation with an approved tool, which revokes the approval.

    The events are folded into the run.
    """
    encoded = []
    for node_id, ask_ids in carried_approvals.allowed_tools(run) if not run.terminal else []:
        conversation = run.conversations[node_id]
        payload = ToolReopened(
            conversation_id=conversation.conversation_id, ask_ids=ask_ids, reason="imported"
        )
        event = Event(
            event_id=event_id(run.run_id, run.next_sequence),
            run_id=run.run_id,
            sequence=run.next_sequence,
            type=payload.event_type,
            timestamp=events.iso(max(host.clock.micros(), run.updated_at * 1000 + 999)),
            payload=payload,
            node_id=node_id,
            causation_id=event_id(run.run_id, conversation.last_seq),
        )
        apply(run, event)
        encoded.append(events.encode(event))
    return encoded


async def _refuse_local_origin(host: Host, run: Run) -> None:
    """Raise Unprocessable when the run claims to come from a run of this host.

    It would inherit outcomes, artifacts and memory of that run.
    """
    source = None if run.forked_from is None else run.forked_from.source_run_id
    memory = run.memory
    claimed = {source, run.parent_run, *(memory.ancestors if memory is not None else ())}
    claimed |= {each.run for each in memory.inherited} if memory is not None else set()
    for name in claimed - {None, run.run_id}:
        if isinstance(name, str) and await host.store.head(run.tenant, name) is not None:
            raise Unprocessable(
                "The run says that it comes from one that is here, which knows nothing of it. Take"
                " it in when it has ended.",
            )


async def _check_continuation(host: Host, run: Run, flow: Flow, imported: ImportedLog) -> None:
    """Check that the caller may start the run here, and that it relies on no foreign approval."""
    imported.require_scope(CREATE_SCOPE)
    if await host.store.definition_by_digest(run.tenant, flow.digest) is None:
        imported.require_scope(REGISTER_SCOPE)
    if approved_nodes := carried_approvals.approved_nodes(run, flow):
        raise Unprocessable(
            "The run goes on by what somebody allowed elsewhere; that does not count here. Take it"
            " in when it has ended.",
            nodeIds=approved_nodes,
        )


def _decode_next(run: Run, row: bytes) -> Event:
    """Decode one row. Raise BadRequest unless it is the next event of this run."""
    place = f"Event {run.next_sequence}"
    if is_too_deep(row) or b"\r" in row:
        raise BadRequest(f"{place} is nested too deep, or more than a line.")
    try:
        event = events.decode(row)
        events.millis(event.timestamp)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as error:
        raise BadRequest(f"{place} cannot be read: {error}") from None
    if not (TYPE.fullmatch(event.type) and TIMESTAMP.fullmatch(event.timestamp)):
        raise BadRequest(f"{place} has a type or a time that nobody writes.")
    expected = (run.run_id, run.next_sequence, next_event_id(run, event))
    if (event.run_id, event.sequence, event.event_id) != expected:
        raise BadRequest(f"{place} is missing, or of another run.")
    if (event.type == RunStarted.event_type) != (event.sequence == 0) or run.terminal:
        raise BadRequest(f"{place} cannot stand there: a run starts once and ends once.")
    return event


def _refuse_host_workflow(flow: Flow) -> None:
    """Raise BadRequest for workflows of the host, except threads."""
    types = {node.type.type_id for node in flow.nodes.values()}
    if flow.definition.id.startswith(RESERVED) and types != {carried_approvals.CONVERSATION_GATE}:
        raise BadRequest(f"Ids that begin with '{RESERVED}' belong to the host.", field="id")


def _check_workflow(host: Host, run: Run, imported: ImportedLog) -> Flow:
    """Return the compiled workflow. Raise BadRequest unless it fits the run, its nodes and the
    thread."""
    definition = imported.definition
    if run.definition != definition_digest(definition) or is_too_deep(definition):
        raise BadRequest("The workflow is not the one the run was started with.")
    flow = host.flows.readable(definition)
    _refuse_host_workflow(flow)
    named = {*run.nodes, *run.interrupts, *run.conversations}
    if run.workflow_id != flow.definition.id or not named <= set(flow.nodes):
        raise BadRequest("The run tells of another workflow, or of nodes that are not in it.")
    if not run.terminal and (run.abroad or None in run.children.values()):
        raise Unprocessable("The run waits for child runs, which are not part of it.")
    threads = [thread_id(run, conversation) for conversation in run.conversations.values()]
    if imported.thread_id not in threads:
        raise BadRequest("The run has no such thread.", threadIds=threads)
    return flow
