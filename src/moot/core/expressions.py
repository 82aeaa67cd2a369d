"""Expressions in conditions and port values are CEL; never eval.

The CEL package's own ``__init__`` imports its command line (0.9 s); only its extension module is
loaded here, and only when a workflow uses an expression.
"""

import functools
import importlib.machinery
import importlib.util
import math
from typing import Any

MAX_LENGTH = 4096


class ExpressionError(Exception):
    """The expression cannot be read, or has no value here."""


@functools.cache
def _library() -> Any:
    package = importlib.util.find_spec("cel")
    found = importlib.machinery.PathFinder.find_spec(
        "cel", list(package.submodule_search_locations or []) if package else []
    )
    if found is None or found.loader is None:
        raise ExpressionError("The expression library is not installed.")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@functools.lru_cache(maxsize=2048)
def _compiled(source: str) -> Any:
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"An expression has at most {MAX_LENGTH} characters.")
    try:
        return _library().compile(source)
    except ValueError as error:
        first = str(error).split("\n", 1)[0]
        raise ExpressionError(first) from None


def check(source: str) -> None:
    """Raises ExpressionError when the expression cannot be read."""
    _compiled(source)


def evaluate(source: str, names: dict[str, Any]) -> Any:
    """The expression's value as plain JSON data."""
    try:
        return plain(_compiled(source).execute(names))
    except ExpressionError:
        raise
    except Exception as error:
        raise ExpressionError(f"'{source}' has no value here: {error}") from None


def matches(text: str, pattern: str) -> bool:
    """Linear-time regular expression search (CEL's engine: no catastrophic patterns)."""
    return bool(evaluate("text.matches(pattern)", {"text": text, "pattern": pattern}))


def plain(value: Any) -> Any:
    """Only what JSON can say; anything else becomes its text."""
    match value:
        case float() if not math.isfinite(value):
            raise ExpressionError(f"JSON has no number for {value}.")
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            # The library hands its own maps over in any order; what is recorded has one.
            return {str(key): plain(value[key]) for key in sorted(value, key=str)}
        case _:
            return str(value)
