"""JSON with one spelling (RFC 8785): the same value has the same bytes wherever they are made.

Keys stand in the order of their UTF-16 code units, numbers are written as the shortest decimal
that names the same double, texts are left as they are: nothing is normalised.
"""

from hashlib import sha256
from math import isfinite
from typing import Any

#: beyond it not every whole number is a double
LARGEST_WHOLE = 2**53

_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_ESCAPES = str.maketrans({**{chr(code): f"\\u{code:04x}" for code in range(0x20)}, **_SHORT})


def canonical(value: Any) -> bytes:
    """The bytes of a JSON value. Raises ValueError where JSON or UTF-8 cannot say it."""
    pieces: list[str] = []
    _write(value, pieces)
    return "".join(pieces).encode()  # a lone surrogate is a ValueError here


def digest(value: Any) -> str:
    """SHA-256 over the canonical bytes, in lower-case hexadecimal digits."""
    return sha256(canonical(value)).hexdigest()


def code_units(text: str) -> bytes:
    """What texts are ordered by."""
    return text.encode("utf-16-be", "surrogatepass")


def _write(value: Any, pieces: list[str]) -> None:
    if value is None or isinstance(value, bool):
        pieces.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        pieces.append(_text(value))
    elif isinstance(value, (int, float)):
        pieces.append(_number(value))
    elif isinstance(value, (list, tuple)):
        _write_list(value, pieces)
    elif isinstance(value, dict):
        _write_object(value, pieces)
    else:
        raise ValueError(f"JSON cannot say a {type(value).__name__}.")


def _write_list(items: list[Any] | tuple[Any, ...], pieces: list[str]) -> None:
    pieces.append("[")
    for number, item in enumerate(items):
        if number:
            pieces.append(",")
        _write(item, pieces)
    pieces.append("]")


def _write_object(value: dict[Any, Any], pieces: list[str]) -> None:
    if not all(isinstance(key, str) for key in value):
        raise ValueError("The keys of a JSON object are texts.")
    pieces.append("{")
    for number, key in enumerate(sorted(value, key=code_units)):
        pieces.append("," if number else "")
        pieces.append(_text(key) + ":")
        _write(value[key], pieces)
    pieces.append("}")


def _text(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


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
