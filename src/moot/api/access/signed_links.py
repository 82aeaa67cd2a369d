"""Sign and read links to one open question.

The host makes a link when a caller reads the question. It neither stores nor logs links.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Literal

import msgspec
from msgspec import Struct

from moot.core.errors import InterruptExpired, InterruptNotFound

#: Lifetime of a link to a question without a deadline.
LIFETIME_MS = 10 * 365 * 24 * 3_600_000
SECRET_NAME = "interrupt-tokens"
Intent = Literal["resolve", "inspect"]


class Ticket(Struct, frozen=True, kw_only=True, rename="camel"):
    """The signed content of a link."""

    tenant: str
    run_id: str
    node_id: str
    interrupt_id: str
    expires_at: int
    #: The hash of the reader's key. The link is valid as long as that key.
    by: str
    intent: Intent = "resolve"


def sign_link(secret: bytes, ticket: Ticket) -> str:
    body = base64.urlsafe_b64encode(msgspec.json.encode(ticket)).rstrip(b"=")
    return f"{body.decode()}.{_signature(secret, body)}"


def read_link(secret: bytes, token: str, at: int) -> Ticket:
    """Return the content of a token.

    Raise InterruptNotFound for a wrong signature and InterruptExpired for an old link.
    """
    body, _, signature = token.partition(".")
    expected = _signature(secret, body.encode())
    if not hmac.compare_digest(
        expected.encode(), signature.encode()
    ):  # as bytes, because the token may hold any character
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
