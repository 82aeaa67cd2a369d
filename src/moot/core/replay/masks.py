"""What a log hides, and what can therefore not be compared: masks, and what was made of secrets."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.events import Event
from moot.core.replay.carried_secrets import is_masked
from moot.core.replay.compare import Runs, alike
from moot.core.secrets import MASK
from moot.core.state.run import Run
from moot.core.workflows.definition import Connection
from moot.core.workflows.graph import Flow, FlowNode

#: all variables, or one whose name is only known when it is looked up
ANY_NAME = re.compile(r"""\bvariables\b(?!\s*\.\s*\w)(?!\s*\[\s*\\?['"])""")


class Veil(Struct, frozen=True):
    """``hides``: the definition calls something sensitive, or another run has handed a secret
    over. Where nothing is hidden a mask is a text like any other."""

    flow: Flow
    hides: bool = False

    def alike(self, expected: Any, found: Any, runs: Runs) -> bool:
        return (_alike if self.hides else alike)(expected, found, runs)

    def covers(self, run: Run, node: FlowNode | None) -> bool:
        """Whether the node may have seen a secret, so that only the record knows what came of
        it."""
        if not self.hides or node is None:
            return False
        inputs = node.definition.inputs.values()
        nodes = _nodes(self.flow, run)
        if any(isinstance(value, Connection) and value.node_id in nodes for value in inputs):
            return True
        # of everything else that a node sees, only variables are shown to it as they are
        names = _variables(self.flow, run)
        text = msgspec.json.encode([node.definition.config, list(inputs)]).decode()
        return bool(names) and (
            ANY_NAME.search(text) is not None or any(_mentions(text, name) for name in names)
        )

    def covers_channel(self, run: Run, name: str, value: Any) -> bool:
        return self.hides and (is_masked(value) or name in _channels(self.flow, run))


def veil_of(flow: Flow, start: Event) -> Veil:
    declared = (
        bool(flow.sensitive)
        or any(any((n.definition.output_sensitivity or {}).values()) for n in flow.nodes.values())
        or any(channel.sensitive for channel in flow.definition.channels.values())
    )
    handed = ("parentRunId" in start.payload or "forkedFrom" in start.payload) and is_masked(
        start.payload.get("variables", {})
    )
    return Veil(flow, flow.masking != "passthrough" and (declared or handed))


def _variables(flow: Flow, run: Run) -> set[str]:
    return {*flow.sensitive, *(name for name, value in run.variables.items() if is_masked(value))}


def _channels(flow: Flow, run: Run) -> set[str]:
    declared = {name for name, channel in flow.definition.channels.items() if channel.sensitive}
    return {*declared, *(name for name, value in run.channels.items() if is_masked(value))}


def _nodes(flow: Flow, run: Run) -> set[str]:
    return {
        name
        for name, node in flow.nodes.items()
        if any((node.definition.output_sensitivity or {}).values())
        or (name in run.nodes and is_masked(run.nodes[name].outputs or {}))
    }


def _mentions(text: str, name: str) -> bool:
    quoted = msgspec.json.encode(name).decode()[1:-1]
    return re.search(rf"(?<!\w){re.escape(quoted)}(?!\w)", text) is not None


def _alike(left: Any, right: Any, runs: Runs) -> bool:
    """A mask on either side is like anything; what stands beside it is compared."""
    if isinstance(left, dict) and isinstance(right, dict):
        return _same_keys(left, right) and all(
            _alike(left[key], right[key], runs) or alike({key: left[key]}, {key: right[key]}, runs)
            for key in left.keys() & right.keys()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _alike(one, other, runs) for one, other in zip(left, right, strict=True)
        )
    return alike(left, right, runs) or _matches(left, right) or _matches(right, left)


def _same_keys(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Names may be masked as well, each in the place of one or more."""
    ours, theirs = left.keys() - right.keys(), right.keys() - left.keys()
    if not ours and not theirs:
        return True
    masked = [key for key in (*ours, *theirs) if is_masked(key)]
    return bool(masked) and (set(masked) == ours or set(masked) == theirs)


def _matches(mask: Any, value: Any) -> bool:
    """Whether ``mask`` may be ``value`` with something hidden in it."""
    if not isinstance(mask, str) or not is_masked(mask):
        return False
    first, *parts = mask.split(MASK)
    if not parts or not (first or any(parts)):
        return True  # all of it is hidden
    if not isinstance(value, str) or not value.startswith(first):
        return False
    place = len(first)
    for part in parts[:-1]:
        place = value.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(value) - place >= len(parts[-1]) and value.endswith(parts[-1])
