"""Derive ids from their parts, so that a repeated decision makes the same id."""

import base64
import hashlib


def derived_id(prefix: str, *parts: str) -> str:
    name = hashlib.blake2b("\0".join(parts).encode(), digest_size=13).digest()
    return prefix + base64.b32encode(name).decode().lower()[:20]


def logical_invocation_id(
    tenant: str, run_id: str, node_id: str, ordinal: int, provider_key: str
) -> str:
    """Return the id of one intended effect; it is stable across retries and crashes (layer 2)."""
    parts = ("openwop:activity:v2", tenant, run_id, node_id, str(ordinal), provider_key)
    name = hashlib.sha256("\0".join(parts).encode()).digest()
    return base64.urlsafe_b64encode(name).decode().rstrip("=")
