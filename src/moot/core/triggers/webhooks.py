"""Decide about webhooks: matching events, signatures, retries and circuits.

Pure. A receiver that keeps failing gets a break (its circuit opens). One that fails for days gets
nothing more until a person registers it again.
"""

import hashlib
import hmac
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from moot.core.backoff import retry_wait_ms, valid_secrets

HOUR = 3_600_000
#: tries of one delivery
MOST_TRIES = 12
#: failures in a row that open the circuit, and its first and longest break (ms); each further
#: failure doubles the break
FAILURES_OPEN = 4
FIRST_BREAK = 30_000
LONGEST_BREAK = HOUR
#: this many failures within the window (ms) end the registration
FAILURES_END = 100
WINDOW = 7 * 24 * HOUR
LONGEST_ERROR = 500

WebhookState = Literal["active", "paused", "failed"]


class WebhookRegistration(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A stored webhook. Its secret leaves the store only once."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    secret: str
    created_at: int
    tags: tuple[str, ...] = ()
    state: WebhookState = "active"
    #: the previous secret, and until when it is valid
    earlier: str | None = None
    earlier_until: int = 0

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()[:8]

    def wants(self, type_: str, tags: list[str]) -> bool:
        """Return whether the event matches. A paused webhook gets it later."""
        if self.state == "failed" or not (type_ in self.events or "*" in self.events):
            return False
        return not self.tags or bool(set(self.tags) & set(tags))

    def secrets(self, now: int) -> list[str]:
        """Return the secrets to sign with, the newest first."""
        return valid_secrets(self.secret, self.earlier, self.earlier_until, now)


def webhook_signature(secret: str, seconds: int, body: bytes) -> str:
    """Sign exactly the bytes that are sent."""
    signed = b"%d.%b" % (seconds, body)
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def webhook_headers(
    hook: WebhookRegistration, event_type: str, now: int, body: bytes, version: str
) -> dict[str, str]:
    seconds = now // 1000
    signed = [webhook_signature(secret, seconds, body) for secret in hook.secrets(now)]
    fields = {
        "Content-Type": "application/json",
        "User-Agent": f"openwop-webhook-dispatcher/{version}",
        "X-openwop-Webhook-Id": hook.webhook_id,
        "X-openwop-Event-Type": event_type,
        "X-openwop-Timestamp": str(seconds),
        "X-openwop-Signature": signed[0],
        "X-openwop-Signature-Algorithm": "v1",
    }
    return fields if len(signed) == 1 else {**fields, "X-openwop-Signature-Previous": signed[1]}


class Circuit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A receiver's recent failures. A receiver without a circuit has never failed."""

    #: failures since the last success
    row: int = 0
    #: the end of the break (ms); the first try after it decides
    open_until: int = 0
    #: times (ms) of the failures within the window, oldest first
    failures: tuple[int, ...] = ()
    #: the last error
    error: str = ""

    def waits(self, now: int) -> int | None:
        """Return the end of the current break, or None."""
        return self.open_until if now < self.open_until else None

    @property
    def failing(self) -> bool:
        """Return whether the circuit is open, or allows one call at a time until one succeeds."""
        return self.row >= FAILURES_OPEN

    @property
    def ended(self) -> bool:
        return len(self.failures) >= FAILURES_END


def circuit_after_failure(circuit: Circuit, now: int, error: str = "") -> Circuit:
    """Count a failure. One during a break does not make the break longer."""
    recent = (*(at for at in circuit.failures if now - at < WINDOW), now)[-FAILURES_END:]
    late = circuit.waits(now) is not None
    row = circuit.row if late else circuit.row + 1
    opens = row >= FAILURES_OPEN and not late
    until = now + break_duration(row) if opens else circuit.open_until
    return Circuit(row=row, open_until=until, failures=recent, error=error[:LONGEST_ERROR])


def break_duration(row: int) -> int:
    """Return how long (ms) a receiver gets a break after this many failures in a row."""
    return min(FIRST_BREAK << min(row - FAILURES_OPEN, 10), LONGEST_BREAK)


def close_circuit(circuit: Circuit) -> Circuit:
    """Close the circuit after a success or a person's reset."""
    return replace(circuit, row=0, open_until=0, error="")


def next_webhook_time(tries: int, now: int, lot: int) -> int | None:
    """Return when to try again after this many tries; None when there are no more tries."""
    return None if tries >= MOST_TRIES else now + retry_wait_ms(tries, lot)
