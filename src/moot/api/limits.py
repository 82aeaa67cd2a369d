"""Rate limits: one token bucket for each known key, or for each address that sends none."""

from collections import OrderedDict

from moot.clock import Clock
from moot.core.errors import RateLimited

MOST_BUCKETS = 10_000


class RateLimit:
    """A second's worth of requests may come at once; then they come at the rate."""

    def __init__(self, rate: int, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def spend(self, who: str, scope: str) -> None:
        """Raises RateLimited when the bucket is empty. A rate of 0 means no limit."""
        if not self._rate:
            return
        now = self._clock.micros()
        tokens, last = self._buckets.get(who, (float(self._rate), now))
        tokens = min(self._rate, tokens + (now - last) * self._rate / 1_000_000)
        if tokens < 1:
            self._keep(who, tokens, now)
            raise RateLimited(scope, self._rate, max(1, int((1 - tokens) * 1000 / self._rate)))
        self._keep(who, tokens - 1, now)

    def _keep(self, who: str, tokens: float, now: int) -> None:
        """The bucket nobody has used for longest makes room."""
        self._buckets[who] = (tokens, now)
        self._buckets.move_to_end(who)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
