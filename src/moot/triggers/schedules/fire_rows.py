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
        self,
        store: Store,
        tenant: str,
        schedule: ScheduleRecord,
        now: int,
        new_id: Callable[[str], str],
    ) -> None:
        self._store, self._tenant, self._schedule = store, tenant, schedule
        self._now, self._new_id = now, new_id

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
            stored = await self._stored(key) if key not in rows else None
            state = "waiting" if fire.act == "buffer" else "skipped"
            if fire.reason in MISSED and not replaced:
                state = "missed"
            if key in rows:
                rows[key] = replace(rows[key], body=msgspec.json.encode(fire))
            else:
                rows[key] = self._row(key, fire, state, stored)
            last_skip = LastSkip(key, fire) if fire.act == "skip" and not fire.waited else None
        return list(rows.values()), last_skip

    async def start(self, fire: Fire) -> tuple[Delivery, TriggerDelivery]:
        """Return the row that claims a slot. The host fills in the id of its run."""
        key = fire_key(self._schedule.spec.schedule_id, fire)
        row = self._row(key, fire, "delivered", await self._stored(key))
        attempt = DeliveryAttempt(event_id=row.delivery_id, at=self._now, outcome="delivered")
        row = replace(row, attempts=[*row.attempts, attempt])
        delivered = TriggerDelivery(
            delivery_id=row.delivery_id, subscription=row.subscription, key=key,
            attempt=len(row.attempts),
        )  # fmt: skip
        return row, delivered

    async def failed_start(self, fire: Fire, reason: str) -> Delivery:
        """Return the row of a run that could not be started and is given up."""
        row, _ = await self.start(fire)
        event_id = f"{row.delivery_id}.{len(row.attempts)}"
        attempt = DeliveryAttempt(event_id=event_id, at=self._now, outcome=DEAD, reason=reason)
        return replace(row, state="dead", reason=reason, attempts=[*row.attempts[:-1], attempt])

    async def _stored(self, key: str) -> Delivery | None:
        return await self._store.delivery(self._tenant, self._schedule.subscription, key)

    def _row(self, key: str, fire: Fire, state: str, stored: Delivery | None) -> Delivery:
        spec, now = self._schedule.spec, self._now
        if stored is not None:
            row = replace(stored, revision=stored.revision + 1, state=state)
        else:
            row = Delivery(
                tenant=self._tenant,
                subscription=self._schedule.subscription,
                key=key,
                delivery_id=self._new_id("dlv_"),
                source=SCHEDULE_SOURCE,
                state=state,
                received_at=now,
                updated_at=now,
                subject=spec.workflow_id,
            )
        body, reason = msgspec.json.encode(fire), fire.reason or ""
        member = spec.roster_id
        return replace(row, updated_at=now, member=member, reason=reason, body=body, due_at=None)


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
    return replace(row, state="skipped", revision=row.revision + 1, updated_at=now, due_at=None)
