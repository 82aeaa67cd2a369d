"""The inputs of a run as they are typed: ``k=v``, ``@file.json``, ``-``."""

import json
import sys
from pathlib import Path
from typing import Any

import click


def gather(given: tuple[str, ...]) -> dict[str, Any]:
    """Later ones win over earlier ones."""
    inputs: dict[str, Any] = {}
    for word in given:
        if word == "-":
            inputs.update(_object(sys.stdin.read(), "stdin"))
        elif word.startswith("@"):
            inputs.update(_object(read(word[1:]), word[1:]))
        else:
            name, equals, value = word.partition("=")
            if not equals or not name:
                raise click.UsageError(f"--input {word}: write K=V, @file.json or - for stdin.")
            inputs[name] = value_of(value)
    return inputs


def value_of(text: str) -> Any:
    """JSON if it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def read(name: str) -> str:
    """A file's text; ``-`` is stdin."""
    try:
        return read_bytes(name).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{name} cannot be read: {error}.") from None


def read_bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror}.") from None


def _object(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{source} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise click.UsageError(f"{source} must hold an object: names and values of inputs.")
    return found
