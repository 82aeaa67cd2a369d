"""Signed links to one open question: minted when read, never stored, never logged."""

import base64
import binascii
import hashlib
import hmac
from typing import Literal

import msgspec
from msgspec import Struct

from moot.core.errors import InterruptExpired, InterruptNotFound

#: of a question without a deadline: a link lives as long as what it leads to
LIFETIME_MS = 10 * 365 * 24 * 3_600_000
SECRET_NAME = "interrupt-tokens"
Intent = Literal["resolve", "inspect"]


class Ticket(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a token says; its signature says that we said it."""

    tenant: str
    run_id: str
    node_id: str
    interrupt_id: str
    expires_at: int
    #: the hash of the key of whoever read it: a link is good as long as that key is
    by: str
    intent: Intent = "resolve"


def mint(secret: bytes, ticket: Ticket) -> str:
    body = base64.urlsafe_b64encode(msgspec.json.encode(ticket)).rstrip(b"=")
    return f"{body.decode()}.{_signature(secret, body)}"


def read(secret: bytes, token: str, at: int) -> Ticket:
    """Raises InterruptNotFound for what is not ours, InterruptExpired for what is too old."""
    body, _, signature = token.partition(".")
    expected = _signature(secret, body.encode())
    if not hmac.compare_digest(expected.encode(), signature.encode()):  # bytes: it may be anything
        raise InterruptNotFound("", "")
    try:
        padded = body + "=" * (-len(body) % 4)
        ticket = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Ticket)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise InterruptNotFound("", "") from None
    if at >= ticket.expires_at:
        raise InterruptExpired("This link has expired; ask for a new one.")
    return ticket


def _signature(secret: bytes, body: bytes) -> str:
    mac = hmac.new(secret, body, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
