"""The debug bundle: one run as one portable document, cut openly when it is too large."""

from typing import Any

import msgspec

from moot import __version__
from moot.api import snapshot
from moot.api.wire import Endpoint, Reply, Request
from moot.core.events import decode, decode_head, iso
from moot.core.masking import MASK
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
    head = await request.services.host.view(tenant, run_id)
    rows, reason = await _events(request, head, most)
    body: dict[str, Any] = {
        "bundleVersion": "1.0",
        "generatedAt": iso(request.services.clock.micros()),
        "host": {"name": "moot", "version": __version__},
        "run": _run(head, await request.services.host.messages(head)),
        "events": [msgspec.Raw(row) for row in rows],
        "spans": _spans(rows),
        "metrics": {
            "eventCount": len(rows),
            "nodeCount": len({decode_head(row).node_id for row in rows} - {None}),
        },
        "redactionApplied": any(MASK.encode() in row for row in rows)
        or bool(head.flow.sensitive and head.flow.masking != "passthrough"),
        "redactionMode": head.flow.masking,
    }
    if reason is not None:
        body |= {"truncated": True, "truncatedReason": reason}
    return Reply(body, 200, {"Cache-Control": "no-store"})


async def _events(request: Request, head: Head, most: int) -> tuple[list[bytes], str | None]:
    """The beginning of the log, as much as fits."""
    run, size = head.run, 0
    found: list[bytes] = []
    while len(found) < run.next_sequence:
        left = min(PAGE, most - len(found))
        if left <= 0:
            return found, "events_truncated_to_max_events"
        page = await request.services.store.read(run.tenant, run.run_id, len(found) - 1, left)
        if not page:
            break
        for row in page:
            size += len(row)
            if size > SIZE_CAP:
                return found, "events_truncated_to_size_cap"
            found.append(row)
    return found, None


def _run(head: Head, messages: dict[str, list[Any]]) -> dict[str, Any]:
    shown = snapshot.snapshot(head, messages)
    status = shown["status"]
    shown["status"] = NARROWED.get(status, status)
    if shown["status"] != status:
        shown["exactStatus"] = status
    shown["endedAt"] = shown.get("completedAt")
    return shown


def _spans(rows: list[bytes]) -> list[dict[str, Any]]:
    """One span for each attempt of a node, from its start to its end in the log."""
    spans: dict[str, dict[str, Any]] = {}
    for row in rows:
        event = decode(row)
        node_id = event.payload.get("nodeId") if event.type.startswith("node.") else None
        if event.type == "node.started":
            attributes = {"openwop.run_id": event.run_id, "openwop.node_id": node_id}
            attributes["openwop.node_type"] = event.payload["typeId"]
            attributes["openwop.node_attempt"] = event.payload.get("attempt", 1) - 1
            spans[f"{node_id}:{event.payload.get('attempt', 1)}"] = {
                "name": f"openwop.node.{event.payload['typeId']}",
                "startedAt": event.timestamp,
                "endedAt": None,
                "attributes": attributes,
            }
        elif node_id is not None:
            for key, span in spans.items():
                if key.startswith(f"{node_id}:") and span["endedAt"] is None:
                    span["endedAt"] = event.timestamp
    return list(spans.values())


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
