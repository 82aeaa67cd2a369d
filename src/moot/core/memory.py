"""Memory entries and references, and the checks of their fields."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moot.core.errors import BadRequest

LONGEST_REF = 256
LONGEST_ID = 1500
LONGEST_TAG = 256
MOST_TAGS = 64
#: bytes of one entry's content
LARGEST_CONTENT = 65_536
#: entries in a list by default, and at most
DEFAULT_LIMIT, LARGEST_LIMIT = 100, 1000
#: the longest time to live of an entry in seconds: a hundred years
LONGEST_TTL = 3_155_760_000
#: milliseconds since the epoch, the year 9999
LATEST_EXPIRY = 253_402_300_799_999

SHARED = "shared"

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SEPARATORS = re.compile(r"[/\\]")


class MemoryEntry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One entry of a memory, in the protocol's form."""

    id: str
    content: str
    tags: list[str]
    created_at: str
    expires_at: str | UnsetType = UNSET


def is_ref(ref: Any) -> bool:
    """Return whether the text can name a memory. Reading an invalid name finds nothing."""
    if not isinstance(ref, str) or not 1 <= len(ref) <= LONGEST_REF or _CONTROLS.search(ref):
        return False
    return not any(part in ("", ".", "..") for part in _SEPARATORS.split(ref))


def sharing_scope(sharing: str, own: str, group: str | None = None) -> str:
    """Return the scope of an agent's memory for its ``agentSharing`` setting.

    ``isolated`` is the agent's own scope; ``shared`` is the scope of the message's group, else the
    common one; ``shared:<group>`` is the scope of that group.
    """
    if sharing == "isolated":
        return own
    kind, _, named = sharing.partition(":")
    if kind != SHARED or (":" in sharing and not named):
        raise BadRequest(
            "agentSharing must be isolated, shared or shared:<group>.", field="agentSharing"
        )
    group = named or group
    return f"{SHARED}:{group}" if group else SHARED


def check_ref(ref: Any) -> str:
    if not is_ref(ref):
        raise BadRequest(
            f"A memoryRef has 1 to {LONGEST_REF} characters, no control characters, and no part"
            " that is empty, '.' or '..'.",
            field="memoryRef",
        )
    return str(ref)


def check_id(memory_id: Any) -> str:
    good = isinstance(memory_id, str) and 1 <= len(memory_id) <= LONGEST_ID
    if not good or _CONTROLS.search(memory_id) or len(memory_id.encode()) > LONGEST_ID:
        raise BadRequest(f"An entry's id is a text of 1 to {LONGEST_ID} bytes.", field="id")
    return str(memory_id)


def check_content(content: Any) -> str:
    try:
        size = len(content.encode())
    except (AttributeError, UnicodeEncodeError):
        raise BadRequest("What is remembered must be a text.", field="content") from None
    if size > LARGEST_CONTENT:
        message = f"An entry holds at most {LARGEST_CONTENT} bytes; this has {size}."
        raise BadRequest(message, field="content", maxEntrySizeBytes=LARGEST_CONTENT)
    return str(content)


def check_tags(tags: Any) -> list[str]:
    """Return the tags without duplicates and empty ones, in their order."""
    good = not isinstance(tags, str) and isinstance(tags, Sequence) and all(map(_is_tag, tags))
    if not good or len(tags) > MOST_TAGS:
        limits = f"at most {MOST_TAGS} texts of at most {LONGEST_TAG} characters"
        raise BadRequest(f"tags is a list of {limits}.", field="tags")
    return [tag for tag in dict.fromkeys(tags) if tag]


def _is_tag(tag: Any) -> bool:
    return isinstance(tag, str) and len(tag) <= LONGEST_TAG and not _CONTROLS.search(tag)


def check_limit(limit: Any) -> int:
    """Return the limit; 0 and None mean the default."""
    if limit is None:
        return DEFAULT_LIMIT
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise BadRequest("limit must be a whole number from 0.", field="limit")
    return min(limit, LARGEST_LIMIT) or DEFAULT_LIMIT


def check_ttl(seconds: Any) -> int | None:
    """Return the time to live in milliseconds."""
    if seconds is None:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= LONGEST_TTL:
        message = f"ttl must be seconds, more than 0 and at most {LONGEST_TTL}."
        raise BadRequest(message, field="ttl")
    return max(1, int(seconds * 1000))


def check_expiry(expires_at: Any, now: int) -> int | None:
    """Return the expiry in milliseconds since the epoch. Raise when it is not in the future."""
    if expires_at is None:
        return None
    try:
        expiry = datetime.fromisoformat(expires_at)
        end = int(expiry.timestamp() * 1000) if expiry.tzinfo is not None else None
    except (TypeError, ValueError, OverflowError):
        end = None
    if end is None or end > LATEST_EXPIRY:
        raise BadRequest(
            "expiresAt must be a time with its zone, like 2030-01-31T12:00:00Z.", field="expiresAt"
        )
    if end <= now:
        raise BadRequest("expiresAt is in the past; nothing was kept.", field="expiresAt")
    return end
