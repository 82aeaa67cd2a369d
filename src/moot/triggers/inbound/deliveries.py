"""What came in becomes one run each: known again, tried again, kept where nobody may take it.

The row of a delivery is written in the transaction that begins its run. Whatever a row relies on,
the subscription or the member, is guarded in the transaction that writes it.
"""

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Roster
from moot.clock import Clock
from moot.core.backoff import lot_of
from moot.core.errors import BadRequest, Conflict, MootError, NotFound, Unavailable
from moot.core.errors.triggers import (
    MemberOffDuty,
    NotInPortfolio,
    Overtaken,
    QueueFull,
    QueueIdle,
    SubscriptionNotActive,
)
from moot.core.runs.start import check_inputs
from moot.core.state.initiation import Delivered
from moot.core.triggers.subscriptions import ITEM, Arrival, after_failure, next_try
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Batch, Delivery, Guard, Store
from moot.store.records import Attempt, DeliveryFilter
from moot.triggers.inbound.capacity import Room
from moot.triggers.inbound.items import SOURCES, arrival_of, given_of
from moot.triggers.inbound.subscriptions import MOST_RACES, Seen, Subscriptions
from moot.triggers.notices import News
from moot.triggers.start_run import Claim, Firing, Order

#: items of one queue that may wait, and refused requests of one subscription that are remembered
MOST_WAITING = 10_000
MOST_UNVERIFIED = 200
#: what waits for somebody whom only the workflow names is looked at so often (ms)
RECHECK = 600_000
FAR = 2**62
PAGE = 200
#: states of what is to become a run yet
UNDONE = ("waiting", "retrying")
REDELIVERED = "redelivered"

Place = tuple[str, str, str]


class Handed(Struct, frozen=True):
    """How a delivery stands, and whether it was not known before."""

    delivery: Delivery
    fresh: bool


class Deliveries:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        firing: Firing,
        flows: Flows,
        roster: Roster,
        subscriptions: Subscriptions,
    ) -> None:
        self._store, self._clock, self._firing, self._flows = store, clock, firing, flows
        self._roster, self._subscriptions = roster, subscriptions
        self._under_way: dict[Place, asyncio.Future[Delivery]] = {}
        self._waiting = Room(store, UNDONE, MOST_WAITING)
        self._unverified = Room(store, ("unverified",), MOST_UNVERIFIED)
        self.look: Callable[[], None] = lambda: None
        self.news = News(store)

    # -- in ----------------------------------------------------------------------------------

    async def take(
        self, seen: Seen, arrival: Arrival, key: str, subject: str = "", named: bool = True
    ) -> Handed:
        """Once for a key: a repeat, however close, is given what became of the first.

        A webhook is refused while its subscription or member takes nothing (SubscriptionNotActive,
        MemberOffDuty); an item of a queue is kept, as long as there is room (QueueFull). Without
        ``named`` the key was made up for it, and nobody can have come before.
        """
        place = (seen.tenant, seen.it.subscription_id, key)
        if (going := self._under_way.get(place)) is not None:
            return Handed(await asyncio.shield(going), False)
        done = self._under_way[place] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieved)
        try:
            known = await self._store.delivery(*place) if named else None
            found = known or await self._attempt(seen, self._row(seen, arrival, key, subject))
        except BaseException as error:
            broken = Unavailable("This was broken off; send it again.")
            done.set_exception(error if isinstance(error, MootError) else broken)
            raise
        finally:
            del self._under_way[place]
        done.set_result(found)
        return Handed(found, known is None)

    def _row(self, seen: Seen, arrival: Arrival, key: str, subject: str) -> Delivery:
        """Not on disk yet: its revision is 0."""
        now, queue = self._clock.millis(), seen.it.source == "queue"
        return Delivery(
            tenant=seen.tenant,
            subscription=seen.it.subscription_id,
            key=key,
            delivery_id=self._clock.new_id(ITEM if queue else "dlv_"),
            source=seen.it.source,
            state="waiting",
            received_at=now,
            updated_at=now,
            revision=0,
            member=seen.it.roster_id,
            subject=subject,
            body=msgspec.json.encode(arrival),
        )

    async def refuse(self, seen: Seen, problem: str) -> Delivery | None:
        """Writes down that something came whose sender is not known; nothing of what it said, and
        only so often."""
        if not await self._unverified.free(seen.tenant, seen.it.subscription_id):
            return None
        name = self._clock.new_id("dlv_")
        now = self._clock.millis()
        attempt = Attempt(event_id=name, at=now, outcome="dead-lettered", reason=problem)
        row = Delivery(
            tenant=seen.tenant, subscription=seen.it.subscription_id, key=f"k_{name}",
            delivery_id=name, source=seen.it.source, state="unverified", received_at=now,
            updated_at=now, reason="verification_failed", attempts=[attempt],
        )  # fmt: skip
        await self._store.commit(Batch(deliveries=[row]))
        return row

    async def carry(self, delivery: Delivery) -> None:
        """For the courier: another try of one that is due."""
        place = delivery.tenant, delivery.subscription
        seen = await self._subscriptions.find(*place) or await self._subscriptions.restored(*place)
        if seen is None:
            await self._gone(delivery)
            return
        await self._attempt(seen, delivery)

    # -- one try -----------------------------------------------------------------------------

    async def _attempt(self, seen: Seen, row: Delivery) -> Delivery:
        """The row after it. When somebody else has written it meanwhile, theirs."""
        for _ in range(MOST_RACES):
            try:
                return await self._once(seen, row)
            except Overtaken:
                known = await self._store.delivery(row.tenant, row.subscription, row.key)
                if known is not None and known.revision != row.revision:
                    return known
                seen = await self._subscriptions.must_find(row.tenant, row.subscription)
        raise Unavailable("Too much changes here just now; send it again.")

    async def _once(self, seen: Seen, row: Delivery) -> Delivery:
        """Raises Overtaken when what it relied on has changed."""
        if (why := _inactive(seen)) is not None:
            return await self._park(row, why, seen.guard, until=seen.it.until)
        try:
            return await self._start(seen, row)
        except (Overtaken, Unavailable):
            raise
        except (MemberOffDuty, NotInPortfolio) as refusal:
            return await self._await_member(seen, row, refusal)
        except MootError as refusal:
            return await self._failed(seen, row, refusal)

    async def _start(self, seen: Seen, row: Delivery) -> Delivery:
        it, tries = seen.it, tries_of(row) + 1
        arrival = arrival_of(row.body)
        workflow_id = it.workflow_id or ""
        flow = await self._flows.newest(row.tenant, workflow_id)
        given = given_of(it, row, arrival, flow)
        try:
            check_inputs(flow, given.inputs)
        except BadRequest as refusal:
            return await self._unfit(row, refusal)
        now = self._clock.millis()
        done = Attempt(event_id=row.delivery_id, at=now, outcome="delivered")
        after = self._next(row, state="delivered", due_at=None, reason="", body=b"",
                           subject=given.subject,
                           member=it.roster_id, attempts=[*row.attempts, done])  # fmt: skip
        order = Order(
            tenant=row.tenant,
            workflow_id=workflow_id,
            source=it.source,
            principal=it.owner,
            roster_id=it.roster_id,
            inputs=given.inputs,
            trigger=given.trigger,
            hops=arrival.hops,
            delivered=Delivered(
                delivery_id=row.delivery_id,
                subscription=it.subscription_id,
                key=row.key,
                attempt=tries,
            ),
        )
        run = await self._firing.start(order, Claim(guards=[seen.guard], deliveries=[after]))
        return replace(after, run_id=run.run_id)

    async def _await_member(
        self, seen: Seen, row: Delivery, refusal: MemberOffDuty | NotInPortfolio
    ) -> Delivery:
        """It is kept until the member may do it, its own or one that the workflow names; that this
        one may not is made sure of."""
        name, until, now = str(refusal.details["rosterId"]), None, self._clock.millis()
        seat = await self._roster.find(row.tenant, name)
        guard = await self._roster.guard(row.tenant, name) if seat is None else seat.guard
        if seat is not None:
            pause = seat.hired.pause
            until = pause.until if pause is not None and pause.holds(now) else None
            own = name != seen.it.roster_id or seen.it.workflow_id in seat.entry.workflows
            if own and seat.hired.off_duty(now) is None:
                raise Overtaken(row.delivery_id)
        due = None if name == seen.it.roster_id else min(now + RECHECK, until or FAR)
        return await self._park(row, refusal, seen.guard, guard, due=due, until=until)

    async def _park(
        self, row: Delivery, why: MootError, *guards: Guard, due: int | None = None,
        until: int | None = None,
    ) -> Delivery:  # fmt: skip
        """Without ``due`` its lane is shut for as long as it must wait: ``until`` then, where that
        is known, and nobody will say so."""
        if row.revision == 0 and row.source == "webhook":
            raise why
        if row.revision == 0 and not await self._waiting.free(row.tenant, row.subscription):
            raise QueueFull(MOST_WAITING)
        due = self._clock.millis() if due is None else due
        after = self._next(row, state="waiting", due_at=due, reason=why.message[:500])
        await self._store.commit(Batch(guards=list(guards), deliveries=[after]))
        if until is not None:
            self.look()
        return after

    async def _failed(self, seen: Seen, row: Delivery, refusal: MootError) -> Delivery:
        """No run could be begun: again later, or given up with the subscription."""
        now, tries = self._clock.millis(), tries_of(row) + 1
        due = next_try(seen.it.retry_policy, tries, now, lot_of(row.delivery_id))
        after = self._refused(row, refusal, due)
        counts = await self._store.delivery_counts(row.tenant, row.subscription)
        beside = 0 if row.state == "retrying" else 1
        state, reason = after_failure(
            seen.it.state, due is None, counts.get("retrying", 0) + beside
        )
        batch = Batch(deliveries=[after])
        if state != seen.it.state:
            changed = replace(seen.it, state=state, reason=reason)
            batch.guards, batch.inboxes = [seen.guard], [row.tenant]
            batch.records = [self._subscriptions.record(row.tenant, changed, "moot", state)]
        await self.news.commit(batch)
        self._subscriptions.forget(seen)
        self.look()
        return after

    async def _unfit(self, row: Delivery, refusal: MootError) -> Delivery:
        """It is no input of its workflow, and trying again cannot make it one. It is given up
        alone: whoever comes after it is not at fault."""
        return await self._write(self._refused(row, refusal, None, unfit=True))

    def _refused(
        self, row: Delivery, refusal: MootError, due: int | None, unfit: bool = False
    ) -> Delivery:
        why = f"{refusal.code}: {refusal.message}"[:500]
        attempt = Attempt(
            event_id=f"{row.delivery_id}.{len(row.attempts) + 1}",
            at=self._clock.millis(),
            outcome="dead-lettered" if due is None else "retrying",
            reason=why,
            unfit=unfit,
        )
        return self._next(
            row,
            state="dead" if due is None else "retrying",
            due_at=due,
            reason=why,
            attempts=[*row.attempts, attempt],
        )

    # -- by people ---------------------------------------------------------------------------

    async def must_find(self, tenant: str, subscription: str, name: str) -> Delivery:
        found = await self._store.delivery_by_id(tenant, name)
        if found is None or found.subscription != subscription:
            raise NotFound("There is no such item; see the list of them.", id=name[:128])
        return found

    async def again(self, seen: Seen, row: Delivery, by: str) -> Delivery:
        """One that was given up, or waits, is tried from the beginning, at once."""
        if row.state not in ("dead", *UNDONE):
            more = "; give it to a run by hand" if row.state == "delivered" else ""
            raise Conflict(
                f"It is {row.state}, and cannot be delivered again{more}.", state=row.state
            )
        if (why := _inactive(seen)) is not None:
            raise why
        now = self._clock.millis()
        mark = Attempt(event_id=f"{row.delivery_id}.{len(row.attempts) + 1}", at=now,
                       outcome=REDELIVERED, reason=f"by {by}")  # fmt: skip
        fresh = self._next(row, state="waiting", due_at=now, attempts=[*row.attempts, mark])
        return await self._attempt(seen, await self._write(fresh, was=row))

    async def drop(self, row: Delivery, by: str) -> Delivery:
        """What came in is forgotten; that it was there is not."""
        if row.state not in ("dead", *UNDONE):
            raise Conflict(f"It is {row.state}, and cannot be dropped.", state=row.state)
        dropped = self._next(row, state="dropped", due_at=None, body=b"", reason=f"by {by}")
        return await self._write(dropped, was=row)

    async def counts(self, seen: Seen) -> dict[str, int]:
        return await self._store.delivery_counts(seen.tenant, seen.it.subscription_id)

    async def let_go(self, seen: Seen) -> None:
        """Its subscription was removed: nothing of it is owed, kept or shown as undone."""
        where = DeliveryFilter(subscription=seen.it.subscription_id, states=("dead", *UNDONE))
        cursor = None
        while True:
            found, cursor = await self._store.deliveries(seen.tenant, where, cursor, PAGE)
            for row in found:
                await self._gone(row)
            if cursor is None:
                return

    async def _gone(self, row: Delivery) -> None:
        removed = "The subscription was removed."
        try:
            await self._write(
                self._next(row, state="dropped", due_at=None, body=b"", reason=removed), was=row
            )
        except Overtaken:
            return  # somebody is at it, and will find the subscription gone

    async def wake(self, tenant: str, where: DeliveryFilter) -> None:
        """What was kept waiting is due now."""
        cursor, where = None, replace_states(where)
        while True:
            found, cursor = await self._store.deliveries(tenant, where, cursor, PAGE)
            for row in found:
                if row.source in SOURCES:
                    await self._woken(row)
            if cursor is None:
                break
        self.look()

    async def _woken(self, row: Delivery) -> None:
        if row.due_at is not None and row.due_at <= self._clock.millis():
            return
        try:
            await self._write(self._next(row, due_at=self._clock.millis()))
        except Overtaken:
            return  # somebody is at it

    async def _write(self, row: Delivery, was: Delivery | None = None) -> Delivery:
        await self.news.commit(Batch(deliveries=[row]), [was] if was is not None else ())
        return row

    def _next(self, row: Delivery, **changes: object) -> Delivery:
        now = self._clock.millis()
        return replace(row, revision=row.revision + 1, updated_at=now, **changes)


def _inactive(seen: Seen) -> Conflict | None:
    """Why nothing of it becomes a run just now."""
    it = seen.it
    if it.queue is not None and it.workflow_id is None:
        return QueueIdle(it.queue)
    if it.state != "active":
        return SubscriptionNotActive(it.subscription_id, it.state, it.queue, it.note, it.until)
    return None


def tries_of(row: Delivery) -> int:
    """How often it was tried since somebody last asked for it."""
    count = 0
    for attempt in row.attempts:
        count = 0 if attempt.outcome == REDELIVERED else count + 1
    return count


def replace_states(where: DeliveryFilter) -> DeliveryFilter:
    return replace(where, states=("waiting",))


def _retrieved(done: "asyncio.Future[Delivery]") -> None:
    if not done.cancelled():
        done.exception()
