"""core.dispatch: carries out what a supervisor decides: workers as child runs, a question, an
end."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from moot.core.workflows.node_types import Call, ChildSpec, Kind, NodeType

Mapping = dict[str, str]


class JoinPolicy(Struct, forbid_unknown_fields=True, rename="camel"):
    mode: Literal["wait-all", "quorum", "first", "race"] = "wait-all"
    quorum: Annotated[int, Meta(ge=1)] | None = None
    on_child_failure: Literal["collect", "fail-fast", "absorb"] = "collect"


class Config(Struct, forbid_unknown_fields=True, rename="camel"):
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


def _worker(call: Call, number: int) -> ChildSpec | None:
    """The child for the worker with this number of the newest decision."""
    workers = call.decision.get("nextWorkerIds", [])
    if number >= len(workers):
        return None
    worker, config = workers[number], call.config
    wanted = config.get("perWorkerInputMappings", {}).get(worker, config.get("inputMapping", {}))
    known = call.variables
    seed = {mine: known[theirs] for mine, theirs in wanted.items() if theirs in known}
    unset = tuple(mine for mine in wanted if mine not in seed)
    isolated = config.get("memoryScopeIsolation") == "isolated"
    return ChildSpec(workflow_id=worker, seed=seed, unset=unset, absorb=True, isolated=isolated)


def _check(config: dict[str, Any]) -> str | None:
    try:
        found = msgspec.convert(config, Config)
    except msgspec.ValidationError as error:
        return f"config does not fit: {error}"
    join = found.join_policy
    if join is not None and found.fan_out_policy != "parallel":
        return "joinPolicy goes with fanOutPolicy parallel"
    if join is not None and join.mode == "quorum" and join.quorum is None:
        return "joinPolicy.quorum must say how many"
    return None


TYPE = NodeType(
    type_id="core.dispatch", kind=Kind.CHILD, child=_worker, check=_check, dispatches=True
)
