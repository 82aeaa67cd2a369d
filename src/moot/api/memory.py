"""Show the memory of agents, and forget entries of it."""

import logging

from moot.api.http.request import Endpoint, Reply, Request
from moot.core.errors import BadRequest, NotFound
from moot.core.events import iso
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
    services, tenant = request.services, request.caller.tenant
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
    host, run_id = request.services.host, request.query.get("runId")
    if run_id is None:
        return None
    run = (await host.view(request.caller.tenant, run_id)).run
    if "at" not in request.query:
        return run
    at = request.integer("at", 0, 1, run.next_sequence)
    return (await host.runs.at(run.tenant, run_id, at - 1)).run


def _entry_view(note: MemoryRow) -> RememberedEntry:
    """Return an entry with the run that wrote it. The protocol's entry has no field for that."""
    assert note.content is not None
    return RememberedEntry(
        id=note.memory_id,
        content=note.content,
        tags=note.tags,
        created_at=iso(note.created_at * 1000),
        expires_at=None if note.expires_at is None else iso(note.expires_at * 1000),
        run_id=note.run_id,
        agent_id=note.agent_id,
    )


async def forget_memory(request: Request) -> Reply:
    ref, name = request.query.get("ref"), request.query.get("id")
    if ref is None:
        raise BadRequest("Say which memory: ref.", field="ref")
    gone = await request.services.host.memory.forget(request.caller.tenant, ref, name)
    if not gone:
        raise NotFound("There is nothing to forget.", memoryRef=ref[:LONGEST_REF])
    log.info("Memory was erased", extra={"action": "memory.forgotten", "key_id": request.caller.id})
    return Reply(MemoryErasure(ref=ref, forgotten=gone))


REF = ({"type": "string", "minLength": 1, "maxLength": LONGEST_REF}, "which memory")
ID = ({"type": "string", "minLength": 1, "maxLength": LONGEST_ID}, "which entry")

MEMORY_ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/host/moot/memory", call=read_memory, scope="memory:read",
        summary="What is remembered: the memories there are, or the entries of one",
        errors=(404,),
        query={
            "ref": REF,
            "id": ID,
            "tag": ({"type": "string", "minLength": 1, "maxLength": LONGEST_TAG},
                    "only entries with this tag"),
            "limit": ({"type": "integer", "minimum": 0, "maximum": LARGEST_LIMIT},
                      "at most so many; 0 is the usual hundred"),
            "runId": ({"type": "string"}, "as this run sees it"),
            "at": ({"type": "integer", "minimum": 1}, "as the run saw it before this event"),
        },
        tag="Memory", operation_id="readMemory", answer=(MemoryList, MemoryEntryList),
        description="Without `ref` lists the memories. With `ref` lists the entries of one "
        "memory: now, as a run sees them, or as the run saw them before an event.",
    ),
    Endpoint(
        method="DELETE", path="/v1/host/moot/memory", call=forget_memory, scope="memory:write",
        summary="Forget an entry, or all of a memory, for good", errors=(404,),
        query={"ref": REF, "id": ID},
        tag="Memory", operation_id="forgetMemory", answer=MemoryErasure,
        description="Erases one entry, or all entries of a memory, for good. Refuses a memory "
        "without entries with 404.",
    ),
)  # fmt: skip
