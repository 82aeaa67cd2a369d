"""What is on record of effects on the world, as it is looked up."""

from msgspec import Struct


class EffectRow(Struct, frozen=True, kw_only=True):
    """Derived: where in the log the start or the end of an effect stands."""

    tenant: str
    invocation_id: str
    run_id: str
    sequence: int
    finished: bool
    #: what it used up, and on which day (UTC, counted from 1970); money in millionths
    day: int = 0
    tokens: int = 0
    money: int = 0
    #: the standing agent whose budget it is charged to
    member: str | None = None
