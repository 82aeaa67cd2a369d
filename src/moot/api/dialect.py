"""Which code a refusal shows at the top, in one switchable place.

The first protocol texts on councils know ``validation_error`` only; later ones have finer codes.
``v1`` shows the first and puts the finer one in ``details.code``; ``0239`` shows the finer one.
"""

from typing import Literal

from moot.core.errors import CouncilRefusal, MootError

Dialect = Literal["v1", "0239"]


def spoken(refusal: MootError, dialect: Dialect) -> tuple[str, dict[str, object]]:
    """The code and the details of a refusal."""
    if isinstance(refusal, CouncilRefusal) and dialect == "v1":
        return "validation_error", {"code": refusal.code, **refusal.details}
    return refusal.code, refusal.details
