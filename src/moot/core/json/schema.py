"""JSON Schema, where a workflow declares one. The validator is loaded when the first one is met.

Schemas and values come from outside, and checking does not let anything else happen meanwhile:
so the work is weighed before it is done, and what would be too much is refused.
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from moot.core.json.schema_cost import Weight, told_apart, weigh
from moot.core.json.schema_refs import Unbounded

#: steps of about ten nanoseconds that one check may take
MOST_WORK = 20_000_000
#: applied subschemas times bytes: up to here every problem is made, up to the next the first one
ALL_PROBLEMS = 100_000
FIRST_PROBLEM = 4_000_000
MOST_PROBLEMS = 5
LONGEST_TEXT = 300

#: patterns that look around or back are tried step by step, up to a limit for each text
BACKTRACKS = 10_000
#: eighths of a step for each byte such a pattern is held against
STEPWISE = 16_000

#: large schemas make large validators: fewer of them are kept
LARGE = 16_384

TOO_LARGE = "the value: it is too large to be checked against its schema"
SOMEWHERE = "the value: it does not fit its schema, and is too large to say where"


class SchemaError(Exception):
    """The schema itself cannot be used."""


class _Compiled(msgspec.Struct, frozen=True):
    validator: Any
    weight: Weight


def check(schema: dict[str, Any]) -> None:
    """Raises SchemaError when the schema cannot be used."""
    if isinstance(found := _compiled(schema), str):
        raise SchemaError(found)


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    """The first things that are wrong with the value, each with its place; [] when it fits.

    With a schema that cannot be used nothing fits.
    """
    found = _compiled(schema)
    if isinstance(found, str):
        return [f"the schema cannot be used: {found}"]
    body = msgspec.json.encode(value)
    if found.weight.of(body) > MOST_WORK:
        return [TOO_LARGE]
    if found.validator.is_valid(value):
        return []
    errors = itertools.islice(_errors(found, value, len(body)), MOST_PROBLEMS)
    return [_problem(error) for error in errors] or [SOMEWHERE]


def _errors(found: _Compiled, value: Any, size: int) -> Iterable[Any]:
    """The validator makes all errors before it tells one, each with a copy of its part of the value
    and, under anyOf and oneOf, with the errors of every branch."""
    import jsonschema_rs

    most = found.weight.applied * size
    if most <= ALL_PROBLEMS:
        yield from found.validator.iter_errors(value)
    elif most <= FIRST_PROBLEM or not found.weight.branches:
        try:
            found.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error


def _problem(error: Any) -> str:
    return _cut(f"{'/'.join(map(str, error.instance_path)) or 'the value'}: {error.message}")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _compiled(schema: dict[str, Any]) -> _Compiled | str:
    body = msgspec.json.encode(schema, order="sorted")
    return _small(body) if len(body) <= LARGE else _large(body)


def _compile(body: bytes) -> _Compiled | str:
    """The validator, or why there is none; a refusal is remembered too."""
    schema = msgspec.json.decode(body)
    try:
        weight = weigh(schema)
    except Unbounded as refusal:
        return _cut(str(refusal))
    if told_apart(body) > MOST_WORK:
        return "it has too many long numbers"
    return _validator(schema, weight)


_small = functools.lru_cache(maxsize=512)(_compile)
_large = functools.lru_cache(maxsize=16)(_compile)


def _validator(schema: Any, weight: Weight) -> _Compiled | str:
    """With patterns that take linear time, if there is a way to read them so."""
    import jsonschema_rs

    linear = jsonschema_rs.RegexOptions()
    stepwise = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    # offline: a reference must never make the host read a file or call an address
    build = functools.partial(jsonschema_rs.validator_for, schema, offline=True)
    try:
        return _Compiled(build(pattern_options=linear), weight)
    except ValueError:
        pass
    try:
        heavy = msgspec.structs.replace(weight, text=weight.patterns * STEPWISE)
        return _Compiled(build(pattern_options=stepwise), heavy)
    except ValueError as error:
        return _cut(str(error).split("\n", 1)[0])
