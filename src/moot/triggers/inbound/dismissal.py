"""What becomes of all that wakes a standing agent when that is let go: it rests, from the very
commit that lets it go, until somebody takes it over."""

from typing import Any

import msgspec
from msgspec.structs import replace

from moot.agents.roster.members import Hired, Pause
from moot.clock import Clock
from moot.core.schedules.decide import barred
from moot.store.protocol import Batch, Store
from moot.store.records import Record
from moot.triggers.inbound.overview import Listening
from moot.triggers.inbound.subscriptions import Subscriptions, seen_of
from moot.triggers.schedules.records import (
    KIND,
    SUBSCRIPTION,
    Plan,
    book_of,
    guard_of,
    ledger_row,
    plan_of,
    plan_record,
)

BY = "moot"


class Leaving:
    def __init__(
        self, store: Store, clock: Clock, subscriptions: Subscriptions, listening: Listening
    ) -> None:
        self._store, self._clock = store, clock
        self._subscriptions, self._listening = subscriptions, listening

    async def rest(self, tenant: str, hired: Hired) -> Batch:
        """Everything of a member rests. The batch holds only while nothing of that is changed by
        somebody else; what was stopped for good before is left as it is."""
        batch, name = Batch(), hired.entry.roster_id
        why = f"{hired.entry.persona} is dismissed"
        for record in await self._naming(tenant, KIND, name):
            plan = plan_of(record)
            if plan.spec.roster_id == name:
                batch.guards.append(guard_of(record))
                if plan.pause is None or plan.pause.until is not None:
                    await self._rest(tenant, plan, why, batch)
        for record in await self._naming(tenant, SUBSCRIPTION, name):
            seen = seen_of(record, self._clock.millis())
            if seen.it.roster_id == name:
                batch.guards.append(seen.guard)
                if seen.it.state != "paused" or seen.it.until is not None:
                    it = replace(seen.it, state="paused", reason="source-removed", until=None)
                    batch.records.append(self._subscriptions.record(tenant, it, BY, "paused"))
        return batch

    async def left(self, tenant: str, roster_id: str) -> list[dict[str, Any]]:
        """What is there for somebody to take over, as people are told."""
        found = []
        for trigger in await self._listening.of_member(tenant, roster_id):
            it = trigger.it
            what = {
                "source": it.source, "subscriptionId": it.subscription_id, "state": it.state,
                "scheduleId": it.schedule_id, "queue": it.queue, "workflowId": it.workflow_id,
            }  # fmt: skip
            found.append({name: value for name, value in what.items() if value is not None})
        return found

    async def _rest(self, tenant: str, plan: Plan, why: str, batch: Batch) -> None:
        name, now = plan.spec.schedule_id, self._clock.millis()
        ledger = await self._store.ledger(tenant, KIND, name)
        if ledger is None:
            return
        pause = Pause(since=now, by=BY, reason=why)
        paused = replace(plan, pause=pause, stopped=None, did="paused")
        book = book_of(ledger)
        book = replace(book, decided=barred(book.decided, now, "paused"))
        batch.records.append(plan_record(tenant, paused, BY, now))
        batch.ledgers.append(ledger_row(tenant, name, book, ledger.revision, now))

    async def _naming(self, tenant: str, kind: str, roster_id: str) -> list[Record]:
        """Of the others no more than the bytes are looked at."""
        mark = msgspec.json.encode(roster_id)
        return [each for each in await self._store.records(tenant, kind) if mark in each.body]
