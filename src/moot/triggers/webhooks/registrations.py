"""Who is told of which events: registrations, kept as records and known in memory."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.backoff import OVERLAP
from moot.core.errors import BadRequest
from moot.core.errors.triggers import Overtaken, SubscriptionNotFound, WebhookUrlRejected
from moot.core.state.run import Run
from moot.core.triggers.webhooks import Webhook
from moot.engine.streams.hub import Published
from moot.net.outbound import CallFailed, Outbound, TargetRefused
from moot.net.targets import NoAddress
from moot.store.protocol import Batch, Delivery, Guard, Store
from moot.store.records import Record

KIND = "webhook"
SOURCE = "outbound"
MOST_HOOKS = 100

_decode = msgspec.json.Decoder(Webhook).decode


class Kept(Struct, frozen=True):
    """A registration and the version of its record that it was read from."""

    hook: Webhook
    revision: int


class Webhooks:
    """Every change is on disk before it counts. They are asked at each commit, so all of them
    are at hand."""

    def __init__(self, store: Store, clock: Clock, net: Outbound) -> None:
        self._store, self._clock, self._net = store, clock, net
        self._known: dict[str, dict[str, Kept]] = {}
        self._registering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.look: Callable[[], None] = lambda: None

    async def load(self) -> None:
        for tenant in await self._store.record_tenants(KIND):
            found = await self._store.records(tenant, KIND)
            self._known[tenant] = {record.name: _kept(record) for record in found}

    def all(self, tenant: str) -> list[Webhook]:
        hooks = (kept.hook for kept in self._known.get(tenant, {}).values())
        return sorted(hooks, key=lambda hook: hook.created_at)

    def find(self, tenant: str, webhook_id: str) -> Webhook | None:
        found = self._known.get(tenant, {}).get(webhook_id)
        return None if found is None else found.hook

    def must_find(self, tenant: str, webhook_id: str) -> Webhook:
        return self._must_find(tenant, webhook_id).hook

    def _must_find(self, tenant: str, webhook_id: str) -> Kept:
        found = self._known.get(tenant, {}).get(webhook_id)
        if found is None:
            raise SubscriptionNotFound(webhook_id)
        return found

    async def register(
        self, tenant: str, url: str, events: tuple[str, ...], tags: tuple[str, ...], by: str
    ) -> Webhook:
        """Raises WebhookUrlRejected for an address that may not be called."""
        await self._judge(tenant, url)
        async with self._registering[tenant]:
            if len(self._known.get(tenant, {})) >= MOST_HOOKS:
                raise BadRequest(f"There are {MOST_HOOKS} webhooks; remove one first.")
            return await self._made(tenant, url, events, tags, by)

    async def _made(
        self, tenant: str, url: str, events: tuple[str, ...], tags: tuple[str, ...], by: str
    ) -> Webhook:
        hook = Webhook(
            webhook_id=self._clock.new_id("wh_"),
            url=url,
            events=events,
            tags=tags,
            secret=_secret(self._clock),
            created_at=self._clock.millis(),
        )
        await self._put(tenant, Kept(hook, 0), by, "registered")
        return hook

    async def _judge(self, tenant: str, url: str) -> None:
        """As at each delivery: a name that leads inside is refused before anybody relies on it.
        One that leads nowhere today may lead somewhere tomorrow."""
        try:
            await self._net.addresses(self._net.judged(url), tenant)
        except NoAddress as refusal:
            raise BadRequest(str(refusal), field="url") from None
        except TargetRefused as refusal:
            raise WebhookUrlRejected(str(refusal)) from None
        except CallFailed:
            return

    async def rotate(self, tenant: str, webhook_id: str, by: str) -> Webhook:
        """The secret before stays good for a day. Raises Overtaken when it was changed meanwhile,
        so that no secret is told that does not count."""
        hook = self.must_find(tenant, webhook_id)
        return await self.change(
            tenant,
            webhook_id,
            by,
            "rotated",
            secret=_secret(self._clock),
            earlier=hook.secret,
            earlier_until=self._clock.millis() + OVERLAP,
        )

    async def change(
        self, tenant: str, webhook_id: str, by: str, did: str, **changes: Any
    ) -> Webhook:
        """Decided on what is known at this moment. Raises Overtaken when that is no longer so."""
        kept = self._must_find(tenant, webhook_id)
        fresh = Kept(replace(kept.hook, **changes), kept.revision)
        await self._put(tenant, fresh, by, did)
        return fresh.hook

    async def remove(self, tenant: str, webhook_id: str, by: str) -> None:
        await self._put(tenant, self._must_find(tenant, webhook_id), by, "removed", gone=True)

    async def _put(self, tenant: str, kept: Kept, by: str, did: str, gone: bool = False) -> None:
        """In the place of the version that it was made from, and of no other."""
        hook, name = kept.hook, kept.hook.webhook_id
        record = Record(
            tenant=tenant,
            kind=KIND,
            name=name,
            version=did,
            body=msgspec.json.encode(hook),
            created_at=self._clock.millis(),
            by=by,
            gone=gone,
        )
        guard = Guard(tenant=tenant, kind=KIND, name=name, revision=kept.revision)
        try:
            await self._store.commit(Batch(guards=[guard], records=[record]))
        except Overtaken:
            await self._read_again(tenant, name)
            raise
        await self._read_again(tenant, name)

    async def _read_again(self, tenant: str, name: str) -> None:
        record = await self._store.record(tenant, KIND, name)
        known = self._known.setdefault(tenant, {})
        if record is None:
            known.pop(name, None)
        elif name not in known or known[name].revision < record.revision:
            known[name] = _kept(record)

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
            for hook in (kept.hook for kept in hooks.values())
            if hook.wants(event.type, run.tags)
        ]


def _kept(record: Record) -> Kept:
    return Kept(_decode(record.body), record.revision)


def _secret(clock: Clock) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(clock.new_secret("").encode()).hexdigest()
