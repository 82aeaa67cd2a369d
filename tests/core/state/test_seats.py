"""Who has which seat, given the log: the newest word for a name, and so many of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.core.catalogue import PAYLOADS
from moot.core.payloads.conversations import SeatClaimed, SeatLeft
from moot.core.state import conversation, thread_controls
from moot.core.state.run import Run
from tests.support.core.gates import council
from tests.support.event_payloads import event_with

NAMES = [f"host:n{number}" for number in range(5)]
SEATS = [f"seat-{number}" for number in range(3)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([SeatClaimed.event_type, SeatLeft.event_type]),
        st.sampled_from(NAMES),
        st.sampled_from(SEATS),
    ),
    max_size=30,
)  # fmt: skip


def tell(run: Run, type_: str, name: str, seat: str, at: int) -> None:
    event = event_with(
        event_id="e", run_id=run.run_id, sequence=0, type=type_, timestamp="", node_id="convo",
        payload={"conversationId": "c", "participantId": name, "seat": seat},
    )  # fmt: skip
    conversation.HANDLERS[PAYLOADS[type_]](run, event.payload, event, at)


@given(STEPS)
def test_a_name_has_the_newest_seat_until_who_has_it_leaves(
    steps: list[tuple[str, str, str]],
) -> None:
    run, has = council()[1].run, dict[str, str]()
    for at, (type_, name, seat) in enumerate(steps):
        tell(run, type_, name, seat, at)
        if type_ == SeatClaimed.event_type:
            has.pop(name, None)
            has[name] = seat
        elif has.get(name) == seat:
            del has[name]
    seats = run.conversations["convo"].state.seats
    assert [(name, held.seat) for name, held in seats.items()] == list(has.items())


def test_of_seats_without_end_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_controls, "MOST_NAMES", 3)
    run = council()[1].run
    for at, name in enumerate([*NAMES, NAMES[2]]):
        tell(run, SeatClaimed.event_type, name, f"seat-{at}", at)
    assert list(run.conversations["convo"].state.seats) == [NAMES[3], NAMES[4], NAMES[2]]
