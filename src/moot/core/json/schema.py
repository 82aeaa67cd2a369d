"""Validate values against a JSON Schema, with bounded work.

Schemas and values come from outside, and validation blocks the event loop. So the cost is measured
first, and too much work is refused. The validator library is loaded on first use.
"""

import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moot.core.json.schema_cost import SchemaCost, measure_cost, uniqueness_cost
from moot.core.json.schema_refs import UnboundedSchema

#: steps of about ten nanoseconds that one check may take
MOST_WORK = 20_000_000
#: applied subschemas times bytes: up to the first limit all problems are listed, up to the second
#: only the first problem
ALL_PROBLEMS = 100_000
FIRST_PROBLEM = 4_000_000
MOST_PROBLEMS = 5
LONGEST_TEXT = 300

#: patterns with look-around or back-references backtrack, up to this limit for each text
BACKTRACKS = 10_000
#: eighths of a step for each byte that such a pattern is tried on
STEPWISE = 16_000

#: validators of larger schemas are large, so fewer of them are cached
LARGE = 16_384

TOO_LARGE = "the value: it is too large to be checked against its schema"
SOMEWHERE = "the value: it does not fit its schema, and is too large to say where"


class SchemaError(Exception):
    """The schema itself cannot be used."""


class _CompiledSchema(msgspec.Struct, frozen=True):
    validator: Any
    weight: SchemaCost


def check_schema(schema: Mapping[str, object]) -> None:
    """Raise SchemaError when the schema cannot be used."""
    if isinstance(compiled := _compile_cached(schema), str):
        raise SchemaError(compiled)


def schema_problems(schema: Mapping[str, object], value: Any) -> list[str]:
    """Return the first problems of the value, each with its place; [] when it is valid.

    A schema that cannot be used is a problem, too.
    """
    compiled = _compile_cached(schema)
    if isinstance(compiled, str):
        return [f"the schema cannot be used: {compiled}"]
    body = msgspec.json.encode(value)
    if compiled.weight.for_value(body) > MOST_WORK:
        return [TOO_LARGE]
    if compiled.validator.is_valid(value):
        return []
    errors = itertools.islice(_errors(compiled, value, len(body)), MOST_PROBLEMS)
    return [_problem(error) for error in errors] or [SOMEWHERE]


def _errors(compiled: _CompiledSchema, value: Any, size: int) -> Iterable[Any]:
    """Yield as many errors as are affordable.

    The validator builds all errors before it yields one, each with a copy of its part of the value
    and, under anyOf and oneOf, with the errors of every branch.
    """
    import jsonschema_rs

    most = compiled.weight.applied * size
    if most <= ALL_PROBLEMS:
        yield from compiled.validator.iter_errors(value)
    elif most <= FIRST_PROBLEM or not compiled.weight.branches:
        try:
            compiled.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error


def _problem(error: Any) -> str:
    return _cut(f"{'/'.join(map(str, error.instance_path)) or 'the value'}: {error.message}")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _compile_cached(schema: Mapping[str, object]) -> _CompiledSchema | str:
    body = msgspec.json.encode(schema, order="sorted")
    return _small(body) if len(body) <= LARGE else _large(body)


def _compile(body: bytes) -> _CompiledSchema | str:
    """Return the validator, or the reason for refusing the schema. Both are cached."""
    schema = msgspec.json.decode(body)
    try:
        weight = measure_cost(schema)
    except UnboundedSchema as refusal:
        return _cut(str(refusal))
    if uniqueness_cost(body) > MOST_WORK:
        return "it has too many long numbers"
    return _validator(schema, weight)


_small = functools.lru_cache(maxsize=512)(_compile)
_large = functools.lru_cache(maxsize=16)(_compile)


def _validator(schema: Any, weight: SchemaCost) -> _CompiledSchema | str:
    """Prefer an engine with linear time; fall back to one that backtracks."""
    import jsonschema_rs

    linear = jsonschema_rs.RegexOptions()
    stepwise = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    # offline: a reference must never make the host read a file or call an address
    build = functools.partial(jsonschema_rs.validator_for, schema, offline=True)
    try:
        return _CompiledSchema(build(pattern_options=linear), weight)
    except ValueError:
        pass
    try:
        heavy = msgspec.structs.replace(weight, text=weight.patterns * STEPWISE)
        return _CompiledSchema(build(pattern_options=stepwise), heavy)
    except ValueError as error:
        return _cut(str(error).split("\n", 1)[0])
