"""What becomes of slots, as rows of deliveries: the unique claim of each run, and every skip."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from moot.core.events import iso
from moot.core.schedules.decide import joined
from moot.core.schedules.model import Fire, Waiting
from moot.core.state.initiation import Delivered
from moot.store.protocol import Delivery, Store
from moot.store.records import Attempt
from moot.triggers.schedules.records import SOURCE, Plan, Tail

#: skips that nobody asked for and no rule of the schedule's own explains
MISSED = ("missed", "window")
#: outcome of a try to begin a run that could not be begun
DEAD = "dead-lettered"

_fire = msgspec.json.Decoder(Fire).decode


def fire_of(row: Delivery) -> Fire:
    return _fire(row.body)


def key_of(schedule_id: str, fire: Fire) -> str:
    """A run, and what waits to be one, claims its slot. A skip has a row beside that claim, so
    that the slot can still be run by hand."""
    claim = fire.key(schedule_id)
    return f"{claim}:skipped" if fire.act == "skip" and not fire.waited else claim


def schedule_of(key: str) -> str:
    return key.partition(":")[0]


def waiting(fire: Fire, now: int) -> Waiting:
    """A start whose turn comes after another's."""
    return Waiting(slot=fire.slot, due=fire.due, cause=fire.cause, since=now)


class Rows:
    """The rows of one decision."""

    def __init__(
        self, store: Store, tenant: str, plan: Plan, now: int, new_id: Callable[[str], str]
    ) -> None:
        self._store, self._tenant, self._plan = store, tenant, plan
        self._now, self._new_id = now, new_id

    async def of(
        self, fires: list[Fire], tail: Tail | None, replaced: bool
    ) -> tuple[list[Delivery], Tail | None]:
        """Rows of what starts nothing now. The first skip may go on with the one before; missed
        slots are a matter for people unless a run was started in their place."""
        found: dict[str, Delivery] = {}
        for fire in fires:
            both = joined(tail.fire, fire) if tail is not None else None
            key = key_of(self._plan.spec.schedule_id, fire)
            if tail is not None and both is not None:
                key, fire = tail.key, both
            before = await self._known(key) if key not in found else None
            state = "waiting" if fire.act == "buffer" else "skipped"
            if fire.reason in MISSED and not replaced:
                state = "missed"
            if key in found:
                found[key] = replace(found[key], body=msgspec.json.encode(fire))
            else:
                found[key] = self._row(key, fire, state, before)
            tail = Tail(key, fire) if fire.act == "skip" and not fire.waited else None
        return list(found.values()), tail

    async def start(self, fire: Fire) -> tuple[Delivery, Delivered]:
        """The claim of a slot; its run's id is filled in when there is one."""
        key = key_of(self._plan.spec.schedule_id, fire)
        row = self._row(key, fire, "delivered", await self._known(key))
        attempt = Attempt(event_id=row.delivery_id, at=self._now, outcome="delivered")
        row = replace(row, attempts=[*row.attempts, attempt])
        delivered = Delivered(
            delivery_id=row.delivery_id, subscription=row.subscription, key=key,
            attempt=len(row.attempts),
        )  # fmt: skip
        return row, delivered

    async def failed(self, fire: Fire, why: str) -> Delivery:
        """A run that could not be begun, and is given up."""
        row, _ = await self.start(fire)
        name = f"{row.delivery_id}.{len(row.attempts)}"
        attempt = Attempt(event_id=name, at=self._now, outcome=DEAD, reason=why)
        return replace(row, state="dead", reason=why, attempts=[*row.attempts[:-1], attempt])

    async def _known(self, key: str) -> Delivery | None:
        return await self._store.delivery(self._tenant, self._plan.subscription, key)

    def _row(self, key: str, fire: Fire, state: str, before: Delivery | None) -> Delivery:
        said: dict[str, Any] = {
            "state": state,
            "updated_at": self._now,
            "member": self._plan.spec.roster_id,
            "reason": fire.reason or "",
            "body": msgspec.json.encode(fire),
            "due_at": None,
        }
        if before is not None:
            return replace(before, revision=before.revision + 1, **said)
        return Delivery(
            tenant=self._tenant,
            subscription=self._plan.subscription,
            key=key,
            delivery_id=self._new_id("dlv_"),
            source=SOURCE,
            received_at=self._now,
            subject=self._plan.spec.workflow_id,
            **said,
        )


def told(plan: Plan, row: Delivery, fire: Fire) -> dict[str, Any]:
    """What a run is told of what began it."""
    return {
        "source": SOURCE,
        "subscriptionId": plan.subscription,
        "deliveryId": row.delivery_id,
        "receivedAt": iso(row.received_at * 1000),
        "dedupKey": row.key,
        "schedule": {
            "scheduleId": plan.spec.schedule_id,
            "slot": iso(fire.slot * 1000),
            "dueAt": iso(fire.due * 1000),
            "cause": fire.cause,
        },
    }
