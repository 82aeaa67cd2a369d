"""The debug bundle: one run as one portable document, cut openly when it is too large."""

from typing import Any

import msgspec

from moot import __version__
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs import snapshot
from moot.core.events import Event, decode, decode_head, iso
from moot.core.workflows.graph import Flow
from moot.engine.head import Head

SIZE_CAP = 8 * 1024 * 1024
PAGE = 1000

#: the bundle's schema knows fewer statuses than the snapshot's
NARROWED = {
    "paused": "running",
    "cancelling": "running",
    "waiting-input": "waiting-clarification",
    "waiting-external": "running",
}


async def bundle(request: Request) -> Reply:
    most = request.integer("maxEvents", 1_000_000, 0, 1_000_000)
    tenant, run_id = request.caller.tenant, request.params["run_id"]
    head = await request.services.host.whole(tenant, run_id)
    run, length = _run(head), head.run.next_sequence
    rows, reason = await _events(request, head, length, most)
    body: dict[str, Any] = {
        "bundleVersion": "1.0",
        "generatedAt": iso(request.services.clock.micros()),
        "host": {"name": "moot", "version": __version__},
        "run": run,
        "events": [msgspec.Raw(row) for row in rows],
        "spans": _spans(rows),
        "metrics": {
            "eventCount": len(rows),
            "nodeCount": len({decode_head(row).node_id for row in rows} - {None}),
        },
        "redactionApplied": _redacts(head.flow),
        "redactionMode": head.flow.masking,
    }
    if reason is not None:
        body |= {"truncated": True, "truncatedReason": reason}
    return Reply(body, 200, {"Cache-Control": "no-store"})


def _redacts(flow: Flow) -> bool:
    """Whether the workflow calls anything sensitive and its mode hides that."""
    told = flow.definition
    marked = (
        bool(flow.sensitive)
        or any(channel.sensitive for channel in told.channels.values())
        or any(any(node.output_sensitivity.values()) for node in told.nodes)
    )
    return marked and flow.masking != "passthrough"


async def _events(
    request: Request, head: Head, length: int, most: int
) -> tuple[list[bytes], str | None]:
    """The beginning of the log, as much as fits; the run may move on meanwhile."""
    tenant, run_id, size = head.run.tenant, head.run.run_id, 0
    found: list[bytes] = []
    while len(found) < length:
        left = min(PAGE, length - len(found), most - len(found))
        if left <= 0:
            return found, "events_truncated_to_max_events"
        page = await request.services.store.read(tenant, run_id, len(found) - 1, left)
        if not page:
            break
        for row in page:
            size += len(row)
            if size > SIZE_CAP:
                return found, "events_truncated_to_size_cap"
            found.append(row)
    return found, None


def _run(head: Head) -> dict[str, Any]:
    shown = snapshot.snapshot(head)
    status = shown["status"]
    shown["status"] = NARROWED.get(status, status)
    if shown["status"] != status:
        shown["exactStatus"] = status
    shown["endedAt"] = shown.get("completedAt")
    return shown


def _spans(rows: list[bytes]) -> list[dict[str, Any]]:
    """One span for each attempt of a node, from its start to its end in the log."""
    spans: list[dict[str, Any]] = []
    under_way: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not decode_head(row).type.startswith("node."):
            continue
        event = decode(row)
        node_id = str(event.payload.get("nodeId", event.node_id))
        if event.type == "node.started":
            span = under_way[node_id] = _span(event, node_id)
            spans.append(span)
        elif event.type != "node.dispatched" and node_id in under_way:
            under_way.pop(node_id)["endedAt"] = event.timestamp
    return spans


def _span(event: Event, node_id: str) -> dict[str, Any]:
    type_id = event.payload["typeId"]
    attributes = {
        "openwop.run_id": event.run_id,
        "openwop.node_id": node_id,
        "openwop.node_type": type_id,
        "openwop.node_attempt": event.payload.get("attempt", 1) - 1,
    }
    return {
        "name": f"openwop.node.{type_id}",
        "startedAt": event.timestamp,
        "endedAt": None,
        "attributes": attributes,
    }


ENDPOINTS = (
    Endpoint(
        method="GET", path="/v1/runs/{run_id}/debug-bundle", call=bundle, scope="runs:read",
        summary="One run as one document for diagnosis", answer="debug-bundle", errors=(404,),
        query={
            "maxEvents": ({"type": "integer", "minimum": 0, "maximum": 1_000_000},
                          "at most so many events"),
        },
    ),
)  # fmt: skip
