"""What is tried again, in and out: how long to wait, and which secrets count meanwhile. Pure."""

import hashlib

#: waits between tries (ms): doubled each time, with an end
FIRST_WAIT = 1000
LONGEST_WAIT = 30_000
#: after a change of a secret both are good, for so long (ms)
OVERLAP = 24 * 3_600_000


def wait_after(tries: int, lot: int, growing: bool = True) -> int:
    """After so many tries (ms). ``lot`` (0..999) spreads those that failed together."""
    wait = min(FIRST_WAIT << min(tries - 1, 10), LONGEST_WAIT) if growing else FIRST_WAIT
    return wait + wait * lot // 5000


def lot_of(delivery_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(delivery_id.encode(), digest_size=4).digest()) % 1000


def good_secrets(newest: str | None, earlier: str | None, until: int, now: int) -> list[str]:
    """Those that sign, the newest first; the one before it until its time is over."""
    old = earlier if now < until else None
    return [secret for secret in (newest, old) if secret is not None]
