"""The debug bundle: one run as one document, cut when it is too large."""

from msgspec import to_builtins

from moot import __version__
from moot.api.http.request import Endpoint, Reply, Request, whole_number
from moot.api.runs import snapshot
from moot.core.events import Event, decode, decode_head, iso
from moot.core.payloads.nodes import NodeDispatched, NodeStarted
from moot.core.workflows.flow import Flow
from moot.engine.head import Head
from moot.wire.json import stored_object
from moot.wire.runs import BundleHost, BundleMetrics, DebugBundle, NodeSpan

SIZE_CAP = 8 * 1024 * 1024
PAGE = 1000

#: Status of a snapshot -> status in the bundle's schema, which has fewer.
BUNDLE_STATUSES = {
    "paused": "running",
    "cancelling": "running",
    "waiting-input": "waiting-clarification",
    "waiting-external": "running",
}


async def read_debug_bundle(request: Request) -> Reply:
    most = request.integer("maxEvents", 1_000_000, 0, 1_000_000)
    tenant, run_id = request.tenant, request.params["run_id"]
    head = await request.host.whole(tenant, run_id)
    run, length = _run_view(head), head.run.next_sequence
    rows, reason = await _read_events(request, head, length, most)
    bundle = DebugBundle(
        bundle_version="1.0",
        generated_at=iso(request.services.clock.micros()),
        host=BundleHost(name="moot", version=__version__),
        run=run,
        events=[stored_object(row) for row in rows],
        spans=_spans(rows),
        metrics=BundleMetrics(
            event_count=len(rows),
            node_count=len({decode_head(row).node_id for row in rows} - {None}),
        ),
        redaction_applied=_is_redacted(head.flow),
        redaction_mode=head.flow.masking,
        truncated=reason is not None,
        truncated_reason=reason,
    )
    return Reply(bundle, 200, {"Cache-Control": "no-store"})


def _is_redacted(flow: Flow) -> bool:
    """Return whether the workflow has sensitive values and its mode hides them."""
    definition = flow.definition
    marked = (
        bool(flow.sensitive)
        or any(channel.sensitive for channel in definition.channels.values())
        or any(any(node.output_sensitivity.values()) for node in definition.nodes)
    )
    return marked and flow.masking != "passthrough"


async def _read_events(
    request: Request, head: Head, length: int, most: int
) -> tuple[list[bytes], str | None]:
    """Return the start of the log, as much as fits, and why it was cut.

    The run may continue meanwhile.
    """
    tenant, run_id, size = head.run.tenant, head.run.run_id, 0
    rows: list[bytes] = []
    while len(rows) < length:
        left = min(PAGE, length - len(rows), most - len(rows))
        if left <= 0:
            return rows, "events_truncated_to_max_events"
        page = await request.store.read(tenant, run_id, len(rows) - 1, left)
        if not page:
            break
        for row in page:
            size += len(row)
            if size > SIZE_CAP:
                return rows, "events_truncated_to_size_cap"
            rows.append(row)
    return rows, None


def _run_view(head: Head) -> dict[str, object]:
    view = to_builtins(snapshot.run_snapshot(head))
    status = view["status"]
    view["status"] = BUNDLE_STATUSES.get(status, status)
    if view["status"] != status:
        view["exactStatus"] = status
    return {**view, "endedAt": view.get("completedAt")}


def _spans(rows: list[bytes]) -> list[NodeSpan]:
    """Return one span for each attempt of a node, from its start to its end in the log."""
    spans: list[NodeSpan] = []
    under_way: dict[str, NodeSpan] = {}
    for row in rows:
        if not decode_head(row).type.startswith("node."):
            continue
        event = decode(row)
        payload = event.payload
        node_id = str(getattr(payload, "node_id", event.node_id))
        if isinstance(payload, NodeStarted):
            span = under_way[node_id] = _span(event, payload)
            spans.append(span)
        elif not isinstance(payload, NodeDispatched) and node_id in under_way:
            under_way.pop(node_id).ended_at = event.timestamp
    return spans


def _span(event: Event, started: NodeStarted) -> NodeSpan:
    type_id = started.type_id
    attributes: dict[str, str | int] = {
        "openwop.run_id": event.run_id,
        "openwop.node_id": started.node_id,
        "openwop.node_type": type_id,
        "openwop.node_attempt": started.attempt - 1,
    }
    return NodeSpan(
        name=f"openwop.node.{type_id}",
        started_at=event.timestamp,
        ended_at=None,
        attributes=attributes,
    )


DEBUG_BUNDLE_ENDPOINTS = (
    Endpoint("GET", "/v1/runs/{run_id}/debug-bundle", read_debug_bundle, scope="runs:read",
             query={"maxEvents": whole_number(0, 1_000_000)}, answer=DebugBundle),
)  # fmt: skip
