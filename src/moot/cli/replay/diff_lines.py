"""Turn a comparison of two logs into stretches and fork edits. Pure."""

from collections.abc import Iterator, Mapping
from itertools import dropwhile, groupby, takewhile
from typing import NamedTuple

from moot.cli.replay.align import Pair, align
from moot.cli.replay.compare import differing_paths, is_same
from moot.cli.shared.events import event_fields
from moot.cli.shared.logs import inner_object
from moot.core.events import Event, payload_fields
from moot.core.payloads.nodes import VariableChanged
from moot.core.payloads.runs import RunStarted
from moot.core.sentences.forks import replaced_kind

JsonFields = Mapping[str, object]


class Stretch(NamedTuple):
    """Consecutive pairs of one kind: same, changed, removed (left only) or added (right only)."""

    op: str
    pairs: list[Pair]


def compare_logs(a: list[Event], b: list[Event]) -> list[Stretch]:
    """Return the whole comparison. The edits of a fork explain its changed start event."""
    is_fork = source_and_fork(a, b) is not None
    groups = groupby(align(a, b), key=lambda pair: _pair_op(pair, is_fork))
    return [Stretch(op, list(pairs)) for op, pairs in groups]


def _pair_op(pair: Pair, is_fork: bool) -> str:
    if pair.b is None:
        return "removed"
    if pair.a is None:
        return "added"
    is_start = is_fork and pair.a.type == pair.b.type == RunStarted.event_type
    return "same" if is_start or is_same(pair.a, pair.b) else "changed"


def count_common(stretches: list[Stretch]) -> int:
    """Return how many events both have in common before the first difference."""
    return len(stretches[0].pairs) if stretches and stretches[0].op == "same" else 0


def stretches_json(stretches: list[Stretch]) -> list[dict[str, object]]:
    """Return one object for each pair; equal events only have numbers."""
    return [_pair_json(stretch.op, pair) for stretch in stretches for pair in stretch.pairs]


def _pair_json(op: str, pair: Pair) -> dict[str, object]:
    line: dict[str, object] = {"op": op}
    for side, event in (("a", pair.a), ("b", pair.b)):
        if event is not None:
            line[side] = event.sequence
            if op != "same":
                line[f"{side}Event"] = event_fields(event)
    if op == "changed" and pair.a is not None and pair.b is not None:
        line["paths"] = differing_paths(pair.a, pair.b)
    return line


class ForkEditLine(NamedTuple):
    """One change that a fork made. None means no value, or a value that events show."""

    what: str
    before: object
    after: object


def source_and_fork(a: list[Event], b: list[Event]) -> tuple[list[Event], list[Event]] | None:
    """Return the source and its fork when one run is the fork of the other."""
    for source, fork in ((a, b), (b, a)):
        if source and fork_origin(fork).get("sourceRunId") == source[0].run_id:
            return source, fork
    return None


def fork_origin(events: list[Event]) -> dict[str, object]:
    return inner_object(payload_fields(events[0]), "forkedFrom") if events else {}


def fork_edits(source: list[Event], fork: list[Event]) -> Iterator[ForkEditLine]:
    """Yield the edits, read from the start of both logs and from where they part."""
    old_start, new_start = payload_fields(source[0]), payload_fields(fork[0])
    new_models = _chosen_models(new_start)
    old_models = _chosen_models(old_start)
    old_models = {**_used_models(source, {*new_models} - {*old_models}), **old_models}
    old_inputs, new_inputs = (inner_object(start, "inputs") for start in (old_start, new_start))
    yield from _changed_values("input", old_inputs, new_inputs)
    yield from _changed_values("model", old_models, new_models)
    yield from _changed_values("option", _run_options(old_start), _run_options(new_start))
    origin = fork_origin(fork)
    place = origin.get("fromSeq")
    at = place if isinstance(place, int) else 0
    variables = dict(inner_object(old_start, "variables"))
    for event in source[:at]:
        variables |= _variable_set(event)
    for event in takewhile(
        _is_set_by_hand, dropwhile(lambda event: not _is_set_by_hand(event), fork[at:])
    ):
        yield from _changed_values("variable", variables, variables | _variable_set(event))
    if kind := replaced_kind(origin):
        yield ForkEditLine(f"{kind} #{at}", None, None)


def _is_set_by_hand(event: Event) -> bool:
    """Whether a user set the variable, and not a node."""
    return event.type == VariableChanged.event_type and "by" in payload_fields(event)


def _changed_values(word: str, old: JsonFields, new: JsonFields) -> Iterator[ForkEditLine]:
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield ForkEditLine(f"{word}.{name}", old.get(name), new.get(name))


def _chosen_models(start: JsonFields) -> JsonFields:
    return inner_object(inner_object(start, "configurable"), "models")


def _used_models(source: list[Event], agents: set[str]) -> JsonFields:
    """Return the models that these agents used where the run had chosen none."""
    models: dict[str, object] = {}
    for event in source if agents else ():
        payload = payload_fields(event)
        full = str(payload.get("agentId", ""))
        for name in {full, full.removeprefix("host:")} & agents:
            if model := inner_object(payload, "usage").get("model"):
                models.setdefault(name, model)
    return models


def _run_options(start: JsonFields) -> JsonFields:
    options = inner_object(start, "configurable")
    rest = {name: value for name, value in options.items() if name != "models"}
    return {**rest, **{name: start[name] for name in ("tags", "metadata") if name in start}}


def _variable_set(event: Event) -> dict[str, object]:
    if event.type != VariableChanged.event_type:
        return {}
    payload = payload_fields(event)
    return {str(payload["name"]): payload.get("next")}
