"""Whether a request that came in was signed by who knows the secret. Pure, and in constant time.

Two ways are known: that of Standard Webhooks, and the protocol's own, by which this host signs.
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
#: how far a signature's time may be from now, either way (s)
TOLERANCE = 300
_ID = re.compile(r"[A-Za-z0-9_-]{16,128}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class Judged(Struct, frozen=True):
    """``event_id`` names what came in, so that a repeat is known; None where nothing does."""

    verified: bool
    event_id: str | None = None
    problem: str = ""


def judge(headers: Mapping[str, str], body: bytes, secrets: list[str], now: int) -> Judged:
    """Header names are in small letters; ``now`` is in ms."""
    if "webhook-signature" in headers or "webhook-id" in headers:
        return _standard(headers, body, secrets, now)
    if "x-openwop-signature" in headers:
        return _own(headers, body, secrets, now)
    return Judged(False, None, "It is not signed.")


def key_of(secret: str) -> bytes:
    """The bytes that sign. Raises ValueError when they cannot be read."""
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("A secret is whsec_ and base64.") from None


def standard_signature(secret: str, event_id: str, seconds: str, body: bytes) -> str:
    signed = b"%b.%b.%b" % (event_id.encode(), seconds.encode(), body)
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def _standard(headers: Mapping[str, str], body: bytes, secrets: list[str], now: int) -> Judged:
    event_id = headers.get("webhook-id", "")
    if not _ID.fullmatch(event_id):
        return Judged(False, None, "webhook-id must be 16 to 128 letters, digits, - or _.")
    seconds = headers.get("webhook-timestamp", "")
    if problem := _time(seconds, now):
        return Judged(False, event_id, problem)
    given = headers.get("webhook-signature", "").split(" ")[:16]
    expected = [standard_signature(secret, event_id, seconds, body) for secret in secrets]
    return _compared(given, expected, event_id)


def _own(headers: Mapping[str, str], body: bytes, secrets: list[str], now: int) -> Judged:
    """This way has no id of its own: what is told of an event is known by the event, anything
    else by its time and its bytes."""
    seconds = headers.get("x-openwop-timestamp", "")
    event_id = _told_event(body)
    if problem := _time(seconds, now):
        return Judged(False, event_id, problem)
    # the number is signed, however it is written
    event_id = event_id or f"{int(seconds)}.{hashlib.sha256(body).hexdigest()}"
    names = ("x-openwop-signature", "x-openwop-signature-previous")
    given = [headers[name] for name in names if name in headers]
    expected = [webhooks.signature(secret, int(seconds), body) for secret in secrets]
    return _compared(given, expected, event_id)


class _Event(Struct):
    event_id: str = msgspec.field(name="eventId")


class _Told(Struct):
    run_id: str = msgspec.field(name="runId")
    event: _Event


def _told_event(body: bytes) -> str | None:
    try:
        told = msgspec.json.decode(body, type=_Told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return f"{told.run_id}/{told.event.event_id}"


def _time(seconds: str, now: int) -> str:
    if not _SECONDS.fullmatch(seconds):
        return "The time of the signature is missing or is not in seconds."
    if abs(int(seconds) - now / 1000) > TOLERANCE:
        return f"The time of the signature is more than {TOLERANCE} s off."
    return ""


def _compared(given: list[str], expected: list[str], event_id: str) -> Judged:
    """Every pair is compared, whichever is right."""
    right = False
    for mine in expected:
        for theirs in given:
            right |= hmac.compare_digest(mine.encode(), theirs.encode("utf-8", "replace"))
    return Judged(right, event_id, "" if right else "The signature is not right.")
