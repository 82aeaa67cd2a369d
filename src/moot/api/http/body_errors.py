"""What is wrong with a body, in words that whoever sent it knows."""

import re
from typing import Any

import msgspec

from moot.core.text.nearest import nearest

_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_LENGTH = re.compile(r"Expected `(str|array)` of length (>=|<=) (\d+) - at `\$\.([^`]+)`")


def worded(problem: str, type_: Any) -> str:
    """A field that is not there with the one that was meant; a length in characters."""
    if found := _UNKNOWN.fullmatch(problem):
        return _unknown(found[1], type_)
    if found := _LENGTH.fullmatch(problem):
        kind, bound, number, field = found.groups()
        things = "characters" if kind == "str" else "items"
        if bound == ">=" and number == "1":
            return f"{field} must not be empty."
        return f"{field} has at {'most' if bound == '<=' else 'least'} {number} {things}."
    return problem


def _unknown(name: str, type_: Any) -> str:
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return f"there is no field `{name}`."
    known = [field.encode_name for field in msgspec.structs.fields(type_)]
    meant = nearest(name, known)
    hint = f" Did you mean `{meant}`?" if meant else f" There are {', '.join(known)}."
    return f"there is no field `{name}`.{hint}"
