"""Two logs side by side: what corresponds to what, by cause rather than by number.

Pure. An event's address is what it is (type, node, attempt, worker, speaker, agent) under the
address of its cause; events with the same address correspond. What is left between two pairs is
matched by what it is alone. Nothing is matched across another pair, so both logs can be
read downwards.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

Event = dict[str, Any]
Log = Sequence[Event]
Places = list[tuple[int, int]]

#: what tells events of one type and node apart; agents may be at work at the same time
DETAILS = ("attempt", "phase", "workerId", "name", "channel", "agentId", "providerKey")


class Pair(NamedTuple):
    """An event of the left log, one of the right, or both: they correspond."""

    a: Event | None
    b: Event | None


def align(a: Log, b: Log) -> list[Pair]:
    """Every event of both logs, each in exactly one pair, in the order of its log."""
    lines: list[Pair] = []
    numbers: dict[Hashable, int] = {}
    addresses = _matched(_addresses(a, numbers), _addresses(b, numbers))
    for left, right, pair in _gaps(a, b, addresses):
        for before, after, kin in _gaps(left, right, _matched(_kinds(left), _kinds(right))):
            lines += [Pair(event, None) for event in before]
            lines += [Pair(None, event) for event in after]
            lines += kin
        lines += pair
    return lines


def what_it_is(event: Event) -> tuple[str, ...]:
    """What the same event of another run has in common with it."""
    said = event.get("payload") or {}
    turn = said.get("turn") or said.get("initialTurn") or said.get("finalTurn") or {}
    speaker = turn.get("from") if isinstance(turn, dict) else None
    details = (said.get(name) for name in DETAILS)
    return tuple(map(str, (event["type"], event.get("nodeId"), speaker, *details)))


def _addresses(events: Log, numbers: dict[Hashable, int]) -> list[int]:
    """A number for each address, the same in both logs; siblings that are alike are counted.

    A cause outside of the log is as good as none: where a run comes from is not what it does.
    """
    known: dict[Any, int] = {}
    seen: Counter[Hashable] = Counter()
    found: list[int] = []
    for event in events:
        kind = (known.get(event.get("causationId"), -1), what_it_is(event))
        address = numbers.setdefault((kind, seen[kind]), len(numbers))
        seen[kind] += 1
        known[event.get("eventId")] = address
        found.append(address)
    return found


def _kinds(events: Log) -> list[Hashable]:
    seen: Counter[Hashable] = Counter()
    found: list[Hashable] = []
    for kind in map(what_it_is, events):
        found.append((kind, seen[kind]))
        seen[kind] += 1
    return found


def _matched(a: Sequence[Hashable], b: Sequence[Hashable]) -> Places:
    """The most places that can be matched by equal keys without crossing. No key is there twice."""
    places = {key: place for place, key in enumerate(b)}
    return _rising([(place, places[key]) for place, key in enumerate(a) if key in places])


def _rising(pairs: Places) -> Places:
    """The longest part of them in which the right side rises, too (patience sorting)."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        pile = bisect_left(ends, right)
        before.append(last[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [right]
        last[pile : pile + 1] = [number]
    found: Places = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _gaps(a: Log, b: Log, matched: Places) -> Iterator[tuple[Log, Log, list[Pair]]]:
    """What lies before each pair on both sides, and the pair; at last what lies behind all."""
    left = right = 0
    for i, j in matched:
        yield a[left:i], b[right:j], [Pair(a[i], b[j])]
        left, right = i + 1, j + 1
    yield a[left:], b[right:], []
