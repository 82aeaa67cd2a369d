"""Which code a refusal shows at the top, in one switchable place.

The first protocol texts on councils know ``validation_error`` only; later ones have finer codes.
``v1`` shows the first and puts the finer one in ``details.code``; ``0239`` shows the finer one.
"""

from typing import Any, Literal

from moot.core.errors import Conflict, CouncilRefusal, MootError
from moot.core.threads.agent_bridge import handle

Dialect = Literal["v1", "0239"]


class BridgeConflict(Conflict):
    """A conflict in the shape that programs for Agent Bridge look into."""

    def __init__(self, refusal: Conflict, thread: str) -> None:
        super().__init__(refusal.message, **refusal.details)
        name = refusal.details.get("participant")
        self.about = {
            "code": refusal.code,
            "message": refusal.message,
            "thread": thread,
            "participant": None if name is None else handle(name),
        }


class PassingBridgeConflict(BridgeConflict):
    passing = True


def as_bridge(refusal: Conflict, thread: str) -> BridgeConflict:
    return (PassingBridgeConflict if refusal.passing else BridgeConflict)(refusal, thread)


def body_of(refusal: MootError, dialect: Dialect) -> dict[str, Any]:
    """A refusal as it is told."""
    if isinstance(refusal, BridgeConflict):
        return {"error": refusal.about}
    code, details = spoken(refusal, dialect)
    told: dict[str, Any] = {"error": code, "message": refusal.message}
    return {**told, "details": details} if details else told


def spoken(refusal: MootError, dialect: Dialect) -> tuple[str, dict[str, object]]:
    """The code and the details of a refusal."""
    if isinstance(refusal, CouncilRefusal) and dialect == "v1":
        return "validation_error", {"code": refusal.code, **refusal.details}
    return refusal.code, refusal.details
