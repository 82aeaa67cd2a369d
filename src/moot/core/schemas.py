"""JSON Schema, where a workflow declares one. The validator is loaded when the first one is met."""

import functools
from typing import Any

import msgspec


class SchemaError(Exception):
    """The schema itself cannot be used."""


@functools.lru_cache(maxsize=512)
def _validator(schema: bytes) -> Any:
    import jsonschema_rs

    try:
        # offline: a reference must never make the host read a file or call an address
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), offline=True)
    except ValueError as error:
        raise SchemaError(str(error).split("\n", 1)[0]) from None


def check(schema: dict[str, Any]) -> None:
    """Raises SchemaError when the schema cannot be used."""
    _validator(msgspec.json.encode(schema, order="sorted"))


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with the value, each with its place; [] when it fits."""
    validator = _validator(msgspec.json.encode(schema, order="sorted"))
    return [
        f"{'/'.join(map(str, error.instance_path)) or 'the value'}: {error.message}"
        for error in validator.iter_errors(value)
    ]
