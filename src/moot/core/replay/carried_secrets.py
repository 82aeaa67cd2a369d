"""Carry secrets from a source to its fork, and find those that are lost.

A log holds masks only. A secret is carried when the source still has the value it had at the fork,
or when it is a default of the workflow.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct

from moot.core.events import Event, payload_fields
from moot.core.payloads.nodes import NodeCompleted, VariableChanged
from moot.core.payloads.runs import RunStarted
from moot.core.payloads.supervisors import HandoffStepped
from moot.core.secrets import MASK
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL
from moot.core.workflows.flow import Flow
from moot.core.workflows.schema import ConnectionValue

HASH_PREFIX = "sha256:"


class CarriedSecrets(Struct):
    """Secrets for a fork, by the names under which they are sealed."""

    sealed: dict[str, object]
    #: names that the rest of the run needs and that are gone
    lost: list[str]


def carry_secrets(
    run: Run, flow: Flow, log: list[Event], current: Mapping[str, object], ended: bool
) -> CarriedSecrets:
    """Return the secrets of a fork.

    ``run`` is the source at the fork, ``log`` the source's whole log. A source that has ``ended``
    holds no secrets any more.
    """
    carried = CarriedSecrets({}, [])
    if not _may_have_secrets(flow, log[0]) and not current:
        return carried
    sealed = _sealed_names(flow, log[: run.next_sequence])
    changed = _changed_names(flow, log[run.next_sequence :])
    for name, sequence in sealed.items():
        if name in current and name not in changed:
            carried.sealed[name] = current[name]
        elif (default := _default_value(flow, log[0], name, sequence)) is not UNSET:
            carried.sealed[name] = default
        elif not ended and name not in changed and name not in current:
            continue  # it was never set
        elif flow.masking != "passthrough" and _is_needed(run, flow, name):
            carried.lost.append(name)
    return carried


def _may_have_secrets(flow: Flow, start: Event) -> bool:
    """Return whether the run can have secrets at all."""
    return (
        bool(flow.sensitive)
        or "parentRunId" in payload_fields(start)
        or any(node.definition.output_sensitivity for node in flow.nodes.values())
    )


def _sealed_names(flow: Flow, log: list[Event]) -> dict[str, int]:
    """Return name -> sequence of the event that sealed it, for all names still sealed."""
    sealed: dict[str, int] = {}
    for event in log:
        for name, hidden in _sealed_by_event(flow, event):
            sealed.pop(name, None)
            if hidden:
                sealed[name] = event.sequence
    return sealed


def _changed_names(flow: Flow, log: list[Event]) -> set[str]:
    return {name for event in log for name, _ in _sealed_by_event(flow, event)}


def _sealed_by_event(flow: Flow, event: Event) -> list[tuple[str, bool]]:
    """Return the names whose values the event sets, each with whether the event masks it."""
    match event.payload:
        case RunStarted(variables=variables):
            omitted = flow.sensitive if flow.masking == "omit" else ()
            names = [*variables, *(name for name in omitted if name not in variables)]
            return [
                (f"var:{name}", _is_hidden(flow, name, variables.get(name, MASK))) for name in names
            ]
        case VariableChanged(name=name, next=value):
            return [(f"var:{name}", _is_hidden(flow, name, MASK if value is UNSET else value))]
        case NodeCompleted() as completed:
            node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
            marked = node.definition.output_sensitivity if node is not None else {}
            outputs = {**dict.fromkeys((k for k, yes in (marked or {}).items() if yes), MASK)}
            outputs |= completed.outputs
            return [(f"out:{event.node_id}:{p}", is_masked(v)) for p, v in outputs.items()]
        case HandoffStepped(child_run_id=child):
            result = event.known_hints.result
            harvest = (result.get("harvest") if isinstance(result, dict) else None) or {}
            return [(f"harvest:{child}:{name}", name in flow.sensitive) for name in harvest]
        case _:
            return []


def _is_hidden(flow: Flow, name: str, value: Any) -> bool:
    return name in flow.sensitive or is_masked(value)


def is_masked(value: Any) -> bool:
    """Return whether the value contains a mask."""
    if isinstance(value, str):
        return MASK in value or (
            value.startswith(HASH_PREFIX) and len(value) == len(HASH_PREFIX) + 64
        )
    if isinstance(value, dict):
        return any(map(is_masked, value.values()))
    return isinstance(value, list) and any(map(is_masked, value))


def _default_value(flow: Flow, start: Event, name: str, sequence: int) -> Any:
    """Return the workflow's default when the run has never replaced it, else UNSET."""
    wanted = name.removeprefix("var:")
    if sequence or wanted in payload_fields(start).get("inputs", {}):
        return UNSET
    for variable in flow.definition.variables:
        if variable.name == wanted and name.startswith("var:"):
            return variable.default_value
    return UNSET


def _is_needed(run: Run, flow: Flow, name: str) -> bool:
    """Return whether a later node can read the value: any for a variable, else a connected one."""
    if run.terminal:
        return False
    kind, _, rest = name.partition(":")
    if kind != "out":
        return True
    source, _, port = rest.rpartition(":")
    return any(
        isinstance(value, ConnectionValue) and (value.node_id, value.output_key) == (source, port)
        for key, node in flow.nodes.items()
        if key not in run.nodes or run.nodes[key].status not in NODE_TERMINAL
        for value in node.definition.inputs.values()
    )
