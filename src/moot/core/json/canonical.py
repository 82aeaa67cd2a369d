"""JSON with one spelling (RFC 8785): the same value has the same bytes wherever they are made.

Keys stand in the order of their UTF-16 code units, numbers are written as the shortest decimal
that names the same double, texts are left as they are: nothing is normalised.
"""

from hashlib import sha256
from math import isfinite
from typing import Any

import msgspec

#: beyond it not every whole number is a double
LARGEST_WHOLE = 2**53

#: escapes in a text exactly what RFC 8785 escapes, in the same way
_text = msgspec.json.Encoder().encode
#: right for objects of nothing but texts, with keys whose order is the same by any count
_texts = msgspec.json.Encoder(order="sorted").encode
_TEXTS = {str}


def canonical(value: Any) -> bytes:
    """The bytes of a JSON value. Raises ValueError where JSON or UTF-8 cannot say it."""
    if isinstance(value, str):
        return _text(value)  # a lone surrogate is a ValueError here
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return b"[%b]" % b",".join([canonical(item) for item in value])
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    if isinstance(value, (int, float)):
        return _number(value).encode()
    raise ValueError(f"JSON cannot say a {type(value).__name__}.")


def digest(value: Any) -> str:
    """SHA-256 over the canonical bytes, in lower-case hexadecimal digits."""
    return sha256(canonical(value)).hexdigest()


def code_units(text: str) -> bytes:
    """What texts are ordered by."""
    return text.encode("utf-16-be", "surrogatepass")


def _object(value: dict[Any, Any]) -> bytes:
    try:
        plain = "".join(value).isascii()
    except TypeError:
        raise ValueError("The keys of a JSON object are texts.") from None
    if plain and set(map(type, value.values())) == _TEXTS:
        return _texts(value)
    keys = sorted(value) if plain else sorted(value, key=code_units)
    return b"{%b}" % b",".join([b"%b:%b" % (_text(key), canonical(value[key])) for key in keys])


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
    """The digits are the shortest that read back as the same double; only their place differs
    from how Python writes them."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    #: where the point stands, counted from the first digit
    point = len(digits) - len(fraction) + int(power or 0)
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
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
