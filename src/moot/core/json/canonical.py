"""Write JSON in its one canonical form (RFC 8785).

Keys are ordered by UTF-16 code units. Numbers are the shortest decimal that reads back as the same
double. Texts are not normalised.
"""

from hashlib import sha256
from math import isfinite
from typing import Any

import msgspec

#: above this, some whole numbers are not doubles
LARGEST_WHOLE = 2**53

#: escapes a text exactly as RFC 8785 does
_text = msgspec.json.Encoder().encode
#: correct only for objects of texts whose keys are ASCII
_texts = msgspec.json.Encoder(order="sorted").encode
_TEXTS = {str}


def canonical_bytes(value: Any) -> bytes:
    """Return the bytes of a JSON value. Raise ValueError for one without a JSON form."""
    if isinstance(value, str):
        return _text(value)  # a lone surrogate is a ValueError here
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return b"[%b]" % b",".join([canonical_bytes(item) for item in value])
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    if isinstance(value, (int, float)):
        return _number(value).encode()
    raise ValueError(f"JSON cannot say a {type(value).__name__}.")


def canonical_digest(value: Any) -> str:
    """Return the SHA-256 of the canonical bytes as lower-case hexadecimal digits."""
    return sha256(canonical_bytes(value)).hexdigest()


def code_unit_key(text: str) -> bytes:
    """Return the sort key of a text."""
    return text.encode("utf-16-be", "surrogatepass")


def _object(value: dict[Any, Any]) -> bytes:
    try:
        plain = "".join(value).isascii()
    except TypeError:
        raise ValueError("The keys of a JSON object are texts.") from None
    if plain and set(map(type, value.values())) == _TEXTS:
        return _texts(value)
    keys = sorted(value) if plain else sorted(value, key=code_unit_key)
    return b"{%b}" % b",".join(
        [b"%b:%b" % (_text(key), canonical_bytes(value[key])) for key in keys]
    )


def _number(value: int | float) -> str:
    if isinstance(value, int) and abs(value) <= LARGEST_WHOLE:
        return str(value)
    try:
        double = float(value)
    except OverflowError:
        raise ValueError("The number is too large for JSON.") from None
    if not isfinite(double):
        raise ValueError("JSON has no number for this.")
    return _double(double)


def _double(value: float) -> str:
    """Write the shortest digits that read back as the same double, in RFC 8785's notation."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # the position of the decimal point, counted from the first digit
    point = len(digits) - len(fraction) + int(power or 0)
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    exponent = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    rest = f".{digits[1:]}" if count > 1 else ""
    return digits[0] + rest + exponent
