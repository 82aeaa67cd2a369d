"""Identify callers by API key and check what a key may do, and how often.

The host finds a key by the hash of its secret. It never reads an identity from a text.
"""

import hashlib
import re
from collections import OrderedDict
from functools import lru_cache
from typing import Any

from msgspec import Struct

from moot.api.http.request import Endpoint, Request
from moot.clock import Clock
from moot.core.errors import (
    Forbidden,
    KeyExpired,
    KeyRevoked,
    NotFound,
    RateLimited,
    RunNotFound,
    Unauthenticated,
)
from moot.core.speaker import Speaker
from moot.core.text.names import is_person
from moot.store.protocol import Key, RegistryStore

TEST_PREFIX = "hk_test_"
LIVE_PREFIX = "hk_"
DEFAULT_TENANT = "default"
MOST_CACHED = 10_000
MOST_BUCKETS = 10_000

#: Scope of a key -> what it allows.
SCOPES = {
    "manifest:read": "read workflows",
    "manifest:write": "register workflows",
    "runs:create": "start runs",
    "runs:read": "read runs and their events",
    "runs:cancel": "cancel, pause and resume runs",
    "runs:import": "take in runs that were written elsewhere, and with them who said what",
    "artifacts:read": "read artifacts",
    "approvals:respond": "answer what waits for a person",
    "memory:read": "read what is remembered",
    "memory:write": "have something forgotten, for good",
    "webhooks:manage": "manage webhooks",
    "audit:read": "nothing of its own yet; to verify a run's log is to read it: runs:read",
    "deploy:promote": "let a version of an agent serve runs, or a share of them",
    "deploy:rollback": "go back to the version of an agent before",
    "deploy:pause": "let a version of an agent rest, or retire it",
    "keys:manage": "create and revoke keys",
    "metrics:read": "read metrics",
}

#: Scopes of a new key by default.
DEFAULT_SCOPES = (
    "manifest:read", "manifest:write", "runs:create", "runs:read", "runs:cancel", "artifacts:read",
    "approvals:respond", "memory:read", "webhooks:manage",
)  # fmt: skip


#: Default scopes that agents do not get.
PERSON_SCOPES = frozenset({"manifest:write", "webhooks:manage"})

ANSWER_OPERATION = "POST /v1/runs/{run_id}/interrupts/{node_id}"


def default_scopes(names: list[str]) -> list[str]:
    """Return the scopes of a new key that is bound to these names."""
    people = not names or any(map(is_person, names))
    return [scope for scope in DEFAULT_SCOPES if people or scope not in PERSON_SCOPES]


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a secret. Secrets are long and random, so one round is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Keyring:
    """A cache of keys in use, by the hash of their secret."""

    def __init__(self, store: RegistryStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._known: dict[str, Key] = {}
        self._generation = 0

    async def caller(self, header: str | None) -> Key:
        """Return the key behind an Authorization header.

        Raise Unauthenticated, KeyRevoked or KeyExpired.
        """
        if header is None:
            raise Unauthenticated("Send a key: Authorization: Bearer <key>.")
        name = _key_hash(header)
        return self.check_usable(self._known.get(name) or await self._find(name))

    def check_usable(self, key: Key) -> Key:
        """Return the key. Raise KeyRevoked or KeyExpired when it is not valid any more."""
        if key.revoked_at is not None:
            raise KeyRevoked("This key has been revoked; create another one.")
        if key.expires_at is not None and key.expires_at <= self._clock.millis():
            raise KeyExpired("This key has expired; create another one.")
        return key

    def known(self, header: str) -> Key | None:
        """Return a cached key, valid or not, without reading the store."""
        try:
            return self._known.get(_key_hash(header))
        except Unauthenticated:
            return None

    async def _find(self, name: str) -> Key:
        generation = self._generation
        key = await self._store.key_by_hash(name)
        if key is None:
            raise Unauthenticated("This key is not known here.")
        if generation == self._generation:  # otherwise the key may be revoked by now
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            self._known[name] = key
        return key

    def forget(self) -> None:
        """Drop the cache because keys have changed. A read that is under way is not cached."""
        self._known.clear()
        self._generation += 1


@lru_cache(maxsize=1024)
def _key_hash(header: str) -> str:
    """Return the hash of the secret in an Authorization header."""
    kind, _, secret = header.partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not secret:
        raise Unauthenticated("The Authorization header must be: Bearer <key>.")
    return hash_secret(secret)


def require_scope(key: Key, scope: str) -> None:
    if not key.admin and scope not in key.scopes:
        raise Forbidden(
            f"This key may not do that; it needs the scope {scope}.", scopeRequired=scope
        )


def check_thread_key(key: Key, endpoint: Endpoint, params: dict[str, str]) -> None:
    """Raise unless a key for one thread stays in it.

    It may read its conversation and speak in it; every other run looks missing.
    """
    run_id, _, node_id = (key.thread or "").partition("/")
    parts = re.split("[~:]", params.get("thread_id", ""))
    named = params.get("run_id") or parts[0]
    if named and named != run_id:
        raise RunNotFound(named)
    speaks = endpoint.operation == ANSWER_OPERATION and params["node_id"] == node_id
    reads = endpoint.joined and (len(parts) == 1 or parts[1] == node_id)
    if not (speaks or reads):
        raise Forbidden("This key is good for one thread only: to read it and to speak in it.")


def check_may_close(key: Key, value: Any) -> None:
    """Raise Forbidden when a key for one thread tries to close it, by an answer or by a vote."""
    if key.thread is None:
        return
    fields = value if isinstance(value, dict) else {}
    vote = fields.get("vote")
    if fields.get("operation") == "close" or (isinstance(vote, dict) and vote.get("close")):
        raise Forbidden("This key is good for one thread: to speak in it, not to close it.")


def check_linked_thread(key: Key, name: str) -> None:
    """Raise NotFound when a key for one thread names another thread."""
    run_id, _, node_id = (key.thread or "").partition("/")
    parts = re.split("[~:]", name)
    here = parts[0] == run_id and (len(parts) == 1 or parts[1] == node_id)
    if key.thread is not None and not here:
        raise NotFound("There is no such thread.", threadId=name[:512])


def is_guest_key(key: Key) -> bool:
    """Return whether the key is a person's key for one thread. Its turns cannot end the thread."""
    return key.thread is not None and not is_agent_key(key)


def is_agent_key(key: Key) -> bool:
    """Return whether the key is bound to agents and to no person."""
    return bool(key.speaks_as) and not any(is_person(name) for name in key.speaks_as)


def new_key(
    clock: Clock,
    secret: str,
    name: str,
    tenant: str,
    scopes: list[str],
    speaks_as: list[str],
    admin: bool = False,
) -> Key:
    return Key(
        id=clock.new_id("key_"),
        hash=hash_secret(secret),
        tenant=tenant,
        name=name,
        scopes=scopes,
        speaks_as=speaks_as,
        created_at=clock.millis(),
        admin=admin,
        test=secret.startswith(TEST_PREFIX),
    )


def speaker_from_request(request: Request) -> Speaker:
    """Return the speaker that the caller's key stands for."""
    key = request.caller
    return Speaker(key.id, tuple(key.speaks_as), key.admin)


class _Bucket(Struct):
    tokens: float
    last: int


class RateLimit:
    """Token buckets. A caller may send one second's worth of requests at once."""

    def __init__(self, rate: int, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, who: str, scope: str) -> None:
        """Take one token.

        Raise RateLimited when the bucket is empty. A rate of 0 means no limit.
        """
        if not self._rate:
            return
        now = self._clock.micros()
        bucket = self._buckets.get(who) or self._full(who, now)
        self._buckets.move_to_end(who)
        tokens = bucket.tokens + (now - bucket.last) * self._rate / 1_000_000
        if tokens > self._rate:
            tokens = self._rate
        bucket.last = now
        bucket.tokens = tokens - 1 if tokens >= 1 else tokens
        if tokens < 1:
            raise RateLimited(scope, self._rate, max(1, int((1 - tokens) * 1000 / self._rate)))

    def _full(self, who: str, now: int) -> "_Bucket":
        """Add a full bucket. The least recently used bucket makes room."""
        bucket = self._buckets[who] = _Bucket(float(self._rate), now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return bucket
