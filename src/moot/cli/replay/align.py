"""Align two logs: match events by cause instead of by number. Pure.

The address of an event is its identity (type, node, attempt, worker, speaker, agent) under the
address of its cause. Events with the same address match. Events between two matches are matched
by identity alone. No match crosses another, so both logs can be read downwards.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from msgspec import UnsetType

from moot.cli.shared.logs import turn_fields
from moot.core.events import Event, payload_fields

Log = Sequence[Event]
Places = list[tuple[int, int]]

#: payload fields that distinguish events of one type and node
IDENTITY_FIELDS = ("attempt", "phase", "workerId", "name", "channel", "agentId", "providerKey")


class Pair(NamedTuple):
    """An event of the left log, one of the right, or two that match."""

    a: Event | None
    b: Event | None


def align(a: Log, b: Log) -> list[Pair]:
    """Return every event of both logs in exactly one pair, in the order of its log."""
    lines: list[Pair] = []
    numbers: dict[Hashable, int] = {}
    addresses = _match_keys(_event_addresses(a, numbers), _event_addresses(b, numbers))
    for left, right, pair in _split_at_pairs(a, b, addresses):
        for before, after, matched in _split_at_pairs(
            left, right, _match_keys(_event_kinds(left), _event_kinds(right))
        ):
            lines += [Pair(event, None) for event in before]
            lines += [Pair(None, event) for event in after]
            lines += matched
        lines += pair
    return lines


def event_identity(event: Event) -> tuple[str, ...]:
    """Return the fields that an event shares with its counterpart in another run."""
    payload, speaker = payload_fields(event), turn_fields(event).get("from")
    details = (payload.get(name) for name in IDENTITY_FIELDS)
    return tuple(map(str, (event.type, event.node_id, speaker, *details)))


def _event_addresses(events: Log, numbers: dict[Hashable, int]) -> list[int]:
    """Return a number for each address, the same in both logs; equal siblings are counted.

    A cause outside the log counts as no cause.
    """
    address_by_id: dict[str | UnsetType, int] = {}
    counts: Counter[Hashable] = Counter()
    addresses: list[int] = []
    for event in events:
        kind = (address_by_id.get(event.causation_id, -1), event_identity(event))
        address = numbers.setdefault((kind, counts[kind]), len(numbers))
        counts[kind] += 1
        address_by_id[event.event_id] = address
        addresses.append(address)
    return addresses


def _event_kinds(events: Log) -> list[Hashable]:
    counts: Counter[Hashable] = Counter()
    kinds: list[Hashable] = []
    for kind in map(event_identity, events):
        kinds.append((kind, counts[kind]))
        counts[kind] += 1
    return kinds


def _match_keys(a: Sequence[Hashable], b: Sequence[Hashable]) -> Places:
    """Return the places of equal keys, in order on both sides. No key occurs twice on one side."""
    places = {key: place for place, key in enumerate(b)}
    return _longest_rising([(place, places[key]) for place, key in enumerate(a) if key in places])


def _longest_rising(pairs: Places) -> Places:
    """Return the longest part in which the right side rises, too (patience sorting)."""
    ends: list[int] = []
    pile_tops: list[int] = []
    previous: list[int] = []
    for number, (_, right) in enumerate(pairs):
        pile = bisect_left(ends, right)
        previous.append(pile_tops[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [right]
        pile_tops[pile : pile + 1] = [number]
    rising: Places = []
    number = pile_tops[-1] if pile_tops else -1
    while number >= 0:
        rising.append(pairs[number])
        number = previous[number]
    return rising[::-1]


def _split_at_pairs(a: Log, b: Log, matched: Places) -> Iterator[tuple[Log, Log, list[Pair]]]:
    """Yield the events before each pair on both sides and the pair; at last those after all."""
    left = right = 0
    for i, j in matched:
        yield a[left:i], b[right:j], [Pair(a[i], b[j])]
        left, right = i + 1, j + 1
    yield a[left:], b[right:], []
