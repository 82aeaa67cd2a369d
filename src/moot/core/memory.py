"""What a run wants remembered: the shape of an entry, of a reference, and of a write."""

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
LARGEST = 65_536
#: entries a list gives unless it is told how many, and at most
USUAL, MOST = 100, 1000
#: seconds an entry may be kept for, if it is to end at all: a hundred years
LONGEST_TTL = 3_155_760_000
#: milliseconds since the epoch, the year 9999
LATEST = 253_402_300_799_999

SHARED = "shared"

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SEPARATORS = re.compile(r"[/\\]")


class Entry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing remembered, as the protocol shows it."""

    id: str
    content: str
    tags: list[str]
    created_at: str
    expires_at: str | UnsetType = UNSET


def is_ref(ref: Any) -> bool:
    """Whether it can name a memory. What cannot names nothing: it is never an error to read it."""
    if not isinstance(ref, str) or not 1 <= len(ref) <= LONGEST_REF or _CONTROLS.search(ref):
        return False
    return not any(part in ("", ".", "..") for part in _SEPARATORS.split(ref))


def context(sharing: str, own: str, group: str | None = None) -> str:
    """The memory of who shares it like this. It says nothing about who may speak.

    ``isolated`` is one's own; ``shared`` that of the group a message names, else of everybody;
    ``shared:<group>`` that of the group.
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
    if size > LARGEST:
        raise BadRequest(
            f"An entry holds at most {LARGEST} bytes; this has {size}.",
            field="content",
            maxEntrySizeBytes=LARGEST,
        )
    return str(content)


def check_tags(tags: Any) -> list[str]:
    """Each once, in the order they came, without empty ones."""
    good = (
        not isinstance(tags, str)
        and isinstance(tags, Sequence)
        and all(
            isinstance(tag, str) and len(tag) <= LONGEST_TAG and not _CONTROLS.search(tag)
            for tag in tags
        )
    )
    if not good or len(tags) > MOST_TAGS:
        raise BadRequest(
            f"tags is a list of at most {MOST_TAGS} texts of at most {LONGEST_TAG} characters.",
            field="tags",
        )
    return [tag for tag in dict.fromkeys(tags) if tag]


def check_limit(limit: Any) -> int:
    """0 and nothing at all mean the usual."""
    if limit is None:
        return USUAL
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise BadRequest("limit must be a whole number from 0.", field="limit")
    return min(limit, MOST) or USUAL


def check_ttl(seconds: Any) -> int | None:
    """In milliseconds."""
    if seconds is None:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= LONGEST_TTL:
        raise BadRequest(
            f"ttl must be seconds, more than 0 and at most {LONGEST_TTL}.", field="ttl"
        )
    return max(1, int(seconds * 1000))


def check_end(expires_at: Any, now: int) -> int | None:
    """Milliseconds since the epoch of a time to come."""
    if expires_at is None:
        return None
    try:
        found = datetime.fromisoformat(expires_at)
        end = int(found.timestamp() * 1000) if found.tzinfo is not None else None
    except (TypeError, ValueError, OverflowError):
        end = None
    if end is None or end > LATEST:
        raise BadRequest(
            "expiresAt must be a time with its zone, like 2030-01-31T12:00:00Z.", field="expiresAt"
        )
    if end <= now:
        raise BadRequest("expiresAt is in the past; nothing was kept.", field="expiresAt")
    return end
