"""Turn each inbound delivery into one run: deduplicate, retry, or hold it.

The row of a delivery is written in the transaction that starts its run. That transaction also
guards the subscription and the member that the row relies on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import RosterService
from moot.clock import Clock
from moot.core.backoff import retry_jitter
from moot.core.errors import BadRequest, Conflict, MootError, NotFound, Unavailable
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio, Overtaken, QueueFull
from moot.core.runs.start import check_inputs
from moot.core.state.initiation import TriggerDelivery
from moot.core.triggers.subscriptions import (
    ITEM_PREFIX,
    Arrival,
    next_delivery_time,
    state_after_failure,
)
from moot.engine.start import RunOrder
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, DeliveryAttempt, DeliveryFilter, Guard
from moot.triggers.inbound.gate import DeliveryCapacity
from moot.triggers.inbound.items import (
    INBOUND_SOURCES,
    REDELIVERED,
    count_tries,
    decode_arrival,
    run_input_from_item,
)
from moot.triggers.inbound.subscriptions import MOST_RACES, SubscriptionService, inactive_error
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.triggers.notices import NoticeWriter
from moot.triggers.start_run import RunClaim, RunStarter

#: the most items that wait in a queue, and refused requests recorded per subscription
MOST_WAITING = 10_000
MOST_UNVERIFIED = 200
#: a delivery that waits for a member named only by the workflow is retried this often (ms)
RECHECK = 600_000
FAR = 2**62
PAGE = 200
#: states of deliveries that have no run yet
OPEN_STATES = ("waiting", "retrying")

Place = tuple[str, str, str]


class DeliveryResult(Struct, frozen=True):
    """The state of a delivery, and whether it is new."""

    delivery: Delivery
    fresh: bool


class InboundDeliveries:
    """Takes in deliveries, and starts a run for each."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        run_starter: RunStarter,
        flows: WorkflowRegistry,
        roster: RosterService,
        subscriptions: SubscriptionService,
    ) -> None:
        self._store, self._clock, self._run_starter, self._flows = store, clock, run_starter, flows
        self._roster, self._subscriptions = roster, subscriptions
        self._under_way: dict[Place, asyncio.Future[Delivery]] = {}
        self._waiting = DeliveryCapacity(store, OPEN_STATES, MOST_WAITING)
        self._unverified = DeliveryCapacity(store, ("unverified",), MOST_UNVERIFIED)
        self.look: Callable[[], None] = lambda: None
        self.notices = NoticeWriter(store)

    # -- in ----------------------------------------------------------------------------------

    async def take(
        self,
        version: SubscriptionVersion,
        arrival: Arrival,
        key: str,
        subject: str = "",
        named: bool = True,
    ) -> DeliveryResult:
        """Take in one delivery per key. A repeat gets the result of the first, even while that is
        under way.

        A webhook is refused while its subscription or member is inactive (SubscriptionNotActive,
        MemberOffDuty). An item of a queue waits, up to a limit (QueueFull). Without ``named`` the
        host made up the key, so it cannot be a repeat."""
        place = (version.tenant, version.it.subscription_id, key)
        if (pending := self._under_way.get(place)) is not None:
            return DeliveryResult(await asyncio.shield(pending), False)
        future = self._under_way[place] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_ignore_exception)
        try:
            stored = await self._store.delivery(*place) if named else None
            row = stored or self._row(version, arrival, key, subject)
            delivery = stored or await self._attempt(version, row)
        except BaseException as error:
            broken = Unavailable("This was broken off; send it again.")
            future.set_exception(error if isinstance(error, MootError) else broken)
            raise
        finally:
            del self._under_way[place]
        future.set_result(delivery)
        return DeliveryResult(delivery, stored is None)

    def _row(
        self, version: SubscriptionVersion, arrival: Arrival, key: str, subject: str
    ) -> Delivery:
        """Build a row that is not on disk yet, with revision 0."""
        now, queue = self._clock.millis(), version.it.source == "queue"
        return Delivery(
            tenant=version.tenant,
            subscription=version.it.subscription_id,
            key=key,
            delivery_id=self._clock.new_id(ITEM_PREFIX if queue else "dlv_"),
            source=version.it.source,
            state="waiting",
            received_at=now,
            updated_at=now,
            revision=0,
            member=version.it.roster_id,
            subject=subject,
            body=msgspec.json.encode(arrival),
        )

    async def refuse(self, version: SubscriptionVersion, problem: str) -> Delivery | None:
        """Record a request whose sender is unverified, without its content. Return None when too
        many are recorded already."""
        if not await self._unverified.take_place(version.tenant, version.it.subscription_id):
            return None
        delivery_id, now = self._clock.new_id("dlv_"), self._clock.millis()
        outcome = "dead-lettered"
        attempt = DeliveryAttempt(event_id=delivery_id, at=now, outcome=outcome, reason=problem)
        row = Delivery(
            tenant=version.tenant, subscription=version.it.subscription_id, key=f"k_{delivery_id}",
            delivery_id=delivery_id, source=version.it.source, state="unverified", received_at=now,
            updated_at=now, reason="verification_failed", attempts=[attempt],
        )  # fmt: skip
        await self._store.commit(Batch(deliveries=[row]))
        return row

    async def carry(self, delivery: Delivery) -> None:
        """Try a due delivery again, for the courier."""
        place = delivery.tenant, delivery.subscription
        version = await self._subscriptions.find(*place)
        if version is None:
            version = await self._subscriptions.restore_queue(*place)
        if version is None:
            await self._drop_removed(delivery)
        else:
            await self._attempt(version, delivery)

    # -- one try -----------------------------------------------------------------------------

    async def _attempt(self, version: SubscriptionVersion, row: Delivery) -> Delivery:
        """Try the delivery and return its new row, or the row that another task has written
        meanwhile."""
        for _ in range(MOST_RACES):
            try:
                return await self._attempt_once(version, row)
            except Overtaken:
                stored = await self._store.delivery(row.tenant, row.subscription, row.key)
                if stored is not None and stored.revision != row.revision:
                    return stored
                version = await self._subscriptions.must_find(row.tenant, row.subscription)
        raise Unavailable("Too much changes here just now; send it again.")

    async def _attempt_once(self, version: SubscriptionVersion, row: Delivery) -> Delivery:
        """Raise Overtaken when a guarded record has changed."""
        if (inactive := inactive_error(version)) is not None:
            return await self._park(row, inactive, version.guard, until=version.it.until)
        try:
            return await self._start(version, row)
        except (Overtaken, Unavailable):
            raise
        except (MemberOffDuty, NotInPortfolio) as refusal:
            return await self._await_member(version, row, refusal)
        except MootError as refusal:
            return await self._record_failure(version, row, refusal)

    async def _start(self, version: SubscriptionVersion, row: Delivery) -> Delivery:
        subscription, arrival = version.it, decode_arrival(row.body)
        workflow_id = subscription.workflow_id or ""
        flow = await self._flows.newest(row.tenant, workflow_id)
        run_input = run_input_from_item(subscription, row, arrival, flow)
        try:
            check_inputs(flow, run_input.inputs)
        except BadRequest as refusal:
            # the subscription stays active, because later deliveries may fit
            return await self._write(self._row_after_failure(row, refusal, None, unfit=True))
        now = self._clock.millis()
        attempt = DeliveryAttempt(event_id=row.delivery_id, at=now, outcome="delivered")
        after = self._next(row, state="delivered", due_at=None, reason="", body=b"",
                           subject=run_input.subject, member=subscription.roster_id,
                           attempts=[*row.attempts, attempt])  # fmt: skip
        order = RunOrder(
            tenant=row.tenant,
            workflow_id=workflow_id,
            source=subscription.source,
            principal=subscription.owner,
            roster_id=subscription.roster_id,
            inputs=run_input.inputs,
            trigger=run_input.trigger,
            hops=arrival.hops,
            delivered=TriggerDelivery(
                delivery_id=row.delivery_id, subscription=subscription.subscription_id,
                key=row.key, attempt=count_tries(row) + 1,
            ),
        )  # fmt: skip
        claim = RunClaim(guards=[version.guard], deliveries=[after])
        run = await self._run_starter.start(order, claim)
        return replace(after, run_id=run.run_id)

    async def _await_member(
        self, version: SubscriptionVersion, row: Delivery, refusal: MemberOffDuty | NotInPortfolio
    ) -> Delivery:
        """Hold the delivery until its member, or a member that the workflow names, may do it.
        Raise Overtaken when that member is on duty by now."""
        roster_id, until, now = str(refusal.details["rosterId"]), None, self._clock.millis()
        member = await self._roster.find(row.tenant, roster_id)
        guard = await self._roster.guard(row.tenant, roster_id) if member is None else member.guard
        if member is not None:
            pause = member.hired.pause
            until = pause.until if pause is not None and pause.holds(now) else None
            foreign = roster_id != version.it.roster_id
            own = foreign or version.it.workflow_id in member.entry.workflows
            if own and member.hired.off_duty(now) is None:
                raise Overtaken(row.delivery_id)
        due = None if roster_id == version.it.roster_id else min(now + RECHECK, until or FAR)
        return await self._park(row, refusal, version.guard, guard, due=due, until=until)

    async def _park(
        self, row: Delivery, refusal: MootError, *guards: Guard, due: int | None = None,
        until: int | None = None,
    ) -> Delivery:  # fmt: skip
        """Store the delivery as waiting. Without ``due`` its lane is shut; ``until`` is when it
        opens, if known."""
        if row.revision == 0 and row.source == "webhook":
            raise refusal
        if row.revision == 0 and not await self._waiting.take_place(row.tenant, row.subscription):
            raise QueueFull(MOST_WAITING)
        due = self._clock.millis() if due is None else due
        after = self._next(row, state="waiting", due_at=due, reason=refusal.message[:500])
        await self._store.commit(Batch(guards=list(guards), deliveries=[after]))
        if until is not None:
            self.look()
        return after

    async def _record_failure(
        self, version: SubscriptionVersion, row: Delivery, refusal: MootError
    ) -> Delivery:
        """Retry a failed start later, or give it up. Too many failures stop the subscription."""
        now, tries = self._clock.millis(), count_tries(row) + 1
        due = next_delivery_time(version.it.retry_policy, tries, now, retry_jitter(row.delivery_id))
        after = self._row_after_failure(row, refusal, due)
        counts = await self._store.delivery_counts(row.tenant, row.subscription)
        failing = counts.get("retrying", 0) + (row.state != "retrying")
        state, reason = state_after_failure(version.it.state, due is None, failing)
        batch = Batch(deliveries=[after])
        if state != version.it.state:
            changed = replace(version.it, state=state, reason=reason)
            batch.guards, batch.inboxes = [version.guard], [row.tenant]
            batch.records = [self._subscriptions.record(row.tenant, changed, "moot", state)]
        await self.notices.commit(batch)
        self._subscriptions.forget(version)
        self.look()
        return after

    def _row_after_failure(
        self, row: Delivery, refusal: MootError, due: int | None, unfit: bool = False
    ) -> Delivery:
        reason = f"{refusal.code}: {refusal.message}"[:500]
        state, outcome = ("dead", "dead-lettered") if due is None else ("retrying", "retrying")
        attempts = row.tried(self._clock.millis(), outcome, reason, unfit)
        return self._next(row, state=state, due_at=due, reason=reason, attempts=attempts)

    # -- by people ---------------------------------------------------------------------------

    async def must_find(self, tenant: str, subscription: str, delivery_id: str) -> Delivery:
        delivery = await self._store.delivery_by_id(tenant, delivery_id)
        if delivery is None or delivery.subscription != subscription:
            raise NotFound("There is no such item; see the list of them.", id=delivery_id[:128])
        return delivery

    async def again(self, version: SubscriptionVersion, row: Delivery, by: str) -> Delivery:
        """Retry a dead or waiting delivery from the beginning, at once."""
        if row.state not in ("dead", *OPEN_STATES):
            hint = "; give it to a run by hand" if row.state == "delivered" else ""
            message = f"It is {row.state}, and cannot be delivered again{hint}."
            raise Conflict(message, state=row.state)
        if (inactive := inactive_error(version)) is not None:
            raise inactive
        now = self._clock.millis()
        attempts = row.tried(now, REDELIVERED, f"by {by}")
        fresh = self._next(row, state="waiting", due_at=now, attempts=attempts)
        return await self._attempt(version, await self._write(fresh, before=row))

    async def drop(self, row: Delivery, by: str) -> Delivery:
        """Drop a delivery and its content. Its row stays."""
        if row.state not in ("dead", *OPEN_STATES):
            raise Conflict(f"It is {row.state}, and cannot be dropped.", state=row.state)
        dropped = self._next(row, state="dropped", due_at=None, body=b"", reason=f"by {by}")
        return await self._write(dropped, before=row)

    async def counts(self, version: SubscriptionVersion) -> dict[str, int]:
        return await self._store.delivery_counts(version.tenant, version.it.subscription_id)

    async def drop_all(self, version: SubscriptionVersion) -> None:
        """Drop every open delivery of a removed subscription."""
        states, name = ("dead", *OPEN_STATES), version.it.subscription_id
        where = DeliveryFilter(subscription=name, states=states)
        async for row in self._all_rows(version.tenant, where):
            await self._drop_removed(row)

    async def _drop_removed(self, row: Delivery) -> None:
        reason = "The subscription was removed."
        dropped = self._next(row, state="dropped", due_at=None, body=b"", reason=reason)
        with suppress(Overtaken):  # another task has it, and will find the subscription gone
            await self._write(dropped, before=row)

    async def wake(self, tenant: str, where: DeliveryFilter) -> None:
        """Make the waiting deliveries due now."""
        async for row in self._all_rows(tenant, replace(where, states=("waiting",))):
            if row.source in INBOUND_SOURCES:
                await self._make_due(row)
        self.look()

    async def _all_rows(self, tenant: str, where: DeliveryFilter) -> AsyncIterator[Delivery]:
        rows, cursor = await self._store.deliveries(tenant, where, None, PAGE)
        while True:
            for row in rows:
                yield row
            if cursor is None:
                return
            rows, cursor = await self._store.deliveries(tenant, where, cursor, PAGE)

    async def _make_due(self, row: Delivery) -> None:
        now = self._clock.millis()
        if row.due_at is None or row.due_at > now:
            with suppress(Overtaken):  # another task has it
                await self._write(self._next(row, due_at=now))

    async def _write(self, row: Delivery, before: Delivery | None = None) -> Delivery:
        await self.notices.commit(Batch(deliveries=[row]), [before] if before is not None else ())
        return row

    def _next(self, row: Delivery, **changes: object) -> Delivery:
        return row.next(updated_at=self._clock.millis(), **changes)


def _ignore_exception(future: "asyncio.Future[Delivery]") -> None:
    if not future.cancelled():
        future.exception()
