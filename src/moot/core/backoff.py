"""Retries of deliveries: waits between tries, and secrets that stay valid."""

import hashlib

#: waits between tries (ms): doubled each time, up to the longest
FIRST_WAIT = 1000
LONGEST_WAIT = 30_000
#: time after a change of a secret in which both secrets are valid (ms)
SECRET_OVERLAP = 24 * 3_600_000


def retry_wait_ms(tries: int, jitter: int, growing: bool = True) -> int:
    """Return the wait after so many tries. ``jitter`` (0..999) spreads common failures."""
    wait = min(FIRST_WAIT << min(tries - 1, 10), LONGEST_WAIT) if growing else FIRST_WAIT
    return wait + wait * jitter // 5000


def retry_jitter(delivery_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(delivery_id.encode(), digest_size=4).digest()) % 1000


def valid_secrets(newest: str | None, earlier: str | None, until: int, now: int) -> list[str]:
    """Return the valid secrets, the newest first; the earlier one is valid until ``until``."""
    old = earlier if now < until else None
    return [secret for secret in (newest, old) if secret is not None]
