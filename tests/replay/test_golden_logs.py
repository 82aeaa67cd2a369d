"""Every log a released version has written is read for ever, to the same state."""

from pathlib import Path

import msgspec
import pytest

from moot.core.catalogue import CATALOGUE, TERMINAL_TYPES
from moot.core.state.run import Run, apply, fold
from tests.support.replay.golden_logs import LOGS, beside, folded, pretty, read_log, shown

GOLDEN = sorted(LOGS.glob("*.jsonl"))


def test_there_are_golden_logs_and_each_has_its_state_beside_it() -> None:
    assert len(GOLDEN) >= 7
    assert {path.stem for path in LOGS.iterdir()} == {path.stem for path in GOLDEN}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_log_still_folds_to_what_it_meant(path: Path) -> None:
    assert pretty(shown(folded(read_log(path)))) == beside(path).read_bytes()


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_log_can_be_read_in_parts(path: Path) -> None:
    events = read_log(path)
    whole = folded(events)
    for cut in range(1, len(events)):
        cached = msgspec.json.encode(fold(whole.run_id, events[:cut]))
        run = msgspec.json.decode(cached, type=Run)
        for event in events[cut:]:
            apply(run, event)
        assert run == whole


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_old_log_is_whole(path: Path) -> None:
    events = read_log(path)
    assert [event.sequence for event in events] == list(range(len(events)))
    assert events[0].type == "run.started" and events[-1].type in TERMINAL_TYPES
    known = {row.name for row in CATALOGUE}
    assert {event.type for event in events} <= known


def test_the_golden_logs_speak_of_nearly_everything() -> None:
    """A new type of event comes with a log that has it."""
    seen = {event.type for path in GOLDEN for event in read_log(path)}
    unseen = {row.name for row in CATALOGUE} - seen
    assert unseen <= {
        "workflow.loopback-limit", "model.capability.insufficient", "replay.diverged",
        "moot.tool.reopened",
    }  # fmt: skip
