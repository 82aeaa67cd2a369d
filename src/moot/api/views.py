"""Build answers from the facts that have the same fields."""

from typing import Any, TypeVar

from msgspec import UNSET, Struct

from moot.core.events import iso

View = TypeVar("View", bound=Struct)
#: Last words in the names of fields that hold times.
TIME_WORDS = ("at", "since", "until")


def copy_fields(view: type[View], fact: object, **fields: Any) -> View:
    """Return a view with these fields and, for the others, the fact's fields of the same names.

    A time of the fact, in ms, becomes text.
    """
    for name in view.__struct_fields__:
        value = getattr(fact, name, UNSET)
        if name in fields or value is UNSET or callable(value):
            continue
        is_time = isinstance(value, int) and name.rpartition("_")[2] in TIME_WORDS
        fields[name] = iso(value * 1000) if is_time else value
    return view(**fields)


def iso_or_none(millis: int | None) -> str | None:
    """Return a time in ms as text."""
    return None if millis is None else iso(millis * 1000)
