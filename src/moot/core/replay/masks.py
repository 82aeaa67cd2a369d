"""Masked values: verification cannot compare masks and values made from secrets."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.events import Event, payload_fields
from moot.core.replay.carried_secrets import is_masked
from moot.core.replay.compare import RunPair, is_alike
from moot.core.secrets import MASK
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.schema import ConnectionValue

#: an expression that reads all variables, or one with a computed name
ANY_NAME = re.compile(r"""\bvariables\b(?!\s*\.\s*\w)(?!\s*\[\s*\\?['"])""")


class MaskRules(Struct, frozen=True):
    """The rules for comparing masked values.

    ``hides`` means that the definition has sensitive values, or that another run handed a secret
    over. Otherwise a mask is plain text.
    """

    flow: Flow
    hides: bool = False

    def is_alike(self, expected: Any, recorded: Any, runs: RunPair) -> bool:
        return (_is_alike_masked if self.hides else is_alike)(expected, recorded, runs)

    def covers(self, run: Run, node: FlowNode | None) -> bool:
        """Return whether the node may have seen a secret, so that its result cannot be checked."""
        if not self.hides or node is None:
            return False
        inputs = node.definition.inputs.values()
        nodes = _secret_nodes(self.flow, run)
        if any(isinstance(value, ConnectionValue) and value.node_id in nodes for value in inputs):
            return True
        # other than inputs, a node sees only variables unmasked
        names = _secret_variables(self.flow, run)
        text = msgspec.json.encode([node.definition.config, list(inputs)]).decode()
        return bool(names) and (
            ANY_NAME.search(text) is not None or any(_mentions(text, name) for name in names)
        )

    def covers_channel(self, run: Run, name: str, value: Any) -> bool:
        return self.hides and (is_masked(value) or name in _secret_channels(self.flow, run))


def mask_rules(flow: Flow, start: Event) -> MaskRules:
    is_declared = (
        bool(flow.sensitive)
        or any(any((n.definition.output_sensitivity or {}).values()) for n in flow.nodes.values())
        or any(channel.sensitive for channel in flow.definition.channels.values())
    )
    fields = payload_fields(start)
    is_handed_over = ("parentRunId" in fields or "forkedFrom" in fields) and is_masked(
        fields.get("variables", {})
    )
    return MaskRules(flow, flow.masking != "passthrough" and (is_declared or is_handed_over))


def _secret_variables(flow: Flow, run: Run) -> set[str]:
    return {*flow.sensitive, *(name for name, value in run.variables.items() if is_masked(value))}


def _secret_channels(flow: Flow, run: Run) -> set[str]:
    declared = {name for name, channel in flow.definition.channels.items() if channel.sensitive}
    return {*declared, *(name for name, value in run.channels.items() if is_masked(value))}


def _secret_nodes(flow: Flow, run: Run) -> set[str]:
    return {
        name
        for name, node in flow.nodes.items()
        if any((node.definition.output_sensitivity or {}).values())
        or (name in run.nodes and is_masked(run.nodes[name].outputs or {}))
    }


def _mentions(text: str, name: str) -> bool:
    quoted = msgspec.json.encode(name).decode()[1:-1]
    return re.search(rf"(?<!\w){re.escape(quoted)}(?!\w)", text) is not None


def _is_alike_masked(left: Any, right: Any, runs: RunPair) -> bool:
    """Compare two values; a mask on either side equals anything, the text around it counts."""
    if isinstance(left, dict) and isinstance(right, dict):
        return _has_same_keys(left, right) and all(
            _is_alike_masked(left[key], right[key], runs)
            or is_alike({key: left[key]}, {key: right[key]}, runs)
            for key in left.keys() & right.keys()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _is_alike_masked(one, other, runs) for one, other in zip(left, right, strict=True)
        )
    return is_alike(left, right, runs) or _mask_matches(left, right) or _mask_matches(right, left)


def _has_same_keys(left: Mapping[str, object], right: Mapping[str, object]) -> bool:
    """Return whether the keys match; a masked key stands for one or more keys."""
    ours, theirs = left.keys() - right.keys(), right.keys() - left.keys()
    if not ours and not theirs:
        return True
    masked = [key for key in (*ours, *theirs) if is_masked(key)]
    return bool(masked) and (set(masked) == ours or set(masked) == theirs)


def _mask_matches(mask: Any, value: Any) -> bool:
    """Return whether ``mask`` may be ``value`` with parts of it masked."""
    if not isinstance(mask, str) or not is_masked(mask):
        return False
    first, *parts = mask.split(MASK)
    if not parts or not (first or any(parts)):
        return True  # the whole value is masked
    if not isinstance(value, str) or not value.startswith(first):
        return False
    place = len(first)
    for part in parts[:-1]:
        place = value.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return len(value) - place >= len(parts[-1]) and value.endswith(parts[-1])
