"""Deliveries of a schedule: the unique claim of each slot, and every skip."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from moot.core.events import iso
from moot.core.schedules.decide import merge_skips
from moot.core.schedules.model import BufferedSlot, Fire
from moot.core.state.initiation import TriggerDelivery
from moot.store.protocol import Store
from moot.store.records import Delivery, DeliveryAttempt
from moot.triggers.schedules.records import SCHEDULE_SOURCE, LastSkip, ScheduleRecord
from moot.triggers.schedules.snapshot import ScheduleSnapshot

#: reasons of skips that are reported as missed
MISSED = ("missed", "window")
#: outcome of a failed attempt to start a run
DEAD = "dead-lettered"

_decode_fire = msgspec.json.Decoder(Fire).decode


def fire_from_row(row: Delivery) -> Fire:
    return _decode_fire(row.body)


def fire_key(schedule_id: str, fire: Fire) -> str:
    """Return the key of a fire. A run, started or waiting, claims its slot. A skip has another
    key, so the slot can still be run by hand."""
    claim = fire.key(schedule_id)
    return f"{claim}:skipped" if fire.act == "skip" and not fire.waited else claim


def schedule_id_from_key(key: str) -> str:
    return key.partition(":")[0]


def waiting_from_fire(fire: Fire, now: int) -> BufferedSlot:
    """Return a start that waits for another run."""
    return BufferedSlot(slot=fire.slot, due=fire.due, cause=fire.cause, since=now)


class FireRows:
    """Builds the delivery rows of one decision."""

    def __init__(
        self, store: Store, snapshot: ScheduleSnapshot, new_id: Callable[[str], str]
    ) -> None:
        self._store, self._tenant, self._schedule = store, snapshot.tenant, snapshot.plan
        self._now, self._new_id = snapshot.seen.now, new_id

    async def rows_without_start(
        self, fires: list[Fire], last_skip: LastSkip | None, replaced: bool
    ) -> tuple[list[Delivery], LastSkip | None]:
        """Return the rows of fires that start nothing now, and the last skip.

        The first skip may extend the previous one. Missed slots become notices unless a run was
        started in their place."""
        rows: dict[str, Delivery] = {}
        for fire in fires:
            merged = merge_skips(last_skip.fire, fire) if last_skip is not None else None
            key = fire_key(self._schedule.spec.schedule_id, fire)
            if last_skip is not None and merged is not None:
                key, fire = last_skip.key, merged
            state = "waiting" if fire.act == "buffer" else "skipped"
            if fire.reason in MISSED and not replaced:
                state = "missed"
            if key in rows:
                rows[key] = replace(rows[key], body=msgspec.json.encode(fire))
            else:
                rows[key] = await self._row(key, fire, state)
            last_skip = LastSkip(key, fire) if fire.act == "skip" and not fire.waited else None
        return list(rows.values()), last_skip

    async def start(self, fire: Fire) -> tuple[Delivery, TriggerDelivery]:
        """Return the row that claims a slot. The host fills in the id of its run."""
        key = fire_key(self._schedule.spec.schedule_id, fire)
        row = await self._row(key, fire, "delivered")
        attempt = DeliveryAttempt(event_id=row.delivery_id, at=self._now, outcome="delivered")
        row = replace(row, attempts=[*row.attempts, attempt])
        delivered = TriggerDelivery(
            delivery_id=row.delivery_id, subscription=row.subscription, key=key,
            attempt=len(row.attempts),
        )  # fmt: skip
        return row, delivered

    async def failed_start(self, fire: Fire, reason: str) -> Delivery:
        """Return the row of a run that could not be started and is given up."""
        key = fire_key(self._schedule.spec.schedule_id, fire)
        row = await self._row(key, fire, "dead")
        return replace(row, reason=reason, attempts=row.tried(self._now, DEAD, reason))

    async def _row(self, key: str, fire: Fire, state: str) -> Delivery:
        spec, now, subscription = self._schedule.spec, self._now, self._schedule.subscription
        row = await self._store.delivery(self._tenant, subscription, key)
        row = row or Delivery(
            tenant=self._tenant, subscription=subscription, key=key, source=SCHEDULE_SOURCE,
            delivery_id=self._new_id("dlv_"), state=state, received_at=now, updated_at=now,
            revision=0, subject=spec.workflow_id,
        )  # fmt: skip
        return row.next(
            state=state, updated_at=now, member=spec.roster_id, reason=fire.reason or "",
            body=msgspec.json.encode(fire), due_at=None,
        )  # fmt: skip


def trigger_from_fire(schedule: ScheduleRecord, row: Delivery, fire: Fire) -> dict[str, object]:
    """Return the trigger event of a run that a schedule starts."""
    return {
        "source": SCHEDULE_SOURCE,
        "subscriptionId": schedule.subscription,
        "deliveryId": row.delivery_id,
        "receivedAt": iso(row.received_at * 1000),
        "dedupKey": row.key,
        "schedule": {
            "scheduleId": schedule.spec.schedule_id,
            "slot": iso(fire.slot * 1000),
            "dueAt": iso(fire.due * 1000),
            "cause": fire.cause,
        },
    }


def closed_row(row: Delivery, now: int) -> Delivery:
    return row.next(state="skipped", updated_at=now, due_at=None)
