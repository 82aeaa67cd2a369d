"""Webhooks: who wants to be told of which events, how that is signed, and when it is given up.

Pure. A receiver that fails again and again is left alone for a while (its circuit is open), and
one that fails for days is told nothing more until somebody registers it anew.
"""

import hashlib
import hmac
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

HOUR = 3_600_000
#: tries of one delivery, and the waits between them (ms): doubled each time, with an end
MOST_TRIES = 8
FIRST_WAIT = 1000
LONGEST_WAIT = 30_000
#: failures in a row that open the circuit, for so long
FAILURES_OPEN = 4
OPEN_FOR = HOUR
#: so many failures within so long end the registration
FAILURES_END = 100
WINDOW = 7 * 24 * HOUR
#: after a change of the secret both are signed with, for so long
OVERLAP = 24 * HOUR

State = Literal["active", "paused", "failed"]


class Webhook(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A registration as it is kept. Its secret never leaves the store but once."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    secret: str
    created_at: int
    tags: tuple[str, ...] = ()
    state: State = "active"
    #: the secret before this one, and until when it is still good
    earlier: str | None = None
    earlier_until: int = 0

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()[:8]

    def wants(self, type_: str, tags: list[str]) -> bool:
        if self.state != "active" or not (type_ in self.events or "*" in self.events):
            return False
        return not self.tags or bool(set(self.tags) & set(tags))

    def secrets(self, now: int) -> list[str]:
        """What to sign with: the newest first."""
        old = [self.earlier] if self.earlier is not None and now < self.earlier_until else []
        return [self.secret, *old]


def signature(secret: str, seconds: int, body: bytes) -> str:
    """Over exactly the bytes that are sent."""
    signed = b"%d.%b" % (seconds, body)
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def headers(hook: Webhook, event_type: str, now: int, body: bytes, version: str) -> dict[str, str]:
    seconds = now // 1000
    signed = [signature(secret, seconds, body) for secret in hook.secrets(now)]
    said = {
        "Content-Type": "application/json",
        "User-Agent": f"openwop-webhook-dispatcher/{version}",
        "X-openwop-Webhook-Id": hook.webhook_id,
        "X-openwop-Event-Type": event_type,
        "X-openwop-Timestamp": str(seconds),
        "X-openwop-Signature": signed[0],
        "X-openwop-Signature-Algorithm": "v1",
    }
    return said if len(signed) == 1 else {**said, "X-openwop-Signature-Previous": signed[1]}


class Circuit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How a receiver has done lately. A receiver without one has never failed."""

    #: failures since the last success
    row: int = 0
    #: left alone until then (ms); the first try after it decides
    open_until: int = 0
    #: when (ms) it failed within the window, oldest first
    failures: tuple[int, ...] = ()

    def waits(self, now: int) -> int | None:
        """Until when it is left alone."""
        return self.open_until if now < self.open_until else None

    @property
    def ended(self) -> bool:
        return len(self.failures) >= FAILURES_END


def failed(circuit: Circuit, now: int) -> Circuit:
    recent = (*(at for at in circuit.failures if now - at < WINDOW), now)[-FAILURES_END:]
    row = circuit.row + 1
    return Circuit(
        row=row,
        open_until=now + OPEN_FOR if row >= FAILURES_OPEN else circuit.open_until,
        failures=recent,
    )


def succeeded(circuit: Circuit) -> Circuit:
    return replace(circuit, row=0, open_until=0)


def next_try(tries: int, now: int, circuit: Circuit, lot: int) -> int | None:
    """When to try once more after so many tries; None when it was often enough. ``lot`` (0..999)
    spreads those that failed together."""
    if tries >= MOST_TRIES:
        return None
    wait = min(FIRST_WAIT << (tries - 1), LONGEST_WAIT)
    return max(now + wait + wait * lot // 5000, circuit.waits(now) or 0)


def lot_of(delivery_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(delivery_id.encode(), digest_size=4).digest()) % 1000
