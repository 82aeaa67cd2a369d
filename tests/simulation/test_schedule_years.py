"""Years of random schedules, with pauses and crashes: every slot comes to what its policy says."""

import os
import random
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime

import pytest

from tests.support.simulation.naive_calendar import DAY, YEARS, random_plan, slots_of
from tests.support.simulation.policy_oracle import Policy, due_times, verdicts
from tests.support.simulation.scheduler import Year

SEEDS = range(500 if os.environ.get("MOOT_LONG") == "1" else 20)
OVERLAPS = ("skip", "buffer-one", "buffer-all", "cancel-other", "allow")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_slot_of_a_year_comes_to_what_its_policy_says_and_never_twice(seed: int) -> None:
    chance = random.Random(seed)
    zone, number = list(YEARS.items())[seed % len(YEARS)]
    start = int(datetime(number, 1, 1, tzinfo=UTC).timestamp() * 1000) + chance.randrange(DAY)
    plan = random_plan(chance, zone, start)
    policy = Policy(
        overlap=chance.choice(OVERLAPS),
        catch_up=chance.choice(["one", "none", "all-within-window"]),
        window=chance.choice([0, 3600, 86_400, 30 * 86_400]),
        jitter=chance.choice([0, 0, 0, 30, 900]),
        name=f"sch_{seed}",
    )
    body = {
        "overlap": policy.overlap,
        "catchUp": policy.catch_up,
        "catchUpWindowSeconds": policy.window,
        "jitterSeconds": policy.jitter,
        "enabled": chance.random() < 0.9,
        **({"condition": {"queue": "leads"}} if chance.random() < 0.2 else {}),
    }
    year = Year(seed, plan, start, body)
    year.live()

    *slots, after_last = slots_of(plan, start, start + 400 * DAY) or [0]
    slots = [*slots, after_last] if plan.once else slots
    dues = due_times(slots, policy, after_last if not plan.once else 1 << 60)
    last = year.world.looks[-1].now
    expected = verdicts(
        {slot: due for slot, due in dues.items() if due <= last}, year.world, policy
    )
    assert what_became(year, slots) == expected
    never_against_the_rules(year, dues, policy)


def what_became(year: Year, slots: list[int]) -> dict[int, tuple[str, int]]:
    """For every slot the one thing that was recorded of it last; no two that are final."""
    found: dict[int, tuple[str, int]] = {}
    for when, fire in year.store.records:
        first = bisect_left(slots, fire.slot)
        named = slots[first : bisect_right(slots, fire.until or fire.slot)]
        assert len(named) == fire.count, fire
        for slot in named:
            assert fire.waited == (found.get(slot, ("",))[0] == "waiting"), fire
            assert fire.waited or slot not in found, fire
            what = {"start": "start", "buffer": "waiting"}.get(fire.act) or fire.reason or ""
            found[slot] = (what, 0 if what == "waiting" else when)
    return found


def never_against_the_rules(year: Year, dues: dict[int, int], policy: Policy) -> None:
    """What must hold whatever the policy says."""
    for when, fire in year.store.records:
        assert fire.due == dues[fire.slot]
        assert fire.due <= when
        if fire.act == "start":
            barred = [*year.world.rests, *year.world.offs]
            assert not any(start <= when < end for start, end in barred)
            assert not any(start <= fire.due < end for start, end in barred)
    if policy.overlap != "allow":
        assert year.store.most_at_once <= 1
