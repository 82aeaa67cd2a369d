"""Which version of an agent serves whom: every order of changes keeps a few things true."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from moot.core.agents.deployments import (
    BINDABLE_CHANNELS,
    CHANNELS,
    STATES,
    AgentDeployment,
    DeployedVersion,
    DeploymentChange,
    change_deployment,
    check_deployment_events,
    draw_version,
)
from moot.core.errors import BadRequest, Conflict

EMPTY = AgentDeployment(agent_id="local.agents.ada")
LEGAL = {
    ("draft", "test"), ("test", "staged"), ("staged", "active"), ("active", "paused"),
    ("paused", "active"), ("active", "deprecated"), ("active", "rolled-back"),
    ("active", "active"),
}  # fmt: skip

CHANGES = some.builds(
    DeploymentChange,
    version=some.sampled_from(["1", "2", "3"]),
    transition=some.sampled_from(["promote", "pause", "deprecate", "rollback", "adjust-canary"]),
    to_state=some.none() | some.sampled_from(STATES),
    channel=some.none() | some.sampled_from(CHANNELS),
    canary_percent=some.none() | some.sampled_from([0, 10, 50, 60, 100]),
)


@given(some.lists(CHANGES, max_size=12))
def test_what_a_change_tells_is_all_that_can_be_told(changes: list[DeploymentChange]) -> None:
    found = EMPTY
    for change in changes:
        try:
            found, told = change_deployment(found, change)
        except (BadRequest, Conflict):
            continue
        checked = check_deployment_events([[told.event_type, msgspec.to_builtins(told)]])
        assert checked == [told]


@pytest.mark.parametrize(
    "told",
    ["x", [[5, 6]], [["a"]], [["run.completed", {}]], [["moot.effect.finished", {}]],
     [["agent.decided", {"agentId": "host:ada"}]], [["deployment.promoted", {}]],
     [["deployment.promoted", {"agentId": "a", "toVersion": "1", "toState": "king"}]],
     [["deployment.promoted", {"agentId": "a", "toVersion": "1", "toState": "test", "by": "x"}]]],
)  # fmt: skip
def test_nothing_else_can_be_told_as_a_change(told: Any) -> None:
    with pytest.raises((BadRequest, msgspec.ValidationError)):
        check_deployment_events(told)


def done(*changes: tuple[str, str] | DeploymentChange) -> AgentDeployment:
    found = EMPTY
    for each in changes:
        if not isinstance(each, DeploymentChange):
            each = DeploymentChange(version=each[0], transition=each[1])  # type: ignore[arg-type]
        found, _ = change_deployment(found, each)
    return found


def active(version: str) -> list[tuple[str, str]]:
    return [(version, "promote")] * 3


@given(some.lists(CHANGES, max_size=30))
def test_whatever_is_asked_states_move_as_they_may_and_shares_add_up(
    asked: list[DeploymentChange],
) -> None:
    found = EMPTY
    for each in asked:
        try:
            after, told = change_deployment(found, each)
        except (BadRequest, Conflict):
            continue
        assert told.event_type.startswith("deployment.")
        for version in {*found.versions, *after.versions}:
            before, now = found.of(version).state, after.of(version).state
            back = each.transition == "rollback" and now == "active"
            assert before == now or (before, now) in LEGAL or back
        for channel in BINDABLE_CHANNELS:
            serving = after.serving(channel)
            assert sum(one.canary_percent == 100 for one in serving) <= 1
            assert sum(one.canary_percent for one in serving if one.canary_percent < 100) <= 100
            assert (draw_version(after, channel, "run_1") is None) == (not serving)
        found = after


@given(some.text(max_size=20))
def test_a_run_draws_the_same_however_often_it_draws(run_id: str) -> None:
    half = DeploymentChange(version="2", transition="promote", channel="stable", canary_percent=50)
    found = done(*active("1"), *active("2")[:2], half)
    assert draw_version(found, "stable", run_id) == draw_version(found, "stable", run_id)


def test_a_share_is_about_as_large_as_it_says() -> None:
    tenth = DeploymentChange(version="2", transition="promote", channel="stable", canary_percent=10)
    found = done(*active("1"), *active("2")[:2], tenth)
    lots = [draw_version(found, "stable", f"run_{number}") for number in range(2000)]
    assert 100 < lots.count("2") < 320


def test_who_takes_a_channel_knows_whose_it_was() -> None:
    found = done(*active("1"), *active("2"))
    assert found.of("2").rollback_pointer == "1" and found.of("1").channels == ()
    back = done(*active("1"), *active("2"), ("2", "rollback"))
    assert [one.version for one in back.serving("stable")] == ["1"]
    assert back.of("2") == DeployedVersion(version="2", state="rolled-back", rollback_pointer="1")


@pytest.mark.parametrize("change", [
    {"version": "1", "transition": "pause"},
    {"version": "1", "transition": "rollback"},
    {"version": "1", "transition": "deprecate"},
    {"version": "1", "transition": "promote", "to_state": "active"},
    {"version": "1", "transition": "adjust-canary", "canary_percent": 5},
])  # fmt: skip
def test_a_draft_can_only_be_tested(change: dict[str, Any]) -> None:
    with pytest.raises(Conflict):
        change_deployment(EMPTY, DeploymentChange(**change))


def test_shares_of_more_than_all_are_refused() -> None:
    def share(version: str) -> DeploymentChange:
        return DeploymentChange(
            version=version, transition="promote", channel="stable", canary_percent=60
        )

    found = done(*active("1"), *active("2")[:2], share("2"), *active("3")[:2])
    with pytest.raises(Conflict):
        change_deployment(found, share("3"))
