"""A host that turns the clockwork of one schedule through a year, and dies now and then.

What it commits it keeps; what it only knew is gone with it. Time is a number.
"""

import random
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from moot.core.errors.schedules import ScheduleRefused
from moot.core.schedules.decide import decide_fires, new_ledger
from moot.core.schedules.manual import skip_next_slot
from moot.core.schedules.model import (
    BlockedPeriod,
    Fire,
    FireDecision,
    Schedule,
    ScheduleFacts,
    SlotLedger,
)
from moot.core.schedules.parse import parse_schedule
from moot.core.schedules.pauses import block_starts, unblock_starts
from tests.support.simulation.naive_calendar import DAY, HOUR, Plan
from tests.support.simulation.policy_oracle import Look, World

MINUTE = 60_000
NEVER = 1 << 60


class Crash(Exception):
    pass


class Store:
    """Transactions by copying: whoever dies before ``commit`` has changed nothing."""

    def __init__(self, spec: Schedule, ledger: SlotLedger) -> None:
        self.spec = spec
        self.ledger = ledger
        #: of the runs that are going, when they end
        self.going: dict[str, int] = {}
        self.claimed: set[str] = set()
        self.records: list[tuple[int, Fire]] = []
        self.most_at_once = 0

    def commit(self, now: int, decision: FireDecision, lasts: Callable[[int], int]) -> None:
        started = [fire for fire in decision.fires if fire.act == "start"]
        keys = [fire.key(self.spec.schedule_id) for fire in started]
        assert len({*keys}) == len(keys) and self.claimed.isdisjoint(keys), "claimed twice"
        self.claimed.update(keys)
        self.ledger = decision.ledger
        self.records += [(now, fire) for fire in decision.fires]
        for key, fire in zip(keys, started, strict=True):
            for run_id in fire.cancels:
                del self.going[run_id]
            self.going[key] = now + lasts(fire.slot)
        self.most_at_once = max(self.most_at_once, len(self.going))


class Year:
    """One schedule, one year, one chance."""

    def __init__(self, seed: int, plan: Plan, start: int, policy: dict[str, Any]) -> None:
        self._chance = random.Random(f"year {seed}")
        self._seed = seed
        self._end = start + 365 * DAY
        body = {"workflowId": "w", **plan.body(self._chance), **policy}
        spec = parse_schedule(body, f"sch_{seed}", start)
        self.store = Store(spec, new_ledger(spec, start))
        self.world = World(offs=[] if spec.enabled else [[start, NEVER]])
        self._script = self._scripted(start)
        self._now = start
        self._wake: int | None = start
        self._crashes = self._chance.choice([0, 0.002, 0.01, 0.03])
        self._long_runs = self._chance.choice([0, 0.1, 0.5])

    def live(self) -> None:
        while (moment := max(self._now, self._next_moment())) < self._end:
            self._now = moment
            try:
                self._step(moment)
            except Crash:
                self._restart()

    def _scripted(self, start: int) -> list[tuple[int, str]]:
        """Things that happen in the year, the latest first."""
        odds = {
            "outage": 12, "pause": 8, "resume": 4, "switch": 3, "look": 20, "skip": 8, "leave": 8,
        }  # fmt: skip
        busy = self._chance.choice([0, 1, 1, 3])
        names = [name for name, count in odds.items() for _ in range(count * busy)]
        names += ["switch"] * (not self.store.spec.enabled)
        times = [start + self._chance.randrange(1, 365 * DAY) for _ in names]
        # often right at the full hour, where it hurts
        times = [t - t % HOUR + self._chance.choice([-1, 0, 1]) if t % 2 else t for t in times]
        return sorted(zip(times, names, strict=True), reverse=True)

    def _next_moment(self) -> int:
        wake = NEVER if self._wake is None else self._wake
        ends = min(self.store.going.values(), default=NEVER)
        return min(wake, ends, self._script[-1][0] if self._script else NEVER, self._end)

    def _step(self, now: int) -> None:
        if self._script and self._script[-1][0] <= now:
            self._act(now, self._script.pop()[1])
        elif any(end <= now for end in self.store.going.values()):
            self._end_runs(now)
            if self.store.ledger.buffered:
                self._look(now)
        else:
            self._look(now + self._chance.choice([0, 0, 3, 40, 800, 4000, 9000, 100_000]))

    def _look(self, now: int) -> None:
        self._now = now
        self._end_runs(now)
        store = self.store
        for _ in range(20):
            work = store.spec.condition is None or (now // HOUR) % 5 != 0
            seen = ScheduleFacts(now=now, going=tuple(store.going), work=work, bars=self._away())
            decision = decide_fires(store.spec, store.ledger, seen)
            self._may_crash()
            self.world.looks.append(
                Look(now, bool(store.going), work, self._paused(now), store.spec.enabled)
            )
            store.commit(now, decision, self._lasts)
            self._wake = decision.wake_at
            self._may_crash()
            if not decision.more:
                assert self._wake is None or self._wake > now
                return
        raise AssertionError("a backlog without end")

    def _act(self, now: int, name: str) -> None:
        if name == "outage":
            raise Crash
        # to look first is good manners, but nothing may depend on it
        if name == "look" or self._chance.random() < 0.5:
            self._look(now)
        if name == "look":
            return
        self._now = now = now + 1
        store = self.store
        if name == "pause":
            until = now + self._chance.randrange(1, 9 * DAY)
            if self._chance.random() < 0.5:
                self._later(until, "resume")
                until = NEVER
            self._close(self.world.pauses, now)
            self.world.pauses.append([now, until])
            limit = None if until == NEVER else until
            store.ledger = block_starts(store.ledger, now, "paused", limit)
        elif name == "resume":
            self._close(self.world.pauses, now)
            store.ledger = unblock_starts(store.ledger, now, "paused")
        elif name == "leave":
            self._close(self.world.away, now)
            self.world.away.append([now, NEVER])
            self._later(now + self._chance.choice([2, HOUR, 9 * DAY]), "back")
        elif name == "back":
            self._close(self.world.away, now)
        elif name == "switch":
            self._switch(now, not store.spec.enabled)
        else:
            self._skip()
        if self._wake is None or self._chance.random() < 0.5:
            self._wake = now

    def _switch(self, now: int, enabled: bool) -> None:
        store = self.store
        self._close(self.world.offs, now)
        if not enabled:
            self.world.offs.append([now, NEVER])
            self._later(now + self._chance.randrange(1, 9 * DAY), "switch")
        change = unblock_starts if enabled else block_starts
        store.ledger = change(store.ledger, now, "disabled")
        store.spec = replace(store.spec, enabled=enabled)

    def _away(self) -> tuple[BlockedPeriod, ...]:
        """When the member was away, also what is over: slots in it may be undecided."""
        kept = self.store.ledger
        after = min((kept.decided, *(one.since for one in kept.buffered)))
        return tuple(
            BlockedPeriod(start, None if end == NEVER else end, "paused")
            for start, end in self.world.away
            if end > after
        )

    def _later(self, moment: int, name: str) -> None:
        self._script = sorted([*self._script, (moment, name)], reverse=True)

    def _skip(self) -> None:
        try:
            slot, self.store.ledger = skip_next_slot(self.store.spec, self.store.ledger)
        except ScheduleRefused:
            return  # nothing is to come
        self.world.asked.add(slot)

    def _close(self, times: list[list[int]], now: int) -> None:
        for one in times:
            one[1] = min(one[1], now)

    def _paused(self, now: int) -> bool:
        return any(
            BlockedPeriod(start, end, "paused").holds(now) for start, end in self.world.rests
        )

    def _end_runs(self, now: int) -> None:
        self.store.going = {key: end for key, end in self.store.going.items() if end > now}

    def _may_crash(self) -> None:
        if self._chance.random() < self._crashes:
            raise Crash

    def _restart(self) -> None:
        """After a while, with nothing but the store; meanwhile nobody heard what was asked."""
        down = self._chance.choice([0, 5000, MINUTE, HOUR, 9 * HOUR, 26 * HOUR, 20 * DAY])
        self._wake = self._now = self._now + self._chance.randrange(down + 1)
        while self._script and self._script[-1][0] <= self._now:
            self._script.pop()

    def _lasts(self, slot: int) -> int:
        chance = random.Random(self._seed * slot)
        if chance.random() < self._long_runs:
            return chance.randrange(1, 48 * HOUR)
        return chance.randrange(1, 10 * MINUTE)
