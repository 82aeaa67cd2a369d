"""Block the starts of a schedule while it is paused or switched off."""

from typing import Literal

from msgspec.structs import replace

from moot.core.schedules.calendar import LAST_INSTANT
from moot.core.schedules.model import (
    MOST_BLOCKED_PERIODS,
    BlockedPeriod,
    Schedule,
    ScheduleFacts,
    SlotLedger,
)

BlockReason = Literal["disabled", "paused"]


def block_starts(
    ledger: SlotLedger, now: int, reason: BlockReason, until: int | None = None
) -> SlotLedger:
    """Block starts from now on, for good or until an instant."""
    periods = (*unblock_starts(ledger, now, reason).bars, BlockedPeriod(now, until, reason))
    if len(periods) > MOST_BLOCKED_PERIODS:
        oldest, second, *rest = periods
        longer = max(oldest, second, key=lambda period: period.until or LAST_INSTANT)
        # the time between the two is blocked as well, which is the safe side
        periods = (replace(longer, since=oldest.since), *rest)
    return replace(ledger, bars=periods)


def unblock_starts(ledger: SlotLedger, now: int, reason: BlockReason) -> SlotLedger:
    """Unblock starts. Slots that fell due in between stay skipped."""
    periods = tuple(
        replace(period, until=now) if period.reason == reason and period.holds(now) else period
        for period in ledger.bars
    )
    return replace(ledger, bars=periods)


def blocked_period_at(
    spec: Schedule, ledger: SlotLedger, facts: ScheduleFacts, at: int
) -> BlockedPeriod | None:
    """Return the period that blocks a start at this instant. ``disabled`` wins over ``paused``."""
    if not spec.enabled:
        return BlockedPeriod(0, None, "disabled")
    periods = [period for period in (*ledger.bars, *facts.bars) if period.holds(at)]
    return min(periods, key=lambda period: period.reason, default=None)
