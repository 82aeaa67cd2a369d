"""A world of receivers for what goes out: each answers as a test wants, and nobody is on a wire."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from moot.agents.definitions.registry import AgentRegistry, DeploymentService
from moot.agents.roster.members import MemberResolver, RosterService
from moot.core.triggers.webhooks import WebhookRegistration
from moot.engine.start import AgentPins
from moot.net.outbound import Outbound, OutboundRequest, OutboundResponse
from moot.net.targets import Target
from moot.store.protocol import Append, Batch
from moot.store.records import Delivery, DeliveryFilter
from moot.triggers.service import Triggers
from moot.triggers.webhooks import registrations
from tests.support.engine.hosts import TENANT, Place

Answer = Callable[[OutboundRequest], Any]


class World(Outbound):
    """What each answers: a status, an error, or something that comes to one of them."""

    def __init__(self) -> None:
        super().__init__(private=True)
        self.answers: dict[str, Answer] = {}
        self.called: list[str] = []
        self.at_once: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def addresses(self, found: Target, whose: str = "") -> list[str]:
        await asyncio.sleep(0)
        return ["127.0.0.1"]

    async def send(self, order: OutboundRequest) -> OutboundResponse:
        name = order.url
        self.called.append(name)
        self.at_once[name] = self.at_once.get(name, 0) + 1
        self.most[name] = max(self.most.get(name, 0), self.at_once[name])
        try:
            said = self.answers.get(name, lambda order: 200)(order)
            status = await said if asyncio.iscoroutine(said) else said
        finally:
            self.at_once[name] -= 1
        if isinstance(status, Exception):
            raise status
        return OutboundResponse(status, {}, b"")


@asynccontextmanager
async def opened(place: Place, wrapper: Any = None) -> AsyncIterator[tuple[Triggers, World]]:
    host, world = place.host(wrapper), World()
    agents = AgentRegistry(host.store, place.clock, lambda *_: None)
    deployments = DeploymentService(host.store, place.clock, agents)
    roster = RosterService(host.store, place.clock)
    pins = AgentPins(MemberResolver(roster, agents, deployments, place.clock), place.clock)
    triggers = Triggers(host, host.store, place.clock, roster, pins, world)
    await triggers.load()
    triggers.start()
    yield triggers, world
    await triggers.aclose()


async def hook(triggers: Triggers, name: str, tenant: str = TENANT) -> WebhookRegistration:
    made = WebhookRegistration(
        webhook_id=f"wh_{name}", url=name, events=("*",), secret="s" * 64, created_at=1
    )
    await triggers.webhooks._put(tenant, registrations.WebhookVersion(made, 0), "me", "registered")
    return made


async def owe(
    place: Place, triggers: Triggers, hook: WebhookRegistration, count: int, tenant: str = TENANT
) -> None:
    """Letters about a log that has as many events."""
    now, run = place.clock.millis(), f"run-{hook.webhook_id}-{place.clock.new_id('')}"
    letters = [
        Delivery(
            tenant=tenant, subscription=hook.webhook_id, key=f"{run}:{number}",
            delivery_id=f"out_{run}_{number}", source="outbound", state="waiting",
            received_at=now, updated_at=now, due_at=now, run_id=run, subject="run.completed",
        )
        for number in range(count)
    ]  # fmt: skip
    log = Append(tenant=tenant, run_id=run, first=0, events=[b'{"payload":{}}'] * count)
    await place.store.commit(Batch(appends=[log], deliveries=letters))
    triggers.courier.look()


async def rows(place: Place, hook: WebhookRegistration, tenant: str = TENANT) -> list[Delivery]:
    where = DeliveryFilter(subscription=hook.webhook_id)
    found: list[Delivery] = (await place.store.deliveries(tenant, where, None, 1000))[0]
    return found


async def states(place: Place, hook: WebhookRegistration, tenant: str = TENANT) -> dict[str, int]:
    found: dict[str, int] = await place.store.delivery_counts(tenant, hook.webhook_id)
    return found


async def come_to(place: Place, hook: WebhookRegistration, wanted: dict[str, int]) -> None:
    """Waits until this is what is left."""
    async with asyncio.timeout(60):
        while await states(place, hook) != wanted:
            await asyncio.sleep(0.005)


def ahead(place: Place, triggers: Triggers, millis: int) -> None:
    place.clock.ahead_ms += millis
    triggers.look()
