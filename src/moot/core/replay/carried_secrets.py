"""Which secrets a branch has from its source, and which are gone.

A log shows masks only. What a run still holds is carried over when it is what the run held at the
fork; a default stands in the workflow; the rest nobody knows any more.
"""

from typing import Any

from msgspec import UNSET, Struct

from moot.core.events import Event
from moot.core.secrets import MASK
from moot.core.state.run import Run
from moot.core.state.status import NODE_TERMINAL
from moot.core.workflows.definition import Connection
from moot.core.workflows.graph import Flow

HASH = "sha256:"


class Carried(Struct):
    """By the names under which secrets are sealed."""

    sealed: dict[str, Any]
    #: needed for what is still to come, and gone
    lost: list[str]


def carried(run: Run, flow: Flow, log: list[Event], held: dict[str, Any], ended: bool) -> Carried:
    """``run`` is the source after its first events, ``log`` all of them; a source that has
    ``ended`` holds nothing any more."""
    found = Carried({}, [])
    if not _guarded(flow, log[0]) and not held:
        return found
    sealed = _sealed(flow, log[: run.next_sequence])
    changed = _touched(flow, log[run.next_sequence :])
    for name, sequence in sealed.items():
        if name in held and name not in changed:
            found.sealed[name] = held[name]
        elif (default := _default(flow, log[0], name, sequence)) is not UNSET:
            found.sealed[name] = default
        elif not ended and name not in changed and name not in held:
            continue  # it has never been set
        elif flow.masking != "passthrough" and _needed(run, flow, name):
            found.lost.append(name)
    return found


def _guarded(flow: Flow, start: Event) -> bool:
    """Whether anything of the run may be a secret at all."""
    return (
        bool(flow.sensitive)
        or "parentRunId" in start.payload
        or any(node.definition.output_sensitivity for node in flow.nodes.values())
    )


def _sealed(flow: Flow, log: list[Event]) -> dict[str, int]:
    """What is sealed after these events -> the event that sealed it."""
    found: dict[str, int] = {}
    for event in log:
        for name, hidden in _said(flow, event):
            found.pop(name, None)
            if hidden:
                found[name] = event.sequence
    return found


def _touched(flow: Flow, log: list[Event]) -> set[str]:
    return {name for event in log for name, _ in _said(flow, event)}


def _said(flow: Flow, event: Event) -> list[tuple[str, bool]]:
    """Names under which a value may be sealed, and whether the event hides it."""
    said = event.payload
    match event.type:
        case "run.started":
            shown = said.get("variables", {})
            omitted = flow.sensitive if flow.masking == "omit" else ()
            names = [*shown, *(name for name in omitted if name not in shown)]
            return [(f"var:{name}", _hides(flow, name, shown.get(name, MASK))) for name in names]
        case "variable.changed":
            name = said.get("name", "")
            return [(f"var:{name}", _hides(flow, name, said.get("next", MASK)))]
        case "node.completed":
            node = flow.nodes.get(event.node_id) if event.node_id is not UNSET else None
            marked = node.definition.output_sensitivity if node is not None else {}
            outputs = {**dict.fromkeys((k for k, yes in (marked or {}).items() if yes), MASK)}
            outputs |= said.get("outputs", {})
            return [(f"out:{event.node_id}:{p}", is_masked(v)) for p, v in outputs.items()]
        case "core.workflowChain.event" if event.hints is not UNSET:
            child = said.get("childRunId")
            harvest = event.hints.get("result", {}).get("harvest") or {}
            return [(f"harvest:{child}:{name}", name in flow.sensitive) for name in harvest]
        case _:
            return []


def _hides(flow: Flow, name: str, value: Any) -> bool:
    return name in flow.sensitive or is_masked(value)


def is_masked(value: Any) -> bool:
    """Whether a mask stands in it."""
    if isinstance(value, str):
        return MASK in value or (value.startswith(HASH) and len(value) == len(HASH) + 64)
    if isinstance(value, dict):
        return any(map(is_masked, value.values()))
    return isinstance(value, list) and any(map(is_masked, value))


def _default(flow: Flow, start: Event, name: str, sequence: int) -> Any:
    """What the workflow itself says, when nobody has said anything else since."""
    wanted = name.removeprefix("var:")
    if sequence or wanted in start.payload.get("inputs", {}):
        return UNSET
    for variable in flow.definition.variables:
        if variable.name == wanted and name.startswith("var:"):
            return variable.default_value
    return UNSET


def _needed(run: Run, flow: Flow, name: str) -> bool:
    """Any node may look at a variable; a sealed output is seen by whoever is connected to it."""
    if run.terminal:
        return False
    kind, _, rest = name.partition(":")
    if kind != "out":
        return True
    source, _, port = rest.rpartition(":")
    return any(
        isinstance(value, Connection) and (value.node_id, value.output_key) == (source, port)
        for key, node in flow.nodes.items()
        if key not in run.nodes or run.nodes[key].status not in NODE_TERMINAL
        for value in node.definition.inputs.values()
    )
