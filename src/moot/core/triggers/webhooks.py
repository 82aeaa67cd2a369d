"""Webhooks: who wants to be told of which events, how that is signed, and when it is given up.

Pure. A receiver that fails again and again is left alone for a while (its circuit is open), and
one that fails for days is told nothing more until somebody registers it anew.
"""

import hashlib
import hmac
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from moot.core.backoff import good_secrets, wait_after

HOUR = 3_600_000
#: tries of one delivery
MOST_TRIES = 12
#: failures in a row after which the receiver is left alone, at first for so long (ms), then twice
#: as long each time that it fails again, with an end
FAILURES_OPEN = 4
FIRST_BREAK = 30_000
LONGEST_BREAK = HOUR
#: so many failures within so long end the registration
FAILURES_END = 100
WINDOW = 7 * 24 * HOUR
LONGEST_ERROR = 500

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
        """Also while it is paused: what happens then is told later."""
        if self.state == "failed" or not (type_ in self.events or "*" in self.events):
            return False
        return not self.tags or bool(set(self.tags) & set(tags))

    def secrets(self, now: int) -> list[str]:
        """What to sign with: the newest first."""
        return good_secrets(self.secret, self.earlier, self.earlier_until, now)


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
    #: how it failed last
    error: str = ""

    def waits(self, now: int) -> int | None:
        """Until when it is left alone."""
        return self.open_until if now < self.open_until else None

    @property
    def failing(self) -> bool:
        """Left alone, or tried with one call at a time until one succeeds."""
        return self.row >= FAILURES_OPEN

    @property
    def ended(self) -> bool:
        return len(self.failures) >= FAILURES_END


def failed(circuit: Circuit, now: int, error: str = "") -> Circuit:
    """One that was on its way when the others failed counts, but makes the break no longer."""
    recent = (*(at for at in circuit.failures if now - at < WINDOW), now)[-FAILURES_END:]
    late = circuit.waits(now) is not None
    row = circuit.row if late else circuit.row + 1
    opens = row >= FAILURES_OPEN and not late
    return Circuit(
        row=row,
        open_until=now + break_after(row) if opens else circuit.open_until,
        failures=recent,
        error=error[:LONGEST_ERROR],
    )


def break_after(row: int) -> int:
    """For how long (ms) a receiver is left alone after so many failures in a row."""
    return min(FIRST_BREAK << min(row - FAILURES_OPEN, 10), LONGEST_BREAK)


def closed(circuit: Circuit) -> Circuit:
    """It has answered as it should, or somebody says that it will."""
    return replace(circuit, row=0, open_until=0, error="")


def next_try(tries: int, now: int, lot: int) -> int | None:
    """When to try once more after so many tries; None when it was often enough."""
    return None if tries >= MOST_TRIES else now + wait_after(tries, lot)
