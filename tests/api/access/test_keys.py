"""A server always leaves a key beside its file that opens it."""

import msgspec

from moot.api.access.auth import hash_secret
from moot.api.app import App
from moot.api.server import build_services, key_file, write_secret_file
from moot.api.services import Services
from moot.clock import SystemClock
from moot.config.settings import Settings
from moot.store.memory.store import MemoryStore
from tests.support.api.application import ask


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
