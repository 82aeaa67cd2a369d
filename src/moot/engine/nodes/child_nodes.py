"""Node types with child runs: core.subWorkflow, moot.forEach and core.dispatch.

A sub-workflow hands work to one child, a forEach to one for each item in order, and a dispatch
carries out the decision of a supervisor: it starts workers, asks a question, or ends the loop.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from moot.core.runs.readiness import PortProblem
from moot.core.workflows.node_types import (
    ATTESTATION,
    AttestationSpec,
    ChildSpec,
    NodeCall,
    NodeKind,
    NodeType,
)
from moot.core.workflows.peer_ids import is_peer_id, split_peer_id
from moot.engine.nodes.inputs import first_problem, is_text, misfit
from moot.engine.nodes.loop import bound_problem, iteration_limit, limit_error, loop_items

NameMap = dict[str, str]
ON_FAILURE = ("fail-parent", "absorb")
#: config key -> the variable that it names by default
ITEM_NAMES = {"itemVariable": "item", "indexVariable": "index"}


class ChildConfig(Struct, frozen=True, rename="camel"):
    """The config of a node that hands work to child runs of one workflow."""

    workflow_id: str
    input_mapping: NameMap = {}
    output_mapping: NameMap = {}
    on_child_failure: str = "fail-parent"
    propagate_cancellation: bool = True
    memory_scope_isolation: str | None = None
    output_attestation: Mapping[str, object] = {}


def _child_spec(call: NodeCall, extra: Mapping[str, object]) -> ChildSpec:
    """Return the child that the config describes. ``extra`` sets more of its variables."""
    config = msgspec.convert(call.config, ChildConfig)
    seed, unset = _seed_variables(call, config.input_mapping)
    return ChildSpec(
        workflow_id=config.workflow_id,
        seed={**seed, **extra},
        unset=tuple(name for name in unset if name not in extra),
        collect=config.output_mapping,
        absorb=config.on_child_failure == "absorb",
        detach_on_cancel=not config.propagate_cancellation,
        isolated=config.memory_scope_isolation == "isolated",
    )


def _seed_variables(call: NodeCall, mapping: NameMap) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the child's variables, and the names of those that the parent has not set."""
    values = call.variables
    seed = {mine: values[theirs] for mine, theirs in mapping.items() if theirs in values}
    return seed, tuple(mine for mine in mapping if mine not in seed)


def _check_child(config: Mapping[str, object]) -> str | None:
    name = config.get("workflowId")
    if not isinstance(name, str) or not name:
        return "config.workflowId must name the workflow to run"
    if is_peer_id(name) and split_peer_id(name) is None:
        return "config.workflowId must be PEER/WORKFLOW where it names one on another host"
    if config.get("waitForCompletion", True) is not True:
        return "config.waitForCompletion must be true: the host does not leave children behind"
    if config.get("onChildFailure", "fail-parent") not in ON_FAILURE:
        return f"config.onChildFailure must be one of {', '.join(ON_FAILURE)}"
    if not isinstance(config.get("propagateCancellation", True), bool):
        return "config.propagateCancellation must be true or false"
    if config.get("memoryScopeIsolation", "isolated") != "isolated":
        return "config.memoryScopeIsolation must be isolated, or left out to share the memory"
    maps = ("inputMapping", "outputMapping")
    return first_problem(*(misfit(config, key, _maps_names, "map names to names") for key in maps))


def _maps_names(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value.values())


# -- core.subWorkflow ----------------------------------------------------------------------------


def _only_child(call: NodeCall, number: int) -> ChildSpec | None:
    if number:
        return None
    spec, attestation = _child_spec(call, {}), call.config.get(ATTESTATION)
    if not attestation:
        return spec
    return replace(spec, attest=msgspec.convert(attestation, AttestationSpec))


def _check_sub_workflow(config: Mapping[str, object]) -> str | None:
    if problem := _check_child(config):
        return problem
    attestation, name = config.get(ATTESTATION, {}), str(config["workflowId"])
    if attestation and is_peer_id(name):
        return (
            f"config.{ATTESTATION} is for workflows of this host: '{name}' runs on"
            " another one. Run it without, and put an approval after it"
        )
    try:
        msgspec.convert(attestation, AttestationSpec)
    except msgspec.ValidationError as error:
        return f"config.{ATTESTATION} does not fit: {error}"
    return None


# -- moot.forEach --------------------------------------------------------------------------------


class _TooManyItems(PortProblem):
    """Raised before the first child starts, not after the last one that fits."""

    def __init__(self, limit: int) -> None:
        error = limit_error(limit)
        super().__init__(error.message)
        self.error = error


def _child_for_item(call: NodeCall, number: int) -> ChildSpec | None:
    items = loop_items(call)
    if items is None:
        raise PortProblem("There is nothing to go through: set config.items or the input items.")
    if len(items) > (limit := iteration_limit(call.config)):
        raise _TooManyItems(limit)
    if number >= len(items):
        return None
    item, index = (str(call.config.get(key, name)) for key, name in ITEM_NAMES.items())
    return _child_spec(call, {item: items[number], index: number})


def _check_for_each(config: Mapping[str, object]) -> str | None:
    names = (misfit(config, key, is_text, "name a variable") for key in ITEM_NAMES)
    return first_problem(_check_child(config), bound_problem(config), *names)


# -- core.dispatch -------------------------------------------------------------------------------


class JoinPolicy(Struct, forbid_unknown_fields=True, rename="camel"):
    """The rule for when parallel workers count as done."""

    mode: Literal["wait-all", "quorum", "first", "race"] = "wait-all"
    quorum: Annotated[int, Meta(ge=1)] | None = None
    on_child_failure: Literal["collect", "fail-fast", "absorb"] = "collect"


class DispatchConfig(Struct, forbid_unknown_fields=True, rename="camel"):
    ask_user_routing: Literal["auto", "conversation", "clarification"] = "auto"
    worker_dispatch_model: Literal["child-run"] = "child-run"
    fan_out_policy: Literal["sequential", "reject", "parallel"] = "sequential"
    iteration_cap: Annotated[int, Meta(ge=1)] | None = None
    input_mapping: NameMap = {}
    output_mapping: NameMap = {}
    per_worker_input_mappings: dict[str, NameMap] = {}
    per_worker_output_mappings: dict[str, NameMap] = {}
    join_policy: JoinPolicy | None = None
    max_concurrency: Annotated[int, Meta(ge=1)] | None = None
    memory_scope_isolation: Literal["isolated"] | None = None


def _worker(call: NodeCall, number: int) -> ChildSpec | None:
    """Return the child run for the worker with this number in the newest decision."""
    workers = [] if call.decision is None else call.decision.next_worker_ids
    if number >= len(workers):
        return None
    worker, config = workers[number], msgspec.convert(call.config, DispatchConfig)
    mapping = config.per_worker_input_mappings.get(worker, config.input_mapping)
    seed, unset = _seed_variables(call, mapping)
    isolated = config.memory_scope_isolation == "isolated"
    return ChildSpec(workflow_id=worker, seed=seed, unset=unset, absorb=True, isolated=isolated)


def _check_dispatch(config: Mapping[str, object]) -> str | None:
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


CHILD = NodeKind.CHILD

CHILD_NODES = (
    NodeType(type_id="moot.forEach", kind=CHILD, child=_child_for_item, check=_check_for_each),
    NodeType(
        type_id="core.subWorkflow",
        kind=CHILD,
        child=_only_child,
        check=_check_sub_workflow,
        attests=True,
    ),
    NodeType(
        type_id="core.dispatch",
        kind=CHILD,
        child=_worker,
        check=_check_dispatch,
        dispatches=True,
    ),
)
