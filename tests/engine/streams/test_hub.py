"""What waits for a reader is bounded, and what is over gets nothing more."""

import pytest

from moot.engine.streams import hub as hub_module
from moot.engine.streams.hub import Hub, Published

RUN = "run_a"


def event(sequence: int, size: int = 10) -> Published:
    return Published(sequence, "output.chunk", b"x" * size)


def test_large_events_send_a_reader_back_to_the_log_before_many_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MOST_WAITING", 1000)
    hub = Hub(backlog=256)
    reader = hub.subscribe(RUN)
    for sequence in range(2):
        hub.publish(RUN, [event(sequence, 400)])
    assert len(reader.waiting) == 2
    hub.publish(RUN, [event(2, 400)])
    assert (len(reader.waiting), reader.lagging) == (0, True)


def test_an_event_larger_than_all_that_may_wait_still_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MOST_WAITING", 1000)
    hub = Hub()
    reader = hub.subscribe(RUN)
    hub.publish(RUN, [event(0, 5000)])
    assert (len(reader.waiting), reader.lagging) == (1, False)


def test_what_was_taken_does_not_weigh_on_a_reader_that_keeps_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "MOST_WAITING", 1000)
    hub = Hub()
    reader = hub.subscribe(RUN)
    for sequence in range(20):
        hub.publish(RUN, [event(sequence, 400)])
        assert reader.waiting.popleft()
    assert not reader.lagging


def test_whoever_is_dismissed_gets_nothing_more() -> None:
    hub = Hub()
    mine, other = hub.subscribe(RUN, holder="key_a"), hub.subscribe(RUN, holder="key_b")
    hub.publish(RUN, [event(0)])
    hub.dismiss("key_a")
    hub.publish(RUN, [event(1)])
    assert (mine.closed, len(mine.waiting)) == (True, 0)
    assert (other.closed, len(other.waiting)) == (False, 2)
