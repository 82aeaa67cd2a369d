"""Evaluate CEL expressions of conditions and port values; never Python's eval.

The CEL package's own ``__init__`` imports its command line (0.9 s). So only its extension module is
loaded, and only when a workflow uses an expression.
"""

import functools
import importlib.machinery
import importlib.util
import math
import re
from collections.abc import Mapping
from typing import Any

MAX_LENGTH = 4096
MOST_STEPS = 1_000_000
LARGEST_RESULT = 1_000_000

_MACRO = re.compile(r"\.\s*(?:map|filter|all|exists|exists_one)\s*\(")
_IN = re.compile(r"\bin\b")


class ExpressionError(Exception):
    """The expression cannot be read, or has no value here."""


@functools.cache
def _library() -> Any:
    package = importlib.util.find_spec("cel")
    spec = importlib.machinery.PathFinder.find_spec(
        "cel", list(package.submodule_search_locations or []) if package else []
    )
    if spec is None or spec.loader is None:
        raise ExpressionError("The expression library is not installed.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.lru_cache(maxsize=2048)
def _compile(source: str) -> Any:
    if len(source) > MAX_LENGTH:
        raise ExpressionError(f"An expression has at most {MAX_LENGTH} characters.")
    try:
        return _library().compile(source)
    except ValueError as error:
        first = str(error).split("\n", 1)[0]
        raise ExpressionError(first) from None


def check_expression(source: str) -> None:
    """Raise ExpressionError when the expression cannot be read."""
    _compile(source)


def evaluate_expression(source: str, names: Mapping[str, object]) -> Any:
    """Return the expression's value as plain JSON data. Raise ExpressionError."""
    program = _compile(source)
    loops = _loop_depth(source)
    if loops:
        _refuse_long(source, names, loops)
    try:
        value = plain_json(program.execute(names))
        if isinstance(value, (str, list, dict)):
            _refuse_large(source, value)
        return value
    except ExpressionError:
        raise
    except Exception as error:
        raise ExpressionError(f"'{source}' has no value here: {error}") from None


@functools.lru_cache(maxsize=2048)
def _loop_depth(source: str) -> int:
    """Return an upper bound of how deep loops are nested in an expression."""
    macros = len(_MACRO.findall(source))
    return macros + len(_IN.findall(source)) if macros else 0


def _refuse_long(source: str, names: Mapping[str, object], loops: int) -> None:
    """Raise for too many steps. The library has no limit, and an expression blocks the host."""
    longest, size = _measure(names)
    longest = max(longest, source.count(",") + 1)  # lists written out in the expression itself
    steps = longest**loops * (1 + size // 1000)
    if steps > MOST_STEPS:
        raise ExpressionError(
            f"'{source[:80]}' could take {steps:.0e} steps here, and may take {MOST_STEPS:.0e}."
        )


def _refuse_large(source: str, value: Any) -> None:
    if _measure(value)[1] > LARGEST_RESULT:
        raise ExpressionError(f"'{source[:80]}' gives more than {LARGEST_RESULT} bytes.")


def _measure(value: Any) -> tuple[int, int]:
    """The longest collection in a value, and about how many bytes all of it has."""
    longest, size, waiting = 0, 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, (list, tuple)):
            longest = max(longest, len(item))
            waiting += item
            size += len(item)
        elif isinstance(item, dict):
            longest = max(longest, len(item))
            waiting += item.values()
            size += sum(len(key) for key in item if isinstance(key, str)) + len(item)
        else:
            size += 8
    return longest, size


def is_pattern_match(text: str, pattern: str) -> bool:
    """Search with CEL's linear-time engine, so that no pattern is catastrophic."""
    return bool(evaluate_expression("text.matches(pattern)", {"text": text, "pattern": pattern}))


def plain_json(value: Any) -> Any:
    """Return JSON data; anything else becomes its text."""
    match value:
        case float() if not math.isfinite(value):
            raise ExpressionError(f"JSON has no number for {value}.")
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [plain_json(item) for item in value]
        case dict():
            # The library's maps have no fixed order; recorded ones must.
            return {str(key): plain_json(value[key]) for key in sorted(value, key=str)}
        case _:
            return str(value)
