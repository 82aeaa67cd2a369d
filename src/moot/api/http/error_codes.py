"""Choose the error code that a refusal shows.

The first protocol texts on councils know only ``validation_error``; later ones have finer codes.
``v1`` shows the first and puts the finer code in ``details.code``; ``0239`` shows the finer code.
"""

from typing import Literal

from moot.core.errors import Conflict, CouncilRefusal, MootError
from moot.core.text.names import handle_from_name
from moot.wire.errors import BridgeError, BridgeErrorDetails, Error

Dialect = Literal["v1", "0239"]


class BridgeConflict(Conflict):
    """A conflict in the shape that Agent Bridge programs expect."""

    def __init__(self, refusal: Conflict, thread: str) -> None:
        super().__init__(refusal.message, **refusal.details)
        name = refusal.details.get("participant")
        self.about = BridgeErrorDetails(
            code=refusal.code,
            message=refusal.message,
            thread=thread,
            participant=None if name is None else handle_from_name(name),
        )


class RetryableBridgeConflict(BridgeConflict):
    """A bridge conflict that may pass when the caller tries again."""

    passing = True


def bridge_conflict(refusal: Conflict, thread: str) -> BridgeConflict:
    return (RetryableBridgeConflict if refusal.passing else BridgeConflict)(refusal, thread)


def refusal_body(refusal: MootError, dialect: Dialect) -> Error | BridgeError:
    if isinstance(refusal, BridgeConflict):
        return BridgeError(error=refusal.about)
    code, details = code_and_details(refusal, dialect)
    return Error(error=code, message=refusal.message, details=details)


def code_and_details(refusal: MootError, dialect: Dialect) -> tuple[str, dict[str, object]]:
    if isinstance(refusal, CouncilRefusal) and dialect == "v1":
        return "validation_error", {"code": refusal.code, **refusal.details}
    return refusal.code, refusal.details
