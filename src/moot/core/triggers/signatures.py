"""Verify the signatures of inbound requests. Pure, and in constant time.

Two schemes are accepted: Standard Webhooks, and the protocol's own, which this host signs with.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from moot.core.triggers import webhooks

PREFIX = "whsec_"
#: how far a signature's time may differ from now, either way (s)
TOLERANCE = 300
_ID = re.compile(r"[A-Za-z0-9_-]{16,128}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class SignatureVerdict(Struct, frozen=True):
    """The result of a check. ``event_id`` identifies repeats, if the request has an id."""

    verified: bool
    event_id: str | None = None
    problem: str = ""


def verify_signature(
    headers: Mapping[str, str], body: bytes, secrets: list[str], now: int
) -> SignatureVerdict:
    """Header names are lower case; ``now`` is in ms."""
    if "webhook-signature" in headers or "webhook-id" in headers:
        return _verify_standard(headers, body, secrets, now)
    if "x-openwop-signature" in headers:
        return _verify_own(headers, body, secrets, now)
    return SignatureVerdict(False, None, "It is not signed.")


def signing_key(secret: str) -> bytes:
    """Return the bytes that sign. Raise ValueError when the secret cannot be read."""
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("A secret is whsec_ and base64.") from None


def standard_signature(secret: str, event_id: str, seconds: str, body: bytes) -> str:
    signed = b"%b.%b.%b" % (event_id.encode(), seconds.encode(), body)
    digest = hmac.new(signing_key(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _verify_standard(
    headers: Mapping[str, str], body: bytes, secrets: list[str], now: int
) -> SignatureVerdict:
    event_id = headers.get("webhook-id", "")
    if not _ID.fullmatch(event_id):
        problem = "webhook-id must be 16 to 128 letters, digits, - or _."
        return SignatureVerdict(False, None, problem)
    seconds = headers.get("webhook-timestamp", "")
    if problem := _time_problem(seconds, now):
        return SignatureVerdict(False, event_id, problem)
    signatures = headers.get("webhook-signature", "").split(" ")[:16]
    expected = [standard_signature(secret, event_id, seconds, body) for secret in secrets]
    return _compare_signatures(signatures, expected, event_id)


def _verify_own(
    headers: Mapping[str, str], body: bytes, secrets: list[str], now: int
) -> SignatureVerdict:
    """Verify the protocol's scheme, which has no id of its own.

    A delivered event is identified by the event, anything else by its time and its bytes.
    """
    seconds = headers.get("x-openwop-timestamp", "")
    event_id = _delivered_event_id(body)
    if problem := _time_problem(seconds, now):
        return SignatureVerdict(False, event_id, problem)
    # the number is signed, whatever its spelling
    event_id = event_id or f"{int(seconds)}.{hashlib.sha256(body).hexdigest()}"
    names = ("x-openwop-signature", "x-openwop-signature-previous")
    signatures = [headers[name] for name in names if name in headers]
    expected = [webhooks.webhook_signature(secret, int(seconds), body) for secret in secrets]
    return _compare_signatures(signatures, expected, event_id)


class _DeliveredEvent(Struct):
    """The id in a delivered event."""

    event_id: str = msgspec.field(name="eventId")


class _DeliveredBody(Struct):
    """The ids in a delivered body."""

    run_id: str = msgspec.field(name="runId")
    event: _DeliveredEvent


def _delivered_event_id(body: bytes) -> str | None:
    try:
        delivered = msgspec.json.decode(body, type=_DeliveredBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return f"{delivered.run_id}/{delivered.event.event_id}"


def _time_problem(seconds: str, now: int) -> str:
    if not _SECONDS.fullmatch(seconds):
        return "The time of the signature is missing or is not in seconds."
    if abs(int(seconds) - now / 1000) > TOLERANCE:
        return f"The time of the signature is more than {TOLERANCE} s off."
    return ""


def _compare_signatures(
    signatures: list[str], expected: list[str], event_id: str
) -> SignatureVerdict:
    """Compare every pair, so that the time does not depend on the match."""
    valid = False
    for mine in expected:
        for theirs in signatures:
            valid |= hmac.compare_digest(mine.encode(), theirs.encode("utf-8", "replace"))
    return SignatureVerdict(valid, event_id, "" if valid else "The signature is not right.")
