"""Webhook registrations, stored as records and cached in memory."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.backoff import SECRET_OVERLAP
from moot.core.errors import BadRequest
from moot.core.errors.triggers import SubscriptionNotFound, WebhookUrlRejected
from moot.core.state.run import Run
from moot.core.triggers.webhooks import WebhookRegistration
from moot.engine.streams.hub import Published
from moot.net.outbound import CallFailed, Outbound, TargetRefused
from moot.net.targets import NoAddress
from moot.store.protocol import Batch, Store
from moot.store.records import Delivery, Guard, Record, new_record

WEBHOOK_KIND = "webhook"
WEBHOOK_SOURCE = "outbound"
MOST_HOOKS = 100

_decode = msgspec.json.Decoder(WebhookRegistration).decode


class WebhookVersion(Struct, frozen=True):
    """A webhook and the revision of its record."""

    hook: WebhookRegistration
    revision: int


class WebhookRegistry:
    """The registrations of every tenant. Each commit of a run reads them, so all of them are in
    memory; a change counts once it is on disk."""

    def __init__(self, store: Store, clock: Clock, net: Outbound) -> None:
        self._store, self._clock, self._net = store, clock, net
        self._versions: dict[str, dict[str, WebhookVersion]] = {}
        self._registering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.look: Callable[[], None] = lambda: None

    async def load(self) -> None:
        for tenant in await self._store.record_tenants(WEBHOOK_KIND):
            records = await self._store.records(tenant, WEBHOOK_KIND)
            self._versions[tenant] = {
                record.name: _version_from_record(record) for record in records
            }

    def all(self, tenant: str) -> list[WebhookRegistration]:
        hooks = (version.hook for version in self._versions.get(tenant, {}).values())
        return sorted(hooks, key=lambda hook: hook.created_at)

    def find(self, tenant: str, webhook_id: str) -> WebhookRegistration | None:
        version = self._versions.get(tenant, {}).get(webhook_id)
        return None if version is None else version.hook

    def must_find(self, tenant: str, webhook_id: str) -> WebhookRegistration:
        return self._must_find(tenant, webhook_id).hook

    def _must_find(self, tenant: str, webhook_id: str) -> WebhookVersion:
        version = self._versions.get(tenant, {}).get(webhook_id)
        if version is None:
            raise SubscriptionNotFound(webhook_id)
        return version

    async def register(
        self, tenant: str, url: str, events: tuple[str, ...], tags: tuple[str, ...], by: str
    ) -> WebhookRegistration:
        """Register a webhook. Raise WebhookUrlRejected for an address that may not be called."""
        await self._check_url(tenant, url)
        async with self._registering[tenant]:
            if len(self._versions.get(tenant, {})) >= MOST_HOOKS:
                raise BadRequest(f"There are {MOST_HOOKS} webhooks; remove one first.")
            return await self._create(tenant, url, events, tags, by)

    async def _create(
        self, tenant: str, url: str, events: tuple[str, ...], tags: tuple[str, ...], by: str
    ) -> WebhookRegistration:
        hook = WebhookRegistration(
            webhook_id=self._clock.new_id("wh_"),
            url=url,
            events=events,
            tags=tags,
            secret=_new_secret(self._clock),
            created_at=self._clock.millis(),
        )
        await self._put(tenant, WebhookVersion(hook, 0), by, "registered")
        return hook

    async def _check_url(self, tenant: str, url: str) -> None:
        """Refuse an address that may not be called, as each delivery does. A name without an
        address is accepted, because it may get one later."""
        try:
            await self._net.addresses(self._net.check_url(url), tenant)
        except NoAddress as refusal:
            raise BadRequest(str(refusal), field="url") from None
        except TargetRefused as refusal:
            raise WebhookUrlRejected(str(refusal)) from None
        except CallFailed:
            return

    async def rotate(self, tenant: str, webhook_id: str, by: str) -> WebhookRegistration:
        """Set a new secret; the previous one stays valid for a day. Raise Overtaken when the
        webhook has changed, so that no invalid secret is returned."""
        hook = self.must_find(tenant, webhook_id)
        return await self.change(
            tenant,
            webhook_id,
            by,
            "rotated",
            secret=_new_secret(self._clock),
            earlier=hook.secret,
            earlier_until=self._clock.millis() + SECRET_OVERLAP,
        )

    async def change(
        self, tenant: str, webhook_id: str, by: str, did: str, **changes: Any
    ) -> WebhookRegistration:
        """Change the cached version. Raise Overtaken when it is outdated."""
        version = self._must_find(tenant, webhook_id)
        changed = WebhookVersion(replace(version.hook, **changes), version.revision)
        await self._put(tenant, changed, by, did)
        return changed.hook

    async def remove(self, tenant: str, webhook_id: str, by: str) -> None:
        await self._put(tenant, self._must_find(tenant, webhook_id), by, "removed", gone=True)

    async def _put(
        self, tenant: str, version: WebhookVersion, by: str, did: str, gone: bool = False
    ) -> None:
        """Write the next revision of exactly this version."""
        hook, name = version.hook, version.hook.webhook_id
        place = tenant, WEBHOOK_KIND, name
        record = new_record(place, did, hook, by, self._clock.millis(), gone)
        guard = Guard(tenant=tenant, kind=WEBHOOK_KIND, name=name, revision=version.revision)
        try:
            await self._store.commit(Batch(guards=[guard], records=[record]))
        finally:
            await self._reload(tenant, name)

    async def _reload(self, tenant: str, name: str) -> None:
        record = await self._store.record(tenant, WEBHOOK_KIND, name)
        versions = self._versions.setdefault(tenant, {})
        if record is None:
            versions.pop(name, None)
        elif name not in versions or versions[name].revision < record.revision:
            versions[name] = _version_from_record(record)

    def letters(self, run: Run, published: list[Published]) -> list[Delivery]:
        """Return the deliveries of a commit, to be written with it. A replay or a fork sends no
        inherited events again."""
        hooks = self._versions.get(run.tenant)
        if not hooks or run.replayed:
            return []
        first_new, now = run.inherited, self._clock.millis()
        return [
            Delivery(
                tenant=run.tenant,
                subscription=hook.webhook_id,
                key=f"{run.run_id}:{event.sequence}",
                delivery_id=self._clock.new_id("out_"),
                source=WEBHOOK_SOURCE,
                state="waiting",
                received_at=now,
                updated_at=now,
                due_at=now,
                run_id=run.run_id,
                subject=event.type,
            )
            for event in published
            if event.sequence >= first_new
            for hook in (version.hook for version in hooks.values())
            if hook.wants(event.type, run.tags)
        ]


def _version_from_record(record: Record) -> WebhookVersion:
    return WebhookVersion(_decode(record.body), record.revision)


def _new_secret(clock: Clock) -> str:
    """Return 64 hexadecimal digits."""
    return hashlib.sha256(clock.new_secret("").encode()).hexdigest()
