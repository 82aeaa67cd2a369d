"""Strangers cannot fill the disk, nor take another subscription's share."""

import hashlib
import hmac
from collections import Counter

import msgspec
import pytest

from moot.api.access.auth import RateLimit
from moot.api.app import App
from moot.api.services import Services
from moot.clock import SystemClock
from moot.triggers.inbound.subscriptions import SubscriptionRequest
from tests.support.api.application import ask

FLOW = {
    "id": "takes", "name": "takes", "version": "1.0", "edges": [], "triggers": [],
    "nodes": [{"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0},
               "config": {}, "inputs": {}}],
    "variables": [], "metadata": {}, "settings": {},
}  # fmt: skip


class Stopped(SystemClock):
    def micros(self) -> int:
        return 1


@pytest.fixture
async def places(services: Services) -> list[str]:
    """The addresses of two subscriptions."""
    services.rate = RateLimit(0, SystemClock())
    await services.host.flows.register("default", msgspec.json.encode(FLOW))
    wanted = SubscriptionRequest(workflow_id="takes")
    made = [
        await services.triggers.subscriptions.register("default", wanted, "me") for _ in range(2)
    ]
    return [f"/v1/host/moot/ingest/{each.subscription_id}" for each in made]


async def statuses(app: App, place: str) -> Counter[int]:
    return Counter([(await ask(app, "POST", place, {"n": n})).status for n in range(10)])


async def test_each_subscription_has_a_share_of_its_own(
    services: Services, places: list[str]
) -> None:
    services.ingest_rate = RateLimit(4, Stopped())
    app = App(services)
    assert await statuses(app, places[0]) == {401: 4, 429: 6}
    assert await statuses(app, places[1]) == {401: 4, 429: 6}


async def test_whoever_knows_the_secret_waits_for_no_stranger(
    services: Services, places: list[str]
) -> None:
    services.ingest_rate = RateLimit(4, Stopped())
    app, name = App(services), places[0].rpartition("/")[2]
    assert await statuses(app, places[0]) == {401: 4, 429: 6}
    secret = (await services.triggers.subscriptions.find_public(name)).it.secret
    body, seconds = msgspec.json.encode({"n": 1}), str(services.clock.millis() // 1000)
    signed = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"x_openwop_timestamp": seconds, "x_openwop_signature": f"sha256={signed}"}
    sent = [(await ask(app, "POST", places[0], {"n": 1}, **headers)).status for _ in range(10)]
    assert Counter(sent) == {202: 1, 200: 9}


async def test_of_what_is_not_signed_only_so_much_is_written_down(
    services: Services, places: list[str]
) -> None:
    services.triggers.deliveries._unverified._most = 3
    assert await statuses(App(services), places[0]) == {401: 10}
    name = places[0].rpartition("/")[2]
    assert await services.store.delivery_counts("default", name) == {"unverified": 3}
