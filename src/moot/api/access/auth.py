"""Who calls: API keys, found by the hash of their secret. Identity is never read from text."""

import hashlib
import re
from functools import lru_cache
from typing import Any

from moot.api.http.request import Endpoint
from moot.clock import Clock
from moot.core.errors import (
    Forbidden,
    KeyExpired,
    KeyRevoked,
    NotFound,
    RunNotFound,
    Unauthenticated,
)
from moot.core.text.names import is_person
from moot.store.protocol import Key, RecordStore

TEST_PREFIX = "hk_test_"
LIVE_PREFIX = "hk_"
DEFAULT_TENANT = "default"
MOST_CACHED = 10_000

#: every scope a key may have, and what it allows
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

#: what a new key may do unless told otherwise
USUAL_SCOPES = (
    "manifest:read", "manifest:write", "runs:create", "runs:read", "runs:cancel", "artifacts:read",
    "approvals:respond", "memory:read", "webhooks:manage",
)  # fmt: skip


#: what agents do not need for their part, unless somebody says so
PEOPLES_SCOPES = frozenset({"manifest:write", "webhooks:manage"})


def usual_scopes(names: list[str]) -> list[str]:
    """Of a new key that is bound to these names."""
    people = not names or any(map(is_person, names))
    return [scope for scope in USUAL_SCOPES if people or scope not in PEOPLES_SCOPES]


def hash_of(secret: str) -> str:
    """Secrets are long and random, so one round of SHA-256 keeps them."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Keyring:
    """The keys in use, remembered by hash."""

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._known: dict[str, Key] = {}
        self._generation = 0

    async def caller(self, header: str | None) -> Key:
        """The key behind an Authorization header, or a 401 that says what is wrong."""
        if header is None:
            raise Unauthenticated("Send a key: Authorization: Bearer <key>.")
        name = _name_in(header)
        return self.good(self._known.get(name) or await self._find(name))

    def good(self, key: Key) -> Key:
        """The key itself, unless it is not to be used any more."""
        if key.revoked_at is not None:
            raise KeyRevoked("This key has been revoked; create another one.")
        if key.expires_at is not None and key.expires_at <= self._clock.millis():
            raise KeyExpired("This key has expired; create another one.")
        return key

    def known(self, header: str) -> Key | None:
        """A key that has been looked up before, good or not; nothing is waited for."""
        try:
            return self._known.get(_name_in(header))
        except Unauthenticated:
            return None

    async def _find(self, name: str) -> Key:
        generation = self._generation
        key = await self._store.key_by_hash(name)
        if key is None:
            raise Unauthenticated("This key is not known here.")
        if generation == self._generation:  # else it may have been revoked since it was read
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            self._known[name] = key
        return key

    def forget(self) -> None:
        """Keys have changed: look them up again, and keep nothing read before."""
        self._known.clear()
        self._generation += 1


@lru_cache(maxsize=1024)
def _name_in(header: str) -> str:
    """The hash of the secret in an Authorization header."""
    kind, _, secret = header.partition(" ")
    secret = secret.strip()
    if kind.lower() != "bearer" or not secret:
        raise Unauthenticated("The Authorization header must be: Bearer <key>.")
    return hash_of(secret)


def require(key: Key, scope: str) -> None:
    if not key.admin and scope not in key.scopes:
        raise Forbidden(
            f"This key may not do that; it needs the scope {scope}.", scopeRequired=scope
        )


ANSWER = "POST /v1/runs/{run_id}/interrupts/{node_id}"


def keep_to_thread(key: Key, endpoint: Endpoint, params: dict[str, str]) -> None:
    """A key for one conversation reads it and speaks in it, and learns of nothing else."""
    run_id, _, node_id = (key.thread or "").partition("/")
    parts = re.split("[~:]", params.get("thread_id", ""))
    named = params.get("run_id") or parts[0]
    if named and named != run_id:
        raise RunNotFound(named)
    speaks = endpoint.operation == ANSWER and params["node_id"] == node_id
    reads = endpoint.joined and (len(parts) == 1 or parts[1] == node_id)
    if not (speaks or reads):
        raise Forbidden("This key is good for one thread only: to read it and to speak in it.")


def keep_open(key: Key, said: Any) -> None:
    """A key for one conversation does not end it, whichever way that is said: by the answer that
    closes it, or by a vote."""
    value = said if isinstance(said, dict) else {}
    vote = value.get("vote")
    closes = value.get("operation") == "close" or (isinstance(vote, dict) and vote.get("close"))
    if key.thread is not None and closes:
        raise Forbidden("This key is good for one thread: to speak in it, not to close it.")


def keep_here(key: Key, name: str) -> None:
    """A key for one conversation learns of no other one by naming it in what it says."""
    run_id, _, node_id = (key.thread or "").partition("/")
    parts = re.split("[~:]", name)
    here = parts[0] == run_id and (len(parts) == 1 or parts[1] == node_id)
    if key.thread is not None and not here:
        raise NotFound("There is no such thread.", threadId=name[:512])


def is_guests(key: Key) -> bool:
    """Whether it is a person's key for one thread: what he says does not end it."""
    return key.thread is not None and not is_agents(key)


def is_agents(key: Key) -> bool:
    """Whether the key is bound to agents, and to no person."""
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
        hash=hash_of(secret),
        tenant=tenant,
        name=name,
        scopes=scopes,
        speaks_as=speaks_as,
        created_at=clock.millis(),
        admin=admin,
        test=secret.startswith(TEST_PREFIX),
    )
