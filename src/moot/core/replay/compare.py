"""Compare two events, and the end states of two runs.

Differences that each run has of its own do not count: its clock, its ids and derived ids.
"""

from moot.core.events import Event, NewEvent, payload_fields
from moot.core.payloads.comparison import RunPair, comparable_payload, is_alike
from moot.core.state.run import Run


def is_same_event(a: Event, b: Event) -> bool:
    """Return whether type, node and payload are the same."""
    return (a.type, a.node_id) == (b.type, b.node_id) and is_same_payload(
        a, b, (a.run_id, b.run_id)
    )


def is_same_payload(a: Event | NewEvent, b: Event | NewEvent, runs: RunPair) -> bool:
    """Return whether the payloads are the same, apart from the names and times of each run."""
    return is_alike(comparable_event(a), comparable_event(b), runs)


def comparable_event(event: Event | NewEvent) -> dict[str, object]:
    """Return the event's payload without times of the host and without the place of a fork."""
    is_turn = bool(event.hints) and "turn" in (event.hints or ())
    return comparable_payload(event.type, payload_fields(event), is_turn)


def diff_states(a: Run, b: Run) -> dict[str, object]:
    """Return the differences in status, variables and channels of two runs."""
    differences: dict[str, object] = {}
    if a.status != b.status:
        differences["status"] = {"a": a.status.value, "b": b.status.value}
    for part in ("variables", "channels"):
        ours, theirs = getattr(a, part), getattr(b, part)
        changed = {
            name: {
                **({"a": ours[name]} if name in ours else {}),
                **({"b": theirs[name]} if name in theirs else {}),
            }
            for name in sorted({*ours, *theirs})
            if name not in ours or name not in theirs or ours[name] != theirs[name]
        }
        if changed:
            differences[part] = changed
    return differences
