"""Show the memory of agents, and forget entries of it."""

import logging

from moot.api.http.request import TEXT, Endpoint, Reply, Request, whole_number
from moot.api.views import copy_fields
from moot.core.errors import BadRequest, NotFound
from moot.core.memory import LARGEST_LIMIT, LONGEST_ID, LONGEST_REF, LONGEST_TAG
from moot.core.state.run import Run
from moot.store.memory_entries import MemoryRow
from moot.wire.memory import (
    MemoryEntryList,
    MemoryErasure,
    MemoryList,
    MemorySummary,
    RememberedEntry,
)

log = logging.getLogger("moot.server")

MOST_REFS = 1000


async def read_memory(request: Request) -> Reply:
    """List memories, the entries of one memory, or one entry."""
    services, tenant = request.services, request.tenant
    ref = request.query.get("ref")
    if ref is None:
        counts = await services.store.memory_refs(tenant, services.clock.millis(), MOST_REFS)
        memories = [MemorySummary(ref=name, entries=count) for name, count in counts]
        return Reply(MemoryList(memories=memories))
    run, memory = await _run_at(request), services.host.memory
    name, tag = request.query.get("id"), request.query.get("tag")
    if name is not None:
        entry = await memory.get(tenant, ref, run, name)
        entries = [] if entry is None else [_entry_view(entry)]
        return Reply(MemoryEntryList(ref=ref, entries=entries))
    if tag is not None and not 1 <= len(tag) <= LONGEST_TAG:
        raise BadRequest(f"tag has 1 to {LONGEST_TAG} characters.", field="tag")
    limit = request.integer("limit", 0, 0, LARGEST_LIMIT)
    notes = await memory.list(tenant, ref, run, tag, limit)
    return Reply(MemoryEntryList(ref=ref, entries=[_entry_view(note) for note in notes]))


async def _run_at(request: Request) -> Run | None:
    """Return the run whose view of memory is wanted, as it was before one of its events."""
    host, run_id = request.host, request.query.get("runId")
    if run_id is None:
        return None
    run = (await host.view(request.tenant, run_id)).run
    if "at" not in request.query:
        return run
    at = request.integer("at", 0, 1, run.next_sequence)
    return (await host.runs.at(run.tenant, run_id, at - 1)).run


def _entry_view(note: MemoryRow) -> RememberedEntry:
    """Return an entry with the run that wrote it. The protocol's entry has no field for that."""
    assert note.content is not None
    return copy_fields(RememberedEntry, note, id=note.memory_id)


async def forget_memory(request: Request) -> Reply:
    ref, name = request.query.get("ref"), request.query.get("id")
    if ref is None:
        raise BadRequest("Say which memory: ref.", field="ref")
    gone = await request.host.memory.forget(request.tenant, ref, name)
    if not gone:
        raise NotFound("There is nothing to forget.", memoryRef=ref[:LONGEST_REF])
    log.info("Memory was erased", extra={"action": "memory.forgotten", "key_id": request.caller.id})
    return Reply(MemoryErasure(ref=ref, forgotten=gone))


REF = {"type": "string", "minLength": 1, "maxLength": LONGEST_REF}
ID = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}

WANTED = {
    "ref": REF, "id": ID, "tag": {"type": "string", "minLength": 1, "maxLength": LONGEST_TAG},
    "limit": whole_number(0, LARGEST_LIMIT), "runId": TEXT, "at": whole_number(1),
}  # fmt: skip
MEMORY_ENDPOINTS = (
    Endpoint("GET", "/v1/host/moot/memory", read_memory, scope="memory:read", query=WANTED,
             answer=(MemoryList, MemoryEntryList)),
    Endpoint("DELETE", "/v1/host/moot/memory", forget_memory, scope="memory:write",
             query={"ref": REF, "id": ID}, answer=MemoryErasure),
)  # fmt: skip
