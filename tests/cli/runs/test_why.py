"""moot why: from an event back to what began it all."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.runs.why import find_root, walk_causes
from moot.cli.shared.events import read_event
from moot.core.events import Event
from tests.support.cli.commands import Cli
from tests.support.cli.runs import answered, events, finished, place, replayed, supervised, waiting
from tests.support.event_payloads import example_fields


def rows(moot: Cli, where: str) -> list[list[str]]:
    done = moot("why", where)
    assert done.code == 0, done.err
    return [line.split("\t") for line in done.lines()]


def test_every_event_leads_back_to_the_beginning_of_its_run(moot: Cli) -> None:
    run_id = answered(moot, "accept", comment="fine")
    for event in events(moot, run_id):
        found = rows(moot, f"{run_id}@{event['sequence']}")
        assert found[0][:3] == [run_id, str(event["sequence"]), event["type"]]
        assert found[-1][:3] == [run_id, "0", "run.started"]
        places = [int(row[1]) for row in found]
        assert places == sorted(places, reverse=True)


def test_what_was_harvested_goes_back_to_the_decision(moot: Cli) -> None:
    run_id = supervised(moot)
    at = place(moot, run_id, "core.workflowChain.event", phase="output.harvested")
    said = [row[4] for row in rows(moot, f"{run_id}@{at}")]
    assert said[:5] == [
        "hello output.harvested (text)", "hello child.completed", "hello dispatch.succeeded",
        "hello dispatch.began", "decided next-worker [hello] (confidence 0.9)",
    ]  # fmt: skip
    assert said[-1] == "run started"


def test_the_walk_goes_on_in_the_parent(moot: Cli) -> None:
    parent = supervised(moot)
    [child] = [row.split("\t")[0] for row in moot("run", "list", "--parent", parent).lines()]
    found = rows(moot, f"{child}@3")
    assert [row[0] for row in found if row[2] == "run.started"] == [child, parent]
    crossed = next(row for row in found if row[0] == parent)
    assert (crossed[2], crossed[4]) == ("node.dispatched", f"handed work to {child}")
    screen = moot.on_terminal("why", f"{child}@3", columns=80).out
    assert f"in {parent}" in screen.replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_a_replay_says_at_its_root_what_it_says_again(moot: Cli) -> None:
    source = finished(moot, "hello")
    copy = replayed(moot, source)
    found = rows(moot, f"{copy}@6")
    assert {row[0] for row in found} == {copy}
    assert found[-1][4] == f"run started, replay of {source} from the start"


def test_json_gives_whole_events_and_why_it_ends(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    found = json.loads(moot("why", f"{run_id}@4", "--json").out)
    assert (found["runId"], found["sequence"]) == (run_id, 4)
    assert found["steps"] == [events(moot, run_id)[number] for number in (4, 3, 1, 0)]
    assert found["root"] == {"kind": "beginning"}


def test_a_long_way_is_cut_and_says_where_to_go_on(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    found = moot("why", f"{run_id}@6", "-n", 2).lines()
    assert len(found) == 3
    assert found[-1].split("\t")[4] == f"there is more: moot why {run_id}@5"


def test_a_run_without_a_place_is_told_its_last_events(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    done = moot("why", run_id)
    assert done.code == 2
    assert f"moot why {run_id}@6. Its last ones are #2 variable.changed set-1" in done.err
    assert "#6 run.completed. All: moot run tail" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        ("{}@", 2, "the number is missing"),
        ("{}@six", 2, "'six' is no number of an event"),
        ("{}@-1", 2, "'-1' is no number"),
        ("{}@7", 5, "has no event #7; its last one is #6"),
        ("{}@999999999999999", 5, "its last one is #6"),
        ("zz9@1", 5, "no run starts with 'zz9'"),
        ("run_" + "a" * 20 + "@1", 5, "no run"),
    ],
)  # fmt: skip
def test_a_place_that_is_none_is_refused(moot: Cli, where: str, code: int, said: str) -> None:
    done = moot("why", where.format(finished(moot, "hello")))
    assert (done.code, said in done.err.lower()) == (code, True), done.err


def test_last_and_prefixes_name_the_run(moot: Cli) -> None:
    run_id = finished(moot, "hello")
    for name in ("@last", run_id[:12], run_id[4:14]):
        assert rows(moot, f"{name}@3")[0][0] == run_id


def test_eighty_columns_are_enough(moot: Cli) -> None:
    run_id = finished(moot, "hello", name="long " * 40)
    plain = moot.on_terminal("why", f"{run_id}@5", columns=80, NO_COLOR="1").out
    assert all(len(line) <= 80 for line in plain.splitlines())
    assert "…" in plain


def test_the_numbers_stand_beside_the_events_that_are_followed(moot: Cli) -> None:
    run_id = waiting(moot, "asks")
    shown = moot("run", "tail", run_id, "--no-follow").lines()
    assert [line.split()[1] for line in shown] == ["#0", "#1", "#2"]


# -- the walk itself, over logs no host would write ------------------------------------------------


def event(name: str, cause: str | None = None, **fields: Any) -> Event:
    known = {"eventId": name, "runId": "r", "sequence": 0, "timestamp": "", "type": "t"}
    caused = {} if cause is None else {"causationId": cause}
    return read_event({**known, "payload": {}, **caused, **fields})


@given(st.dictionaries(st.sampled_from("abcdef"), st.none() | st.sampled_from("abcdefz")))
def test_the_walk_ends_whatever_is_said_of_causes(causes: dict[str, str | None]) -> None:
    log = {name: event(name, cause) for name, cause in causes.items()}
    for first in log.values():
        steps = list(walk_causes(first, log.get, 4))
        assert 1 <= len(steps) <= 4
        assert len({step.event_id for step in steps}) == len(steps)
        for step, cause in pairwise(steps):
            assert step.causation_id == cause.event_id
        root = find_root(steps, log.get)
        assert (root.kind == "beginning") == (not steps[-1].causation_id)


def test_what_another_host_or_a_delivery_caused_is_the_root() -> None:
    start = example_fields("run.started", causationHostId="other.example")
    log = {"a": event("a", "b"), "b": event("b", "evt_1", type="run.started", payload=start)}
    steps = list(walk_causes(log["a"], log.get, 9))
    assert find_root(steps, log.get) == ("host", "evt_1", "other.example")
    delivered = [event("a", "dlv_1")]
    assert find_root(delivered, log.get) == ("outside", "dlv_1", None)
    alone = [event("a", "b")]
    assert find_root(alone, log.get) == ("limit", "b", None)
    around = [event("a", "b"), event("b", "a")]
    assert find_root(around, log.get) == ("circle", "a", None)


def test_a_delivery_that_began_a_run_is_where_the_walk_ends() -> None:
    log = {
        "r.0": event("r.0", "dlv_1", type="run.started"),
        "r.1": event("r.1", "r.0", type="roster.run.initiated"),
        "dlv_1": event("dlv_1", "r.1", type="trigger.delivery.attempted"),
        "r.3": event("r.3", "dlv_1", type="node.started"),
    }
    for first, expected in (("r.1", ["r.1", "r.0", "dlv_1"]), ("r.3", ["r.3", "dlv_1"])):
        steps = list(walk_causes(log[first], log.get, 9))
        assert [step.event_id for step in steps] == expected
        assert find_root(steps, log.get) == ("delivery", "dlv_1", None)
