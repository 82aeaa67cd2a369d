"""Pause all triggers of a dismissed standing agent in the same commit."""

from msgspec.structs import replace

from moot.agents.roster.members import MemberRecord, PausePeriod
from moot.clock import Clock
from moot.core.schedules.pauses import block_starts
from moot.core.triggers.subscriptions import TriggerSubscription
from moot.store.protocol import Batch, Store
from moot.triggers.inbound.overview import SubscriptionOverview
from moot.triggers.inbound.subscriptions import SubscriptionService
from moot.triggers.inbound.versions import subscription_from_record
from moot.triggers.schedules.records import (
    SCHEDULE_KIND,
    SUBSCRIPTION_KIND,
    ScheduleRecord,
    ledger_row,
    schedule_from_record,
    schedule_ledger_from_row,
    schedule_row,
)

BY = "moot"


class DismissedTriggers:
    """Pauses the triggers of a member that is dismissed, and lists them afterwards."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        subscriptions: SubscriptionService,
        overview: SubscriptionOverview,
    ) -> None:
        self._store, self._clock = store, clock
        self._subscriptions, self._overview = subscriptions, overview

    async def pause_all(self, tenant: str, member_record: MemberRecord) -> Batch:
        """Return the batch that pauses every trigger of the member. Its guards fail when one of
        them changes. Triggers that were paused without an end stay as they are."""
        batch, roster_id = Batch(), member_record.entry.roster_id
        reason = f"{member_record.entry.persona} is dismissed"
        for record in await self._overview.records_naming(tenant, SCHEDULE_KIND, roster_id):
            schedule = schedule_from_record(record)
            if schedule.spec.roster_id == roster_id:
                batch.guards.append(record.guard)
                if schedule.pause is None or schedule.pause.until is not None:
                    await self._pause_schedule(tenant, schedule, reason, batch)
        for record in await self._overview.records_naming(tenant, SUBSCRIPTION_KIND, roster_id):
            version = subscription_from_record(record, self._clock.millis())
            if version.it.roster_id == roster_id:
                batch.guards.append(version.guard)
                if version.it.state != "paused" or version.it.until is not None:
                    changes = {"state": "paused", "reason": "source-removed", "until": None}
                    paused = replace(version.it, **changes)
                    batch.records.append(self._subscriptions.record(tenant, paused, BY, "paused"))
        return batch

    async def left(self, tenant: str, roster_id: str) -> list[TriggerSubscription]:
        """Return the triggers that another member can take over."""
        return [each.it for each in await self._overview.of_member(tenant, roster_id)]

    async def _pause_schedule(
        self, tenant: str, schedule: ScheduleRecord, reason: str, batch: Batch
    ) -> None:
        schedule_id, now = schedule.spec.schedule_id, self._clock.millis()
        ledger = await self._store.ledger(tenant, SCHEDULE_KIND, schedule_id)
        if ledger is None:
            return
        pause = PausePeriod(since=now, by=BY, reason=reason)
        paused = replace(schedule, pause=pause, stopped=None, did="paused")
        book = schedule_ledger_from_row(ledger)
        book = replace(book, decided=block_starts(book.decided, now, "paused"))
        batch.records.append(schedule_row(tenant, paused, BY, now))
        batch.ledgers.append(ledger_row(tenant, schedule_id, book, ledger.revision, now))
