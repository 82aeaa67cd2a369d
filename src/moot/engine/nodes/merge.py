"""core.merge: what the branches brought, by source and as one value."""

from typing import Any

from moot.core.workflows.node_types import Call, Completed, Kind, NodeType
from moot.engine.nodes.inputs import upstream_merged

MODES = ("object", "list", "first")


def _merge(call: Call) -> Completed:
    return Completed({"results": dict(call.upstream), "merged": _merged(call)})


def _merged(call: Call) -> Any:
    match call.config.get("mode", "object"):
        case "list":
            return list(call.upstream.values())
        case "first":
            return next(iter(call.upstream.values()), {})
        case _:
            return upstream_merged(call)


def _check(config: dict[str, Any]) -> str | None:
    if config.get("mode", "object") in MODES:
        return None
    return f"config.mode must be one of {', '.join(MODES)}"


TYPE = NodeType(type_id="core.merge", kind=Kind.INSTANT, instant=_merge, check=_check)
