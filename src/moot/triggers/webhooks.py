"""Who is told of which events: registrations, kept as records and known in memory."""

import hashlib
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.errors import BadRequest
from moot.core.run import Run
from moot.core.trigger_errors import SubscriptionNotFound, WebhookUrlRejected
from moot.core.webhooks import OVERLAP, Webhook
from moot.engine.hub import Published
from moot.net.outbound import CallFailed, Outbound, TargetRefused
from moot.store.protocol import Batch, Delivery, Guard, Store
from moot.store.standing import Record

KIND = "webhook"
SOURCE = "outbound"
MOST_HOOKS = 100

_decode = msgspec.json.Decoder(Webhook).decode


class Webhooks:
    """Every change is on disk before it counts. They are asked at each commit, so all of them
    are at hand."""

    def __init__(self, store: Store, clock: Clock, net: Outbound) -> None:
        self._store, self._clock, self._net = store, clock, net
        self._known: dict[str, dict[str, Webhook]] = {}
        self.look: Callable[[], None] = lambda: None

    async def load(self) -> None:
        for tenant in await self._store.record_tenants(KIND):
            found = await self._store.records(tenant, KIND)
            self._known[tenant] = {record.name: _decode(record.body) for record in found}

    def all(self, tenant: str) -> list[Webhook]:
        return sorted(self._known.get(tenant, {}).values(), key=lambda hook: hook.created_at)

    def find(self, tenant: str, webhook_id: str) -> Webhook | None:
        return self._known.get(tenant, {}).get(webhook_id)

    def must_find(self, tenant: str, webhook_id: str) -> Webhook:
        found = self.find(tenant, webhook_id)
        if found is None:
            raise SubscriptionNotFound(webhook_id)
        return found

    async def register(
        self, tenant: str, url: str, events: tuple[str, ...], tags: tuple[str, ...], by: str
    ) -> Webhook:
        """Raises WebhookUrlRejected for an address that may not be called."""
        await self._judge(tenant, url)
        if len(self._known.get(tenant, {})) >= MOST_HOOKS:
            raise BadRequest(f"There are {MOST_HOOKS} webhooks; remove one first.")
        hook = Webhook(
            webhook_id=self._clock.new_id("wh_"),
            url=url,
            events=events,
            tags=tags,
            secret=_secret(self._clock),
            created_at=self._clock.millis(),
        )
        await self.put(tenant, hook, by, "registered")
        return hook

    async def _judge(self, tenant: str, url: str) -> None:
        """As at each delivery: a name that leads inside is refused before anybody relies on it.
        One that leads nowhere today may lead somewhere tomorrow."""
        try:
            await self._net.addresses(self._net.judged(url), tenant)
        except TargetRefused as refusal:
            raise WebhookUrlRejected(str(refusal)) from None
        except CallFailed:
            return

    async def rotate(self, tenant: str, webhook_id: str, by: str) -> Webhook:
        """The secret before stays good for a day."""
        hook = self.must_find(tenant, webhook_id)
        fresh = replace(
            hook,
            secret=_secret(self._clock),
            earlier=hook.secret,
            earlier_until=self._clock.millis() + OVERLAP,
        )
        await self.put(tenant, fresh, by, "rotated")
        return fresh

    async def remove(self, tenant: str, webhook_id: str, by: str) -> None:
        hook = self.must_find(tenant, webhook_id)
        await self.put(tenant, hook, by, "removed", gone=True)

    async def put(self, tenant: str, hook: Webhook, by: str, did: str, gone: bool = False) -> None:
        record = Record(
            tenant=tenant,
            kind=KIND,
            name=hook.webhook_id,
            version=did,
            body=msgspec.json.encode(hook),
            created_at=self._clock.millis(),
            by=by,
            gone=gone,
        )
        await self._store.commit(
            Batch(guards=[await self._guard(tenant, hook.webhook_id)], records=[record])
        )
        known = self._known.setdefault(tenant, {})
        if gone:
            known.pop(hook.webhook_id, None)
        else:
            known[hook.webhook_id] = hook

    async def _guard(self, tenant: str, webhook_id: str) -> Guard:
        found = await self._store.record(tenant, KIND, webhook_id)
        revision = found.revision if found is not None else 0
        return Guard(tenant=tenant, kind=KIND, name=webhook_id, revision=revision)

    def letters(self, run: Run, published: list[Published]) -> list[Delivery]:
        """What is to be told of a commit, written with it. History that a replay or a branch says
        again was told when it happened."""
        hooks = self._known.get(run.tenant)
        if not hooks or run.replayed:
            return []
        first, now = run.inherited, self._clock.millis()
        return [
            Delivery(
                tenant=run.tenant,
                subscription=hook.webhook_id,
                key=f"{run.run_id}:{event.sequence}",
                delivery_id=self._clock.new_id("out_"),
                source=SOURCE,
                state="waiting",
                received_at=now,
                updated_at=now,
                due_at=now,
                run_id=run.run_id,
                subject=event.type,
            )
            for event in published
            if event.sequence >= first
            for hook in hooks.values()
            if hook.wants(event.type, run.tags)
        ]


def _secret(clock: Clock) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(clock.new_secret("").encode()).hexdigest()
