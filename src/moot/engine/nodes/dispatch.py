"""The node type ``core.dispatch``: carry out the decision of a supervisor.

A decision starts workers as child runs, asks a question, or ends the loop.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.core.workflows.node_types import ChildSpec, NodeCall, NodeKind, NodeType

Mapping = dict[str, str]


class JoinPolicy(Struct, forbid_unknown_fields=True, rename="camel"):
    """The rule for when parallel workers count as done."""

    mode: Literal["wait-all", "quorum", "first", "race"] = "wait-all"
    quorum: Annotated[int, Meta(ge=1)] | None = None
    on_child_failure: Literal["collect", "fail-fast", "absorb"] = "collect"


class DispatchConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    """The config of a dispatch node."""

    ask_user_routing: Literal["auto", "conversation", "clarification"] = "auto"
    worker_dispatch_model: Literal["child-run"] = "child-run"
    fan_out_policy: Literal["sequential", "reject", "parallel"] = "sequential"
    iteration_cap: Annotated[int, Meta(ge=1)] | None = None
    input_mapping: Mapping = {}
    output_mapping: Mapping = {}
    per_worker_input_mappings: dict[str, Mapping] = {}
    per_worker_output_mappings: dict[str, Mapping] = {}
    join_policy: JoinPolicy | None = None
    max_concurrency: Annotated[int, Meta(ge=1)] | None = None
    memory_scope_isolation: Literal["isolated"] | None = None


def _worker(call: NodeCall, number: int) -> ChildSpec | None:
    """Return the child run for the worker with this number in the newest decision."""
    workers = [] if call.decision is None else call.decision.next_worker_ids
    if number >= len(workers):
        return None
    worker, config = workers[number], call.config
    mapping = config.get("perWorkerInputMappings", {}).get(worker, config.get("inputMapping", {}))
    variables = call.variables
    seed = {mine: variables[theirs] for mine, theirs in mapping.items() if theirs in variables}
    unset = tuple(mine for mine in mapping if mine not in seed)
    isolated = config.get("memoryScopeIsolation") == "isolated"
    return ChildSpec(workflow_id=worker, seed=seed, unset=unset, absorb=True, isolated=isolated)


def _check(config: dict[str, Any]) -> str | None:
    try:
        parsed = msgspec.convert(config, DispatchConfig)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    join = parsed.join_policy
    if join is not None and parsed.fan_out_policy != "parallel":
        return "joinPolicy goes with fanOutPolicy parallel"
    if join is not None and join.mode == "quorum" and join.quorum is None:
        return "joinPolicy.quorum must say how many"
    return None


TYPE = NodeType(
    type_id="core.dispatch", kind=NodeKind.CHILD, child=_worker, check=_check, dispatches=True
)
