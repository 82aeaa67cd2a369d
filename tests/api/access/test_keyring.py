"""What the host remembers of keys."""

import asyncio

import pytest

from moot.api.access.auth import Keyring, new_key
from moot.clock import SystemClock
from moot.core.errors import KeyRevoked
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Key


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
