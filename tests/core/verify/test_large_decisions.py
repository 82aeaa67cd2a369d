"""One decision may cause as many events as there are workers; its log is still found sound."""

from moot.core.runs.child_outputs import ChildEnded, ChildReport
from moot.core.runs.start import RunLimits
from moot.core.verify.walk import verify
from tests.support.core.simulator import TENANT
from tests.support.core.supervisors import DONE, hand, kids, planned, worker, world

MANY = 120


def test_a_decision_that_gives_up_hundreds_of_workers_is_verified() -> None:
    place = world(worker("w"), most_events=10_000, limits=RunLimits(tree=2 * MANY))
    config = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"}}
    life = place.start(planned(hand(*["w"] * MANY), DONE, dispatch=config))
    first, *_, last = kids(place, life)
    known = {last.run.run_id: ChildReport("cancelled", 2)}  # it has led to another run
    place.finish(first, "w")
    ended = ChildEnded(
        node_id="dis", child_run=first.run.run_id, status="completed", at=place.at,
        variables=first.run.variables, outputs={}, runs=1, seen=known,
    )  # fmt: skip
    place.take(life, ended)
    counted: dict[str, int] = {}
    for event in life.log:
        counted[event.timestamp] = counted.get(event.timestamp, 0) + 1
    assert max(counted.values()) > MANY - 2, counted
    assert verify(life.flow, TENANT, life.run.run_id, life.log) is None
