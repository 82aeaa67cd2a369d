"""Deliver events to webhooks: sign, retry, and give up with a dead letter."""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from moot import __version__
from moot.clock import Clock
from moot.core.backoff import retry_jitter
from moot.core.errors import Conflict, NotFound, Unavailable
from moot.core.errors.triggers import Overtaken, SubscriptionNotActive
from moot.core.triggers.hops import HEADER, hops_from_start
from moot.core.triggers.webhooks import (
    Circuit,
    WebhookRegistration,
    circuit_after_failure,
    close_circuit,
    next_webhook_time,
    webhook_headers,
)
from moot.net.dns import LookupNotStarted
from moot.net.outbound import CallFailed, Outbound, OutboundRequest, TargetRefused
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, Lane, LedgerRow
from moot.triggers.courier import SHUT, LaneGate
from moot.triggers.notices import NoticeWriter
from moot.triggers.webhooks.registrations import WEBHOOK_KIND, WEBHOOK_SOURCE, WebhookRegistry

SECONDS = 5.0
#: the most bytes read of an answer, which is then discarded
MOST_BYTES = 65_536
#: more than the concurrent calls of one receiver
MOST_RACES = 20
#: retry after this long (ms) when the host could not look up the name
LATER = 5000
#: parents of a run that are read to find its first trigger
MOST_PARENTS = 32

_circuit = msgspec.json.Decoder(Circuit).decode


class WebhookDeliveries:
    """Carries deliveries of the source ``outbound``. A delivered one leaves no row."""

    def __init__(self, store: Store, clock: Clock, hooks: WebhookRegistry, net: Outbound) -> None:
        self._store, self._clock, self._hooks, self._net = store, clock, hooks, net
        #: the circuits of receivers, as last read or written here
        self._ledgers: dict[tuple[str, str], LedgerRow | None] = {}
        #: called when a receiver may be called again
        self.stir: Callable[[], None] = lambda: None
        self.notices = NoticeWriter(store)

    async def gate(self, lane: Lane, now: int) -> LaneGate:
        """Return the gate of a receiver. One that has failed gets one call at a time until a call
        succeeds."""
        hook = self._hooks.find(lane.tenant, lane.subscription)
        if hook is None or hook.state == "failed":
            return LaneGate()  # no call is made; the carrier gives up what is left
        if hook.state == "paused":
            return SHUT
        circuit = await self.known(lane.tenant, lane.subscription)
        if (until := circuit.waits(now)) is not None:
            return LaneGate(0, until)
        return LaneGate() if circuit.row == 0 else LaneGate(1)

    async def carry(self, delivery: Delivery) -> None:
        hook = self._hooks.find(delivery.tenant, delivery.subscription)
        if hook is None:
            self._ledgers.pop((delivery.tenant, delivery.subscription), None)
            await self._store.commit(Batch(deliveries=[delivery.next(gone=True)]))
            return
        if hook.state == "failed":
            reason = delivery.reason or "The webhook has failed."
            await self._commit(Batch(deliveries=[self._dead(delivery, reason)]))
            return
        try:
            problem = await self._send(hook, delivery)
        except LookupNotStarted:  # not the fault of the receiver
            later = delivery.next(due_at=self._clock.millis() + LATER)
            await self._store.commit(Batch(deliveries=[later]))
            return
        if problem is None:
            await self._record_success(delivery)
        else:
            await self._record_failure(delivery, problem)

    async def _send(self, hook: WebhookRegistration, delivery: Delivery) -> str | None:
        """Send the event, and return what went wrong. Raise LookupNotStarted."""
        run_id, _, sequence = delivery.key.rpartition(":")
        rows = await self._store.read(delivery.tenant, run_id, int(sequence) - 1, 1)
        if not rows:
            return None  # its log is gone, so there is no event to send
        body = b'{"runId":%b,"workspaceId":%b,"event":%b}' % (
            msgspec.json.encode(run_id), msgspec.json.encode(delivery.tenant), rows[0],
        )  # fmt: skip
        now = self._clock.millis()
        request_headers = webhook_headers(hook, delivery.subject, now, body, __version__)
        request_headers[HEADER] = str(await self._hops(delivery.tenant, run_id) + 1)
        request = OutboundRequest(
            method="POST", url=hook.url, headers=request_headers, body=body, seconds=SECONDS,
            most_bytes=MOST_BYTES, whose=delivery.tenant,
        )  # fmt: skip
        try:
            response = await self._net.send(request)
        except LookupNotStarted:
            raise
        except (TargetRefused, CallFailed) as error:
            return str(error)
        return None if 200 <= response.status < 300 else f"The receiver answered {response.status}."

    async def _hops(self, tenant: str, run_id: str) -> int:
        """Count the hops behind a run, or behind the first parent that has any."""
        parent: str | None = run_id
        for _ in range(MOST_PARENTS):
            rows = await self._store.read(tenant, parent, -1, 1) if parent is not None else []
            if not rows:
                break
            hops, parent = hops_from_start(rows[0])
            if hops:
                return hops
        return 0

    async def _record_success(self, delivery: Delivery) -> None:
        place = delivery.tenant, delivery.subscription
        done = delivery.next(gone=True)
        for _ in range(MOST_RACES):
            ledger = self._ledgers.get(place) or await self._ledger(*place)
            circuit = _circuit_from_ledger(ledger)
            batch = Batch(deliveries=[done])
            if circuit.row:
                batch.ledgers = [_next_ledger(place, ledger, close_circuit(circuit))]
            try:
                return await self._commit(batch)
            except Overtaken:
                await self._check_revision(delivery)
                await self._ledger(*place)
        raise Unavailable("Too much changes here just now.")

    async def _record_failure(self, delivery: Delivery, problem: str) -> None:
        """Counted, however many fail at once."""
        place = delivery.tenant, delivery.subscription
        for _ in range(MOST_RACES):
            ledger, now = await self._ledger(*place), self._clock.millis()
            circuit = circuit_after_failure(_circuit_from_ledger(ledger), now, problem)
            after = self._row_after_failure(delivery, problem, now)
            batch = Batch(deliveries=[after], ledgers=[_next_ledger(place, ledger, circuit)])
            try:
                await self._commit(batch)
            except Overtaken:
                await self._check_revision(delivery)
                continue
            if circuit.ended:
                await self._fail_webhook(*place)
            return
        raise Unavailable("Too much changes here just now.")

    def _row_after_failure(self, delivery: Delivery, problem: str, now: int) -> Delivery:
        tries = len(delivery.attempts) + 1
        due = next_webhook_time(tries, now, retry_jitter(delivery.delivery_id))
        outcome = "dead-lettered" if due is None else "retrying"
        attempts = delivery.tried(now, outcome, problem[:500])
        if due is None:
            return self._dead(delivery, problem, attempts=attempts)
        return delivery.next(
            state="retrying", due_at=due, updated_at=now, reason=problem[:500], attempts=attempts
        )

    def _dead(self, delivery: Delivery, reason: str, **changes: object) -> Delivery:
        now = self._clock.millis()
        return delivery.next(
            state="dead", due_at=None, updated_at=now, reason=reason[:500], **changes
        )

    async def _check_revision(self, delivery: Delivery) -> None:
        """Raise Overtaken when the delivery has changed, and not only the ledger."""
        stored = await self._store.delivery(delivery.tenant, delivery.subscription, delivery.key)
        if stored is None or stored.revision != delivery.revision:
            raise Overtaken(delivery.delivery_id)

    async def _fail_webhook(self, tenant: str, webhook_id: str) -> None:
        for _ in range(MOST_RACES):
            hook = self._hooks.find(tenant, webhook_id)
            if hook is None or hook.state != "active":
                return
            with suppress(Overtaken):
                await self._hooks.change(tenant, webhook_id, "moot", "failed", state="failed")
                self.stir()

    # -- circuits of receivers ---------------------------------------------------------------

    async def known(self, tenant: str, webhook_id: str) -> Circuit:
        """Return the circuit as last read or written here."""
        if (tenant, webhook_id) not in self._ledgers:
            await self._ledger(tenant, webhook_id)
        return _circuit_from_ledger(self._ledgers.get((tenant, webhook_id)))

    async def circuit(self, tenant: str, webhook_id: str) -> Circuit:
        return _circuit_from_ledger(await self._ledger(tenant, webhook_id))

    async def _ledger(self, tenant: str, webhook_id: str) -> LedgerRow | None:
        ledger = await self._store.ledger(tenant, WEBHOOK_KIND, webhook_id)
        self._ledgers[tenant, webhook_id] = ledger
        return ledger

    async def _commit(self, batch: Batch, before: Delivery | None = None) -> None:
        """Commit, and ring the inbox when a letter dies or a receiver fails or recovers."""
        for ledger in batch.ledgers:
            old_circuit = _circuit_from_ledger(self._ledgers.get((ledger.tenant, ledger.name)))
            if old_circuit.failing != _circuit_from_ledger(ledger).failing:
                batch.inboxes = [ledger.tenant]
        await self.notices.commit(batch, [] if before is None else [before])
        for ledger in batch.ledgers:
            self._ledgers[ledger.tenant, ledger.name] = ledger

    # -- by people ---------------------------------------------------------------------------

    async def pause(self, tenant: str, webhook_id: str, by: str) -> WebhookRegistration:
        """Stop the calls. Events meanwhile wait as deliveries."""
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "paused":
            return hook
        if hook.state == "failed":
            raise SubscriptionNotActive(webhook_id, hook.state)
        return await self._hooks.change(tenant, webhook_id, by, "paused", state="paused")

    async def resume(self, tenant: str, webhook_id: str, by: str) -> WebhookRegistration:
        """Call the receiver again at once, even after failures. Raise Conflict for a webhook that
        was given up."""
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "failed":
            raise webhook_failed_error(hook)
        await self._close_circuit(tenant, webhook_id)
        if hook.state == "paused":
            hook = await self._hooks.change(tenant, webhook_id, by, "resumed", state="active")
        self.stir()
        return hook

    async def _close_circuit(self, tenant: str, webhook_id: str) -> None:
        place = tenant, webhook_id
        for _ in range(MOST_RACES):
            ledger = await self._ledger(*place)
            if ledger is None:
                return None
            closed_ledger = _next_ledger(place, ledger, close_circuit(_circuit_from_ledger(ledger)))
            with suppress(Overtaken):
                return await self._commit(Batch(ledgers=[closed_ledger]))
        raise Unavailable("Too much changes here just now; try again.")

    async def again(self, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
        """Retry a dead letter from the beginning. Raise NotFound, and Conflict when it is not dead
        or its webhook is inactive."""
        letter = await self._dead_letter(tenant, webhook_id, delivery_id)
        hook = self._hooks.must_find(tenant, webhook_id)
        if hook.state == "failed":
            raise webhook_failed_error(hook)
        if hook.state != "active":
            raise SubscriptionNotActive(webhook_id, hook.state)
        now = self._clock.millis()
        retried = letter.next(state="waiting", due_at=now, updated_at=now, attempts=[])
        await self._commit(Batch(deliveries=[retried]), letter)
        self.stir()
        return retried

    async def drop(self, tenant: str, webhook_id: str, delivery_id: str, by: str) -> Delivery:
        """Drop a dead letter. Raise NotFound, and Conflict when it is not dead."""
        letter = await self._dead_letter(tenant, webhook_id, delivery_id)
        now = self._clock.millis()
        dropped = letter.next(state="dropped", updated_at=now, reason=f"by {by}")
        await self._commit(Batch(deliveries=[dropped]), letter)
        return dropped

    async def _dead_letter(self, tenant: str, webhook_id: str, delivery_id: str) -> Delivery:
        delivery = await self._store.delivery_by_id(tenant, delivery_id)
        place = WEBHOOK_SOURCE, webhook_id
        if delivery is None or (delivery.source, delivery.subscription) != place:
            raise NotFound("There is no such delivery; see the dead letters.", id=delivery_id[:128])
        if delivery.state != "dead":
            raise Conflict(f"It is {delivery.state}, and no dead letter.", state=delivery.state)
        return delivery


def _circuit_from_ledger(ledger: LedgerRow | None) -> Circuit:
    return Circuit() if ledger is None else _circuit(ledger.body)


def _next_ledger(place: tuple[str, str], ledger: LedgerRow | None, circuit: Circuit) -> LedgerRow:
    tenant, name = place
    revision = (ledger.revision if ledger is not None else 0) + 1
    body = msgspec.json.encode(circuit)
    return LedgerRow(tenant=tenant, kind=WEBHOOK_KIND, name=name, revision=revision, body=body)


def webhook_failed_error(hook: WebhookRegistration) -> Conflict:
    message = "It failed for too long and was given up; register it again."
    return Conflict(message, webhookId=hook.webhook_id, state=hook.state)
