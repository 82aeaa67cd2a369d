"""Events on their way to who registered for them: signed, tried again, given up in the open."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from moot import __version__
from moot.clock import Clock
from moot.core.backoff import lot_of
from moot.core.errors import Conflict, NotFound, Unavailable
from moot.core.errors.triggers import Overtaken, SubscriptionNotActive
from moot.core.triggers.hops import HEADER, behind
from moot.core.triggers.webhooks import Circuit, Webhook, closed, failed, headers, next_try
from moot.net.outbound import CallFailed, NotAsked, Order, Outbound, TargetRefused
from moot.store.protocol import Batch, Delivery, Ledger, Store
from moot.store.records import Attempt, Lane
from moot.triggers.courier import SHUT, Gate
from moot.triggers.notices import News
from moot.triggers.webhooks.registrations import KIND, SOURCE, Webhooks

SECONDS = 5.0
#: what a receiver answers is not kept; it may say so much before it is cut off
MOST_BYTES = 65_536
#: more than one receiver is ever called at a time
MOST_RACES = 20
#: after this host did not come to call, the delivery is due again so much later (ms)
LATER = 5000
#: runs above a run that are looked at for what began the first of them
MOST_PARENTS = 32

_circuit = msgspec.json.Decoder(Circuit).decode


class Outgoing:
    """Carries deliveries of the source ``outbound``. One that is delivered leaves no row."""

    def __init__(self, store: Store, clock: Clock, hooks: Webhooks, net: Outbound) -> None:
        self._store, self._clock, self._hooks, self._net = store, clock, hooks, net
        #: how receivers do, as it was last read or written here
        self._ledgers: dict[tuple[str, str], Ledger | None] = {}
        #: says that a receiver may be called that could not be before
        self.stir: Callable[[], None] = lambda: None
        self.news = News(store)

    async def gate(self, lane: Lane, now: int) -> Gate:
        """A receiver that has just failed is called once at a time, also after its break: one
        call finds out for all."""
        hook = self._hooks.find(lane.tenant, lane.subscription)
        if hook is None or hook.state == "failed":
            return Gate()  # nobody is called; what is left is put away
        if hook.state == "paused":
            return SHUT
        circuit = await self.known(lane.tenant, lane.subscription)
        if (until := circuit.waits(now)) is not None:
            return Gate(0, until)
        return Gate() if circuit.row == 0 else Gate(1)

    async def carry(self, delivery: Delivery) -> None:
        hook = self._hooks.find(delivery.tenant, delivery.subscription)
        if hook is None:
            self._ledgers.pop((delivery.tenant, delivery.subscription), None)
            await self._store.commit(Batch(deliveries=[_next(delivery, gone=True)]))
            return
        if hook.state == "failed":
            why = delivery.reason or "The webhook has failed."
            await self._commit(Batch(deliveries=[self._dead(delivery, why)]))
            return
        try:
            problem = await self._send(hook, delivery)
        except NotAsked:  # says nothing of the receiver
            later = _next(delivery, due_at=self._clock.millis() + LATER)
            await self._store.commit(Batch(deliveries=[later]))
            return
        if problem is None:
            await self._delivered(delivery)
        else:
            await self._failed(delivery, problem)

    async def _send(self, hook: Webhook, delivery: Delivery) -> str | None:
        """What went wrong. Nothing of it is told to the receiver's rivals: each has its own row.
        Raises NotAsked."""
        run_id, _, sequence = delivery.key.rpartition(":")
        rows = await self._store.read(delivery.tenant, run_id, int(sequence) - 1, 1)
        if not rows:
            return None  # its log is gone, and there is nothing to tell
        body = b'{"runId":%b,"workspaceId":%b,"event":%b}' % (
            msgspec.json.encode(run_id), msgspec.json.encode(delivery.tenant), rows[0],
        )  # fmt: skip
        said = headers(hook, delivery.subject, self._clock.millis(), body, __version__)
        said[HEADER] = str(await self._hops(delivery.tenant, run_id) + 1)
        order = Order(
            method="POST", url=hook.url, headers=said, body=body, seconds=SECONDS,
            most_bytes=MOST_BYTES, whose=delivery.tenant,
        )  # fmt: skip
        try:
            answer = await self._net.send(order)
        except NotAsked:
            raise
        except (TargetRefused, CallFailed) as error:
            return str(error)
        return None if 200 <= answer.status < 300 else f"The receiver answered {answer.status}."

    async def _hops(self, tenant: str, run_id: str) -> int:
        """How many steps lie behind a run, or behind the one whose child it is."""
        parent: str | None = run_id
        for _ in range(MOST_PARENTS):
            rows = await self._store.read(tenant, parent, -1, 1) if parent is not None else []
            if not rows:
                break
            hops, parent = behind(rows[0])
            if hops:
                return hops
        return 0

    async def _delivered(self, delivery: Delivery) -> None:
        place = delivery.tenant, delivery.subscription
        done = _next(delivery, gone=True)
        for _ in range(MOST_RACES):
            ledger = self._ledgers.get(place) or await self._ledger(*place)
            circuit = _read(ledger)
            ledgers = [] if circuit.row == 0 else [_after(place, ledger, closed(circuit))]
            try:
                await self._commit(Batch(deliveries=[done], ledgers=ledgers))
                return
            except Overtaken:
                await self._still_ours(delivery)
                await self._ledger(*place)
        raise Unavailable("Too much changes here just now.")

    async def _failed(self, delivery: Delivery, problem: str) -> None:
        """Counted, however many fail at once."""
        place = delivery.tenant, delivery.subscription
        for _ in range(MOST_RACES):
            ledger, now = await self._ledger(*place), self._clock.millis()
            circuit = failed(_read(ledger), now, problem)
            after = self._tried(delivery, problem, now)
            try:
                await self._commit(
                    Batch(deliveries=[after], ledgers=[_after(place, ledger, circuit)])
                )
            except Overtaken:
                await self._still_ours(delivery)
                continue
            if circuit.ended:
                await self._give_up(*place)
            return
        raise Unavailable("Too much changes here just now.")

    def _tried(self, delivery: Delivery, problem: str, now: int) -> Delivery:
        tries = len(delivery.attempts) + 1
        due = next_try(tries, now, lot_of(delivery.delivery_id))
        attempt = Attempt(
            event_id=f"{delivery.delivery_id}.{tries}",
            at=now,
            outcome="dead-lettered" if due is None else "retrying",
            reason=problem[:500],
        )
        attempts = [*delivery.attempts, attempt]
        if due is None:
            return self._dead(delivery, problem, attempts=attempts)
        return _next(
            delivery, state="retrying", due_at=due, updated_at=now, reason=problem[:500],
            attempts=attempts,
        )  # fmt: skip

    def _dead(self, delivery: Delivery, why: str, **changes: object) -> Delivery:
        now = self._clock.millis()
        return _next(
            delivery, state="dead", due_at=None, updated_at=now, reason=why[:500], **changes
        )

    async def _still_ours(self, delivery: Delivery) -> None:
        """Raises Overtaken when it is the delivery that has moved on, not the ledger."""
        known = await self._store.delivery(delivery.tenant, delivery.subscription, delivery.key)
        if known is None or known.revision != delivery.revision:
            raise Overtaken(delivery.delivery_id)

    async def _give_up(self, tenant: str, webhook_id: str) -> None:
        for _ in range(MOST_RACES):
            known = self._hooks.find(tenant, webhook_id)
            if known is None or known.state != "active":
                return
            try:
                await self._hooks.change(tenant, webhook_id, "moot", "failed", state="failed")
                self.stir()
            except Overtaken:
                continue

    # -- how a receiver does -----------------------------------------------------------------

    async def known(self, tenant: str, webhook_id: str) -> Circuit:
        """As it was last read or written here."""
        if (tenant, webhook_id) not in self._ledgers:
            await self._ledger(tenant, webhook_id)
        return _read(self._ledgers.get((tenant, webhook_id)))

    async def circuit(self, tenant: str, webhook_id: str) -> Circuit:
        return _read(await self._ledger(tenant, webhook_id))

    async def _ledger(self, tenant: str, webhook_id: str) -> Ledger | None:
        found = await self._store.ledger(tenant, KIND, webhook_id)
        self._ledgers[tenant, webhook_id] = found
        return found

    async def _commit(self, batch: Batch, was: Delivery | None = None) -> None:
        """With what people are told of it: letters that die, receivers that fail or are back."""
        for ledger in batch.ledgers:
            before = _read(self._ledgers.get((ledger.tenant, ledger.name)))
            if before.failing != _read(ledger).failing:
                batch.inboxes = [ledger.tenant]
        await self.news.commit(batch, [] if was is None else [was])
        for ledger in batch.ledgers:
            self._ledgers[ledger.tenant, ledger.name] = ledger

    # -- by people ---------------------------------------------------------------------------

    async def pause(self, tenant: str, webhook_id: str, by: str) -> Webhook:
        """It is called no more; what happens meanwhile is kept for it."""
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "paused":
            return hook
        if hook.state == "failed":
            raise SubscriptionNotActive(webhook_id, hook.state)
        return await self._hooks.change(tenant, webhook_id, by, "paused", state="paused")

    async def resume(self, tenant: str, webhook_id: str, by: str) -> Webhook:
        """It is called again at once, also where it was left alone because it had failed. Raises
        Conflict for one that was given up."""
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "failed":
            raise given_up(hook)
        await self._close(tenant, webhook_id)
        if hook.state == "paused":
            hook = await self._hooks.change(tenant, webhook_id, by, "resumed", state="active")
        self.stir()
        return hook

    async def _close(self, tenant: str, webhook_id: str) -> None:
        place = tenant, webhook_id
        for _ in range(MOST_RACES):
            ledger = await self._ledger(*place)
            if ledger is None:
                return
            fresh = _after(place, ledger, closed(_read(ledger)))
            try:
                await self._commit(Batch(ledgers=[fresh]))
            except Overtaken:
                continue
            return
        raise Unavailable("Too much changes here just now; try again.")

    async def again(self, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
        """A dead letter is tried once more from the beginning. Raises NotFound, and Conflict for
        what is not dead or whose webhook is not called now."""
        found = await self._dead_letter(tenant, webhook_id, delivery_id)
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "failed":
            raise given_up(hook)
        if hook.state != "active":
            raise SubscriptionNotActive(webhook_id, hook.state)
        now = self._clock.millis()
        fresh = _next(found, state="waiting", due_at=now, updated_at=now, attempts=[])
        await self._commit(Batch(deliveries=[fresh]), found)
        self.stir()
        return fresh

    async def drop(self, tenant: str, webhook_id: str, delivery_id: str, by: str) -> Delivery:
        """A dead letter is of no interest any more. Raises NotFound, and Conflict for what is not
        dead."""
        found = await self._dead_letter(tenant, webhook_id, delivery_id)
        now = self._clock.millis()
        dropped = _next(found, state="dropped", updated_at=now, reason=f"by {by}")
        await self._commit(Batch(deliveries=[dropped]), found)
        return dropped

    async def _dead_letter(self, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
        found = await self._store.delivery_by_id(tenant, delivery_id)
        if found is None or found.source != SOURCE or found.subscription != webhook_id:
            raise NotFound("There is no such delivery; see the dead letters.", id=delivery_id[:128])
        if found.state != "dead":
            raise Conflict(f"It is {found.state}, and no dead letter.", state=found.state)
        return found


def _next(delivery: Delivery, **changes: object) -> Delivery:
    return replace(delivery, revision=delivery.revision + 1, **changes)


def _read(ledger: Ledger | None) -> Circuit:
    return Circuit() if ledger is None else _circuit(ledger.body)


def _after(place: tuple[str, str], ledger: Ledger | None, circuit: Circuit) -> Ledger:
    tenant, name = place
    revision = (ledger.revision if ledger is not None else 0) + 1
    return Ledger(
        tenant=tenant, kind=KIND, name=name, revision=revision, body=msgspec.json.encode(circuit)
    )


def given_up(hook: Webhook) -> Conflict:
    said = "It failed for too long and was given up; register it again."
    return Conflict(said, webhookId=hook.webhook_id, state=hook.state)
