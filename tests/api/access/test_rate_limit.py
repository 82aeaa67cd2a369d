"""The rate limit cannot be stepped around by writing the same caller differently."""

from collections import Counter
from collections.abc import Callable

import pytest

from moot.api.access import auth
from moot.api.access.auth import RateLimit
from moot.api.app import App
from moot.api.services import Services
from moot.clock import SystemClock
from moot.core.errors import RateLimited
from tests.support.api.application import ask

PLACE = "/v1/runs/nobody"


class Stopped(SystemClock):
    """A clock that stands still, so that no bucket fills again."""

    def micros(self) -> int:
        return 1


@pytest.fixture
def app(services: Services) -> App:
    services.rate = RateLimit(5, Stopped())
    return App(services)


async def statuses(app: App, headers: Callable[[int], str | None]) -> Counter[int]:
    seen: Counter[int] = Counter()
    for number in range(20):
        sent = headers(number)
        more = {} if sent is None else {"authorization": sent}
        seen[(await ask(app, "GET", PLACE, **more)).status] += 1
    return seen


async def test_spaces_in_the_header_bring_no_further_share(app: App, bearer: str) -> None:
    assert (await ask(app, "GET", PLACE, authorization=bearer)).status == 404
    seen = await statuses(app, lambda number: bearer + " " * number)
    assert seen == {404: 5, 429: 15}


async def test_made_up_keys_share_what_their_address_has(app: App) -> None:
    assert await statuses(app, lambda number: f"Bearer hk_made_up_{number}") == {401: 5, 429: 15}
    assert await statuses(app, lambda number: None) == {429: 20}


async def test_a_key_that_is_known_is_not_stopped_by_others_at_its_address(
    app: App, bearer: str
) -> None:
    assert (await ask(app, "GET", PLACE, authorization=bearer)).status == 404
    assert (await statuses(app, lambda number: f"Bearer hk_{number}"))[429] == 16
    assert (await ask(app, "GET", PLACE, authorization=bearer)).status == 404
    assert (await ask(app, "GET", PLACE, address="192.0.2.2")).status == 401


def test_a_bucket_in_use_is_not_the_one_that_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MOST_BUCKETS", 2)
    rate = RateLimit(1, Stopped())
    rate.spend("busy", "key")
    for number in range(10):
        rate.spend(f"passing-{number}", "global")
        with pytest.raises(RateLimited):
            rate.spend("busy", "key")
