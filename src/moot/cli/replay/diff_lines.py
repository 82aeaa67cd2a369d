"""A comparison of two logs as the lines that are worth reading. Pure."""

from collections.abc import Iterator
from itertools import dropwhile, groupby, takewhile
from typing import Any, NamedTuple

from moot.cli.replay.align import Event, Pair, align
from moot.cli.replay.compare import differing, same
from moot.cli.replay.lineage import replaced


class Stretch(NamedTuple):
    """Pairs in a row of one kind: same, changed, removed (left only) or added (right only)."""

    op: str
    pairs: list[Pair]


def stretches(a: list[Event], b: list[Event]) -> list[Stretch]:
    """The whole comparison. How a fork's beginning was changed is told by its edits."""
    kin = forked(a, b) is not None
    found = groupby(align(a, b), key=lambda pair: _op(pair, kin))
    return [Stretch(op, list(pairs)) for op, pairs in found]


def _op(pair: Pair, kin: bool) -> str:
    if pair.b is None:
        return "removed"
    if pair.a is None:
        return "added"
    begins = kin and pair.a["type"] == pair.b["type"] == "run.started"
    return "same" if begins or same(pair.a, pair.b) else "changed"


def common(found: list[Stretch]) -> int:
    """How many events both have in common before anything differs."""
    return len(found[0].pairs) if found and found[0].op == "same" else 0


def as_json(found: list[Stretch]) -> list[dict[str, Any]]:
    """One object for each line. Where nothing differs, numbers are enough."""
    return [_line(stretch.op, pair) for stretch in found for pair in stretch.pairs]


def _line(op: str, pair: Pair) -> dict[str, Any]:
    line: dict[str, Any] = {"op": op}
    for side, event in (("a", pair.a), ("b", pair.b)):
        if event is not None:
            line[side] = event["sequence"]
            if op != "same":
                line[f"{side}Event"] = event
    if op == "changed" and pair.a is not None and pair.b is not None:
        line["paths"] = differing(pair.a, pair.b)
    return line


class Edit(NamedTuple):
    """What a fork was told to do otherwise. None stands for nothing, or for what is told below."""

    what: str
    before: Any
    after: Any


def forked(a: list[Event], b: list[Event]) -> tuple[list[Event], list[Event]] | None:
    """The source and its fork, when one of the two is the fork of the other."""
    for source, fork in ((a, b), (b, a)):
        if source and origin(fork).get("sourceRunId") == source[0]["runId"]:
            return source, fork
    return None


def origin(events: list[Event]) -> dict[str, Any]:
    told = events[0]["payload"].get("forkedFrom") if events else None
    return told if isinstance(told, dict) else {}


def edits(source: list[Event], fork: list[Event]) -> Iterator[Edit]:
    """Read from both logs: how they begin, and what was set where they part."""
    was, now = source[0]["payload"], fork[0]["payload"]
    chosen = _models(now)
    models = _models(was)
    models = {**_spoken_through(source, {*chosen} - {*models}), **models}
    yield from _differing("input", was.get("inputs", {}), now.get("inputs", {}))
    yield from _differing("model", models, chosen)
    yield from _differing("option", _options(was), _options(now))
    told = origin(fork)
    at = told.get("fromSeq", 0)
    known = dict(was.get("variables", {}))
    for event in source[:at]:
        known |= _set_by(event)
    for event in takewhile(_by_hand, dropwhile(lambda event: not _by_hand(event), fork[at:])):
        yield from _differing("variable", known, known | _set_by(event))
    if kind := replaced(told):
        yield Edit(f"{kind} #{at}", None, None)


def _by_hand(event: Event) -> bool:
    """Whether somebody set a variable, and no node did."""
    return event["type"] == "variable.changed" and "by" in event["payload"]


def _differing(word: str, was: dict[str, Any], now: dict[str, Any]) -> Iterator[Edit]:
    for name in {**was, **now}:
        if was.get(name) != now.get(name):
            yield Edit(f"{word}.{name}", was.get(name), now.get(name))


def _models(start: dict[str, Any]) -> dict[str, Any]:
    found = start.get("configurable", {}).get("models", {})
    return found if isinstance(found, dict) else {}


def _spoken_through(source: list[Event], agents: set[str]) -> dict[str, Any]:
    """By which models these agents spoke, where nothing had been said about it."""
    found: dict[str, Any] = {}
    for event in source if agents else ():
        said = event["payload"]
        full, used = str(said.get("agentId", "")), said.get("usage")
        for name in {full, full.removeprefix("host:")} & agents:
            if isinstance(used, dict) and used.get("model"):
                found.setdefault(name, used["model"])
    return found


def _options(start: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in start.get("configurable", {}).items()
            if name != "models"}  # fmt: skip
    return {**rest, **{name: start[name] for name in ("tags", "metadata") if name in start}}


def _set_by(event: Event) -> dict[str, Any]:
    said = event["payload"]
    return {said["name"]: said.get("next")} if event["type"] == "variable.changed" else {}
