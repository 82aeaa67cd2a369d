"""A server always leaves a key beside its file that opens it."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moot.api.access.auth import Keyring, hash_secret, new_key
from moot.api.app import App
from moot.api.http.request import Endpoint
from moot.api.routes import ENDPOINTS
from moot.api.server import build_services, key_file, write_secret_file
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.conformance.routes import SEAMS
from moot.core.errors import KeyRevoked
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Key
from tests.support.api.application import ask
from tests.support.api.caller import Api


class Kept(MemoryStore):
    """A store that outlives its host, as a file does."""

    async def aclose(self) -> None:
        return


async def started(settings: Settings, store: MemoryStore) -> Services:
    return await build_services(settings, store, SystemClock())


def written(settings: Settings) -> str:
    return key_file(settings).read_text().strip()


async def opens(services: Services, secret: str) -> bool:
    said = await ask(App(services), "GET", "/v1/host/moot/keys", authorization=f"Bearer {secret}")
    return said.status == 200


async def test_a_key_left_from_another_store_is_replaced(settings: Settings) -> None:
    write_secret_file(key_file(settings), "hk_of_a_store_that_was_deleted")
    services = await started(settings, MemoryStore())
    assert written(settings) != "hk_of_a_store_that_was_deleted"
    assert await opens(services, written(settings))


async def test_a_key_that_works_is_kept_over_a_restart(settings: Settings) -> None:
    store = Kept()
    await started(settings, store)
    before = written(settings)
    services = await started(settings, store)
    assert written(settings) == before
    assert len(await services.store.keys(None)) == 1


async def test_a_revoked_or_expired_or_cut_off_key_in_the_file_is_replaced(
    settings: Settings,
) -> None:
    store = Kept()
    services = await started(settings, store)
    revoked = written(settings)
    key = await store.key_by_hash(hash_secret(revoked))
    assert key is not None
    await store.revoke_key(None, key.id, 1)
    services = await started(settings, store)
    expiring = written(settings)
    assert expiring != revoked

    late = Kept()
    await late.put_key(msgspec.structs.replace(key, hash=hash_secret(expiring), expires_at=1))
    services = await started(settings, late)
    assert written(settings) != expiring
    assert await opens(services, written(settings))

    key_file(settings).write_bytes(b"\xff")
    services = await started(settings, late)
    assert await opens(services, written(settings))


def test_a_secret_is_written_for_its_owner_only_and_leaves_nothing_else(
    settings: Settings,
) -> None:
    place = key_file(settings)
    place.touch(mode=0o644)
    write_secret_file(place, "hk_one")
    assert place.read_text() == "hk_one\n"
    assert place.stat().st_mode & 0o777 == 0o600
    assert list(place.parent.iterdir()) == [place]


# -- the keys in memory ----------------------------------------------------------------------------


class Slow(MemoryStore):
    """Tells when a key has been read, and hands it out when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def key_by_hash(self, digest: str) -> Key | None:
        found = await super().key_by_hash(digest)
        self.read.set()
        await self.go_on.wait()
        return found


async def test_a_key_revoked_while_it_is_looked_up_is_not_remembered_as_good() -> None:
    store, clock = Slow(), SystemClock()
    key = new_key(clock, "hk_secret", "one", "default", [], [])
    await store.put_key(key)
    ring = Keyring(store, clock)
    store.read.clear()
    store.go_on.clear()
    early = asyncio.ensure_future(ring.caller("Bearer hk_secret"))
    await store.read.wait()
    assert await store.revoke_key(None, key.id, clock.millis())
    ring.forget()
    store.go_on.set()
    assert (await early).id == key.id
    with pytest.raises(KeyRevoked):
        await ring.caller("Bearer hk_secret")


async def test_only_a_key_that_was_looked_up_is_known_and_spaces_make_no_other_of_it() -> None:
    store, clock = MemoryStore(), SystemClock()
    await store.put_key(new_key(clock, "hk_secret", "one", "default", [], []))
    ring = Keyring(store, clock)
    assert ring.known("Bearer hk_secret") is None
    await ring.caller("Bearer hk_secret")
    assert ring.known("Bearer hk_secret") is not None
    assert ring.known("bearer   hk_secret  ") == ring.known("Bearer hk_secret")
    for other in ("Bearer hk_other", "Basic hk_secret", "Bearer", ""):
        assert ring.known(other) is None


ROUTES = (*ENDPOINTS, *SEAMS)


GUARDED = [row for row in ROUTES if not row.public]


def path_of(row: Endpoint | str, **params: str) -> str:
    """The route's path, with ids that nobody has where none are given."""
    template = row if isinstance(row, str) else row.path
    return re.sub(r"\{(\w+)\}", lambda found: params.get(found[1], "nobody"), template)


def test_nobody_gives_more_than_they_have(api: Api) -> None:
    manager = api.with_key(api.new_key("manager", scopes=["keys:manage", "runs:read"]))
    fine = manager.post("/v1/host/moot/keys", {"name": "x", "scopes": ["runs:read"]})
    assert fine.status_code == 201
    assert fine.json()["tenant"] == "default"
    for asked in (
        {"scopes": ["runs:create"]},
        {"scopes": ["runs:read", "metrics:read"]},
        {"admin": True},
        {"admin": True, "scopes": []},
        {"as": ["user:boss"], "scopes": ["runs:read"]},
        {"tenant": "elsewhere", "scopes": ["runs:read"]},
        {},  # the usual scopes are more than these
    ):
        answer = manager.post("/v1/host/moot/keys", {"name": "x", **asked})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), asked


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x" * 129},
        {"name": "x\n"},
        {"name": "x", "scopes": ["runs:raed"]},
        {"name": "x", "scopes": "runs:read"},
        {"name": "x", "tenant": ""},
        {"name": "x", "more": 1},
        {"name": "x", "expires_in_s": 0},
        {"name": "x", "expires_in_s": 10**30},
        {"name": "x", "admin": "yes"},
        {"name": "x", "as": "host:a"},
        {"name": "x", "as": [""]},
        {"name": "x", "as": ["a" * 257]},
        {"name": "x", "as": [1]},
        {"name": "x", "key": "hk_mine"},
        b"",
    ],
)
def test_a_key_that_does_not_fit_is_refused(api: Api, body: Any) -> None:
    answer = api.post("/v1/host/moot/keys", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


def test_secrets_stay_out_of_answers_logs_and_files(host: Callable[..., Any]) -> None:
    plain = host("--log-json", "--conformance")
    made = plain.post("/v1/host/moot/keys", {"name": "quiet", "admin": True}).json()
    gone = plain.post("/v1/host/moot/keys", {"name": "gone"}).json()
    plain.delete(f"/v1/host/moot/keys/{gone['id']}")
    secrets = [made["key"], gone["key"], "hk_guessed_by_somebody"]
    texts = []
    for secret in secrets:
        caller = plain.with_key(secret)
        for row in GUARDED:
            answer = caller.call(row.method, path_of(row))
            texts += [answer.text, str(answer.headers)]
            answer = caller.call(row.method, path_of(row), content=b"{")
            texts += [answer.text, str(answer.headers)]
    plain.server.stop()
    for file in plain.server.folder.iterdir():
        texts.append(file.read_bytes().decode("latin-1"))
    for secret in secrets:
        assert not [text for text in texts if secret in text]


def test_a_key_is_kept_as_its_hash_only(host: Callable[..., Any]) -> None:
    plain = host()
    local = plain.key
    plain.server.stop()
    holders = [f.name for f in plain.server.folder.iterdir() if local.encode() in f.read_bytes()]
    assert holders == ["moot.db.key"]
    key_file = plain.server.folder / "moot.db.key"
    assert key_file.stat().st_mode & 0o777 == 0o600
