"""Events on their way to who registered for them: signed, tried again, given up in the open."""

import msgspec
from msgspec.structs import replace

from moot import __version__
from moot.clock import Clock
from moot.core.errors import NotFound
from moot.core.trigger_errors import Overtaken
from moot.core.webhooks import (
    Circuit,
    Webhook,
    failed,
    headers,
    lot_of,
    next_try,
    succeeded,
)
from moot.net.outbound import CallFailed, Order, Outbound, TargetRefused
from moot.store.protocol import Batch, Delivery, Ledger, Store
from moot.store.standing import Attempt
from moot.triggers.webhooks import KIND, Webhooks

SECONDS = 5.0
#: what a receiver answers is not kept; it may say so much before it is cut off
MOST_BYTES = 65_536
MOST_RACES = 20

_circuit = msgspec.json.Decoder(Circuit).decode


class Outgoing:
    """Carries deliveries of the source ``outbound``. One that is delivered leaves no row."""

    def __init__(self, store: Store, clock: Clock, hooks: Webhooks, net: Outbound) -> None:
        self._store, self._clock, self._hooks, self._net = store, clock, hooks, net

    async def carry(self, delivery: Delivery) -> None:
        hook = self._hooks.find(delivery.tenant, delivery.subscription)
        if hook is None or hook.state == "failed":
            await self._store.commit(Batch(deliveries=[_next(delivery, gone=True)]))
            return
        now = self._clock.millis()
        ledger = await self._ledger(delivery)
        if (until := _read(ledger).waits(now)) is not None:
            waits = _next(delivery, due_at=until, reason="The receiver is left alone.")
            await self._store.commit(Batch(deliveries=[waits]))
            return
        problem = await self._send(hook, delivery)
        if problem is None:
            await self._delivered(delivery, ledger)
        else:
            await self._failed(delivery, hook, problem)

    async def _send(self, hook: Webhook, delivery: Delivery) -> str | None:
        """What went wrong. Nothing of it is told to the receiver's rivals: each has its own row."""
        run_id, _, sequence = delivery.key.rpartition(":")
        rows = await self._store.read(delivery.tenant, run_id, int(sequence) - 1, 1)
        if not rows:
            return None  # its log is gone, and there is nothing to tell
        body = b'{"runId":%b,"workspaceId":%b,"event":%b}' % (
            msgspec.json.encode(run_id), msgspec.json.encode(delivery.tenant), rows[0],
        )  # fmt: skip
        said = headers(hook, delivery.subject, self._clock.millis(), body, __version__)
        order = Order(
            method="POST", url=hook.url, headers=said, body=body, seconds=SECONDS,
            most_bytes=MOST_BYTES, whose=delivery.tenant,
        )  # fmt: skip
        try:
            answer = await self._net.send(order)
        except (TargetRefused, CallFailed) as error:
            return str(error)
        return None if 200 <= answer.status < 300 else f"The receiver answered {answer.status}."

    async def _delivered(self, delivery: Delivery, ledger: Ledger | None) -> None:
        done = _next(delivery, gone=True)
        while True:
            circuit = _read(ledger)
            ledgers = [] if circuit.row == 0 else [_kept(delivery, ledger, succeeded(circuit))]
            try:
                await self._store.commit(Batch(deliveries=[done], ledgers=ledgers))
                return
            except Overtaken:
                if not ledgers:
                    raise
                ledger = await self._ledger(delivery)

    async def _failed(self, delivery: Delivery, hook: Webhook, problem: str) -> None:
        """Counted, however many fail at once."""
        for _ in range(MOST_RACES):
            ledger, now = await self._ledger(delivery), self._clock.millis()
            circuit = failed(_read(ledger), now)
            tries = len(delivery.attempts) + 1
            due = next_try(tries, now, circuit, lot_of(delivery.delivery_id))
            attempt = Attempt(
                event_id=f"{delivery.delivery_id}.{tries}",
                at=now,
                outcome="dead-lettered" if due is None else "retrying",
                reason=problem[:500],
            )
            after = _next(
                delivery,
                state="dead" if due is None else "retrying",
                due_at=due,
                updated_at=now,
                reason=problem[:500],
                attempts=[*delivery.attempts, attempt],
            )
            try:
                batch = Batch(deliveries=[after], ledgers=[_kept(delivery, ledger, circuit)])
                await self._store.commit(batch)
            except Overtaken:
                await self._still_ours(delivery)
                continue
            if circuit.ended:
                await self._give_up(delivery.tenant, hook)
            return

    async def _still_ours(self, delivery: Delivery) -> None:
        """Raises Overtaken when it is the delivery that has moved on, not the ledger."""
        known = await self._store.delivery(delivery.tenant, delivery.subscription, delivery.key)
        if known is None or known.revision != delivery.revision:
            raise Overtaken(delivery.delivery_id)

    async def _give_up(self, tenant: str, hook: Webhook) -> None:
        known = self._hooks.find(tenant, hook.webhook_id)
        if known is not None and known.state == "active":
            await self._hooks.put(tenant, replace(known, state="failed"), "moot", "failed")

    async def _ledger(self, delivery: Delivery) -> Ledger | None:
        return await self._store.ledger(delivery.tenant, KIND, delivery.subscription)

    async def circuit(self, tenant: str, webhook_id: str) -> Circuit:
        return _read(await self._store.ledger(tenant, KIND, webhook_id))

    async def again(self, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
        """A dead letter is tried once more from the beginning. Raises NotFound."""
        found = await self._store.delivery_by_id(tenant, delivery_id)
        if found is None or found.subscription != webhook_id:
            raise NotFound("There is no such delivery; see the dead letters.", id=delivery_id[:128])
        now = self._clock.millis()
        fresh = _next(found, state="waiting", due_at=now, updated_at=now, attempts=[])
        await self._store.commit(Batch(deliveries=[fresh]))
        return fresh


def _next(delivery: Delivery, **changes: object) -> Delivery:
    return replace(delivery, revision=delivery.revision + 1, **changes)


def _read(ledger: Ledger | None) -> Circuit:
    return Circuit() if ledger is None else _circuit(ledger.body)


def _kept(delivery: Delivery, ledger: Ledger | None, circuit: Circuit) -> Ledger:
    return Ledger(
        tenant=delivery.tenant,
        kind=KIND,
        name=delivery.subscription,
        revision=(ledger.revision if ledger is not None else 0) + 1,
        body=msgspec.json.encode(circuit),
    )
