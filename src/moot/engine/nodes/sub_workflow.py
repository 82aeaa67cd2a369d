"""The node type ``core.subWorkflow``: hand work to one child run and wait for it."""

from typing import Any

import msgspec
from msgspec.structs import replace

from moot.core.workflows.node_types import (
    ATTESTATION,
    AttestationSpec,
    ChildSpec,
    NodeCall,
    NodeKind,
    NodeType,
)
from moot.core.workflows.peer_ids import is_peer_id, split_peer_id
from moot.engine.nodes.inputs import first_problem, mapping_problem

ON_FAILURE = ("fail-parent", "absorb")


def child_spec(call: NodeCall, extra: dict[str, Any]) -> ChildSpec:
    """Return the child that the config describes. ``extra`` sets more of its variables."""
    config = call.config
    mapping: dict[str, str] = config.get("inputMapping", {})
    variables = call.variables
    seed = {mine: variables[theirs] for mine, theirs in mapping.items() if theirs in variables}
    unset = (mine for mine in mapping if mine not in seed and mine not in extra)
    return ChildSpec(
        workflow_id=config["workflowId"],
        seed={**seed, **extra},
        unset=tuple(unset),
        collect=config.get("outputMapping", {}),
        absorb=config.get("onChildFailure") == "absorb",
        detach_on_cancel=config.get("propagateCancellation") is False,
        isolated=config.get("memoryScopeIsolation") == "isolated",
    )


def check_child(config: dict[str, Any]) -> str | None:
    return first_problem(
        _workflow_problem(config),
        _waiting_problem(config),
        mapping_problem(config, "inputMapping"),
        mapping_problem(config, "outputMapping"),
    )


def _workflow_problem(config: dict[str, Any]) -> str | None:
    name = config.get("workflowId")
    if not isinstance(name, str) or not name:
        return "config.workflowId must name the workflow to run"
    if is_peer_id(name) and split_peer_id(name) is None:
        return "config.workflowId must be PEER/WORKFLOW where it names one on another host"
    return None


def _waiting_problem(config: dict[str, Any]) -> str | None:
    if config.get("waitForCompletion", True) is not True:
        return "config.waitForCompletion must be true: the host does not leave children behind"
    if config.get("onChildFailure", "fail-parent") not in ON_FAILURE:
        return f"config.onChildFailure must be one of {', '.join(ON_FAILURE)}"
    if not isinstance(config.get("propagateCancellation", True), bool):
        return "config.propagateCancellation must be true or false"
    if config.get("memoryScopeIsolation", "isolated") != "isolated":
        return "config.memoryScopeIsolation must be isolated, or left out to share the memory"
    return None


def _child(call: NodeCall, number: int) -> ChildSpec | None:
    if number:
        return None
    spec, attestation = child_spec(call, {}), call.config.get(ATTESTATION)
    return (
        replace(spec, attest=msgspec.convert(attestation, AttestationSpec)) if attestation else spec
    )


def _check(config: dict[str, Any]) -> str | None:
    return check_child(config) or _attestation_problem(config)


def _attestation_problem(config: dict[str, Any]) -> str | None:
    attestation = config.get(ATTESTATION, {})
    if attestation and is_peer_id(config["workflowId"]):
        return (
            f"config.{ATTESTATION} is for workflows of this host: '{config['workflowId']}' runs on"
            " another one. Run it without, and put an approval after it"
        )
    try:
        msgspec.convert(attestation, AttestationSpec)
    except msgspec.ValidationError as error:
        return f"config.{ATTESTATION} does not fit: {error}"
    return None


TYPE = NodeType(
    type_id="core.subWorkflow", kind=NodeKind.CHILD, child=_child, check=_check, attests=True
)
