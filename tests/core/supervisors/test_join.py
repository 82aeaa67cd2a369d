"""Waves of children: every way of coming together, every mapping (protocol C.6, C.7)."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moot.core.children.handoff import TRANSITIONS
from moot.core.errors import BadRequest
from moot.core.state.run import fold
from moot.core.state.status import Status
from tests.support.core.random_flows import examples
from tests.support.core.simulator import Life, World
from tests.support.core.supervisors import (
    CHAIN,
    DONE,
    check_chains,
    end,
    fast,
    hand,
    kids,
    phases,
    planned,
    settle,
    variable,
    worker,
    world,
)  # fmt: skip
from tests.support.event_payloads import payload_json

MODES = ("wait-all", "quorum", "first", "race")
OUT = {"result": "out"}
RESULT = variable("result", "before")


def wave(names: tuple[str, ...], **config: Any) -> tuple[World, Life]:
    place = world(*(worker(name, variable("out", f"of {name}")) for name in names))
    config = {"fanOutPolicy": "parallel", "outputMapping": OUT, **config}
    return place, place.start(planned(hand(*names), DONE, dispatch=config, variables=[RESULT]))


def joined(life: Life) -> dict[str, Any]:
    [said] = life.told("core.dispatch.join")
    return payload_json(said)


def expected(mode: str, failure: str, ends: list[str]) -> tuple[str, int]:
    """The outcome of a wave of three with a quorum of two, and how many ends it takes."""
    good = bad = 0
    for number, how in enumerate(ends, 1):
        good, bad = good + (how == "completed"), bad + (how != "completed")
        if failure == "fail-fast" and bad:
            return "failed", number
        reached = {"wait-all": number == 3, "quorum": good == 2, "first": good == 1, "race": True}
        hopeless = {"quorum": bad == 2, "first": bad == 3}.get(mode, False)
        if reached[mode] or hopeless:
            if not reached[mode] and failure != "absorb":
                return "failed", number
            return ("partial" if bad else "satisfied"), number
    raise AssertionError("a wave of three is over after three")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", ["collect", "fail-fast", "absorb"])
@pytest.mark.parametrize(
    "ends",
    [
        ["completed"] * 3, ["failed"] * 3, ["failed", "completed", "completed"],
        ["completed", "cancelled", "completed"], ["completed", "failed", "failed"],
        ["cancelled", "failed", "completed"],
    ],
)  # fmt: skip
def test_every_mode_with_every_answer_to_failure(mode: str, failure: str, ends: list[str]) -> None:
    policy = {"mode": mode, "onChildFailure": failure, "quorum": 2}
    place, life = wave(("a", "b", "c"), joinPolicy=policy)
    outcome, takes = expected(mode, failure, ends)
    for child, how in list(zip(kids(place, life), ends, strict=True))[:takes]:
        assert not life.told("core.dispatch.join")
        end(place, child, how)
    said = joined(life)
    assert said["joinOutcome"] == outcome
    assert len(said["mergeOrder"]) == 3 and said["cancelledCount"] == 3 - takes + ends[
        :takes
    ].count("cancelled")
    assert said["completedCount"] == ends[:takes].count("completed")
    for loser in kids(place, life)[takes:]:
        assert loser.run.status is Status.CANCELLED
        assert payload_json(loser.log[-1])["parentRunId"] == life.run.run_id
        assert place.tell_parent(loser) == []
    good = [name for name, how in zip("abc", ends[:takes], strict=False) if how == "completed"]
    kept = "before" if outcome == "failed" or not good else f"of {good[-1]}"
    assert life.run.variables == {"result": kept}
    status = Status.FAILED if outcome == "failed" else Status.COMPLETED
    assert life.run.status is status
    if outcome == "failed":
        assert life.run.error is not None and life.run.error.code == "join_failed"
    check_chains(life)


def test_no_more_children_at_once_than_allowed_and_none_is_dropped() -> None:
    names = tuple("abcde")
    place, life = wave(names, maxConcurrency=2)
    assert payload_json(life.told("core.dispatch.fanOut")[0])["maxConcurrency"] == 2
    done = 0
    while not life.run.terminal:
        living = [each for each in kids(place, life) if not each.run.terminal]
        assert 1 <= len(living) <= 2
        end(place, living[-1])
        done += 1
    assert done == 5 and joined(life)["completedCount"] == 5
    check_chains(life)


def test_one_worker_is_no_wave() -> None:
    place, life = wave(("a",))
    end(place, kids(place, life)[0])
    assert not life.told("core.dispatch.fanOut") and life.run.variables == {"result": "of a"}


def test_the_same_worker_twice_has_two_chains() -> None:
    place = world(worker("a"))
    life = place.start(planned(hand("a", "a"), DONE, dispatch={"fanOutPolicy": "parallel"}))
    for child in kids(place, life):
        end(place, child)
    assert len({each.run.run_id for each in kids(place, life)}) == 2
    check_chains(life)


def test_reject_takes_one_worker_and_no_two() -> None:
    place = world(fast("a"), fast("b"))
    life = place.start(planned(hand("a", "b"), dispatch={"fanOutPolicy": "reject"}))
    assert life.run.error is not None and life.run.error.code == "fan_out_unsupported"
    assert phases(life) == []
    life = place.start(planned(hand("a"), DONE, dispatch={"fanOutPolicy": "reject"}))
    settle(place)
    assert life.run.status is Status.COMPLETED


def test_one_after_the_other_goes_on_after_a_failure() -> None:
    place = world(worker("a"), worker("b"))
    life = place.start(planned(hand("a", "b"), DONE))
    end(place, place.child_of(life), "failed")
    assert len(life.run.children) == 2
    end(place, place.child_of(life))
    assert life.run.status is Status.COMPLETED


def test_a_quorum_nobody_can_reach_fails_before_anyone_begins() -> None:
    policy = {"mode": "quorum", "quorum": 3}
    _place, life = wave(("a", "b"), joinPolicy=policy)
    assert life.run.status is Status.FAILED and not life.run.children


@pytest.mark.parametrize(
    "config",
    [
        {"inputMapping": "prdId"}, {"surprise": 1}, {"iterationCap": 0}, {"maxConcurrency": 0},
        {"fanOutPolicy": "all"}, {"joinPolicy": {"mode": "first"}},
        {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "quorum"}},
        {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "quorum", "quorum": 0}},
        {"workerDispatchModel": "node"}, {"askUserRouting": "letter"},
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        planned(DONE, dispatch=config)


# -- mappings ------------------------------------------------------------------------------------


def mapped(config: dict[str, Any], mine: list[Any], *theirs: dict[str, Any], **names: Any) -> Any:
    place = world(fast("a", *theirs), fast("b", *theirs))
    life = place.start(planned(hand("a", "b"), DONE, dispatch=config, variables=mine))
    settle(place)
    assert life.run.status is Status.COMPLETED
    check_chains(life)
    return life, [each.run.variables for each in kids(place, life)]


def test_inputs_are_mapped_from_the_parent() -> None:
    config = {"inputMapping": {"greeting": "name"}}
    _, (a, b) = mapped(config, [variable("name", "Alice")])
    assert a == b == {"greeting": "Alice"}


def test_an_unset_variable_stays_unset_and_beats_a_default() -> None:
    config = {"inputMapping": {"greeting": "name"}}
    _, (a, _) = mapped(config, [variable("name")], variable("greeting", "baked-in"))
    assert a == {}


def test_one_worker_has_a_mapping_of_its_own_and_the_other_the_common_one() -> None:
    config = {"inputMapping": {"input": "x"}, "perWorkerInputMappings": {"b": {"input": "shared"}}}
    _, (a, b) = mapped(config, [variable("x", "default-x"), variable("shared", "shared-value")])
    assert (a, b) == ({"input": "default-x"}, {"input": "shared-value"})


def test_an_empty_mapping_of_its_own_takes_nothing() -> None:
    config = {"outputMapping": OUT, "perWorkerOutputMappings": {"b": {}}}
    life, _ = mapped(config, [RESULT], variable("out", "x"))
    assert [p for p in phases(life) if p.startswith("output")] == ["output.harvested a"]


def test_a_variable_the_child_never_set_leaves_the_parent_s_alone() -> None:
    life, _ = mapped({"outputMapping": OUT}, [RESULT])
    assert life.run.variables == {"result": "before"}
    keys = [
        payload_json(e)["harvestedKeys"]
        for e in life.told(CHAIN)
        if "harvestedKeys" in payload_json(e)
    ]
    assert keys == [[], []]


@pytest.mark.parametrize("policy", ["sequential", "parallel"])
def test_a_secret_that_flows_back_is_in_no_log(policy: str) -> None:
    config = {"outputMapping": OUT, "fanOutPolicy": policy}
    mine = [variable("result", sensitive=True)]
    place = world(fast("a", variable("out", "sesame-a")), fast("b", variable("out", "sesame-b")))
    life = place.start(planned(hand("a", "b"), DONE, dispatch=config, variables=mine))
    settle(place)
    assert life.run.status is Status.COMPLETED
    assert life.sealed["var:result"] == "sesame-b"
    assert "sesame" not in repr(life.log)


def test_a_secret_that_flows_in_stays_one() -> None:
    config = {"perWorkerInputMappings": {"a": {"key": "token"}}}
    mine = [variable("token", sensitive=True)]
    place = world(worker("a"))
    life = place.start(
        planned(hand("a"), DONE, dispatch=config, variables=mine), inputs={"token": "sesame-open"}
    )
    child = kids(place, life)[0]
    assert child.sealed == {"var:key": "sesame-open"}
    assert "sesame" not in repr(child.log)


def test_what_the_parent_has_no_place_for_fails_the_node() -> None:
    place = world(fast("a", variable("out", "x")))
    config = {"outputMapping": {"talk": "out"}}
    flow = planned(hand("a"), DONE, dispatch=config, channels={"talk": {"reducer": "append"}})
    life = place.start(flow)
    settle(place)
    assert life.run.nodes["dis"].status == "failed" and life.run.status is Status.FAILED


# -- any plan ------------------------------------------------------------------------------------

NAMES = tuple("abcdefgh")
ENDS = ("completed", "failed", "cancelled")


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[str], dict[str, Any], int]:
    workers = draw(st.lists(st.sampled_from([*NAMES, *NAMES, "nobody"]), min_size=1, max_size=8))
    config: dict[str, Any] = {}
    mapping = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["out", "unset"]))
    if draw(st.booleans()):
        config["outputMapping"] = draw(mapping)
    if draw(st.booleans()):
        config["perWorkerOutputMappings"] = {draw(st.sampled_from(NAMES)): draw(mapping)}
    if draw(st.booleans()):
        config["fanOutPolicy"] = "parallel"
        failure = draw(st.sampled_from(["collect", "fail-fast", "absorb"]))
        quorum = draw(st.integers(1, 8))
        config["joinPolicy"] = {
            "mode": draw(st.sampled_from(MODES)), "onChildFailure": failure, "quorum": quorum
        }  # fmt: skip
        if draw(st.booleans()):
            config["maxConcurrency"] = draw(st.integers(1, 4))
    return workers, config, draw(st.integers(0, 2**32))


@examples(150)
@given(plans(), st.data())
def test_whatever_happens_to_a_wave_its_log_keeps_to_the_table(
    plan: tuple[list[str], dict[str, Any], int], data: st.DataObject
) -> None:
    workers, config, _ = plan
    place = world(*(worker(name, variable("out", f"of {name}")) for name in NAMES))
    life = place.start(planned(hand(*workers), DONE, dispatch=config))
    while not life.run.terminal:
        living = [each for each in kids(place, life) if not each.run.terminal]
        end(place, data.draw(st.sampled_from(living)), data.draw(st.sampled_from(ENDS)))
    assert not [each for each in kids(place, life) if not each.run.terminal]
    check_chains(life)
    _check_paths(life)
    _check_harvest(place, life, config)
    assert fold(life.run.run_id, life.log) == life.run == life.read_back
    cut = data.draw(st.integers(0, len(life.log)))
    assert place.folded(life, cut) == life.run or cut == 0


def _check_paths(life: Life) -> None:
    """Chain by chain, from its beginning: a path of the table."""
    chains: dict[str, list[str]] = {}
    for event in life.told(CHAIN):
        cause = event.causation_id
        path = chains.pop(str(cause), [])
        phase = payload_json(event)["phase"]
        assert (not path and not TRANSITIONS[phase]) or path[-1] in TRANSITIONS[phase]
        chains[event.event_id] = [*path, phase]
    ends = {path[-1] for path in chains.values()}
    assert ends <= {
        "dispatch.failed", "child.completed", "child.failed", "child.cancelled", "output.harvested"
    }  # fmt: skip


def _check_harvest(place: World, life: Life, config: dict[str, Any]) -> None:
    own = config.get("perWorkerOutputMappings", {})
    harvested = {}
    for event in life.told(CHAIN):
        if payload_json(event)["phase"] == "output.harvested":
            child, name = payload_json(event)["childRunId"], payload_json(event)["workerId"]
            assert place.lives[child].run.status is Status.COMPLETED
            wanted = own.get(name, config.get("outputMapping", {}))
            keys = [mine for mine, theirs in wanted.items() if theirs == "out"]
            assert wanted and payload_json(event)["harvestedKeys"] == keys
            harvested |= dict.fromkeys(keys, f"of {name}")
    assert life.run.variables == harvested
