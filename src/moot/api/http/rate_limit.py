"""Rate limits: one token bucket for each known key or unknown address."""

from collections import OrderedDict

from msgspec import Struct

from moot.clock import Clock
from moot.core.errors import RateLimited

MOST_BUCKETS = 10_000


class _Bucket(Struct):
    tokens: float
    last: int


class RateLimit:
    """Token buckets. A caller may send one second's worth of requests at once."""

    def __init__(self, rate: int, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, who: str, scope: str) -> None:
        """Take one token.

        Raise RateLimited when the bucket is empty. A rate of 0 means no limit.
        """
        if not self._rate:
            return
        now = self._clock.micros()
        bucket = self._buckets.get(who) or self._full(who, now)
        self._buckets.move_to_end(who)
        tokens = bucket.tokens + (now - bucket.last) * self._rate / 1_000_000
        if tokens > self._rate:
            tokens = self._rate
        bucket.last = now
        bucket.tokens = tokens - 1 if tokens >= 1 else tokens
        if tokens < 1:
            raise RateLimited(scope, self._rate, max(1, int((1 - tokens) * 1000 / self._rate)))

    def _full(self, who: str, now: int) -> "_Bucket":
        """Add a full bucket. The least recently used bucket makes room."""
        bucket = self._buckets[who] = _Bucket(float(self._rate), now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return bucket
