"""Parse the inputs of a run as people type them: ``k=v``, ``@file.json``, ``-``."""

import json
import sys
from pathlib import Path
from typing import Any

import click


def parse_inputs(words: tuple[str, ...]) -> dict[str, object]:
    """Return all inputs; later ones win over earlier ones."""
    inputs: dict[str, object] = {}
    for word in words:
        if word == "-":
            inputs.update(_parse_object(sys.stdin.read(), "stdin"))
        elif word.startswith("@"):
            inputs.update(_parse_object(read_text(word[1:]), word[1:]))
        else:
            name, equals, value = word.partition("=")
            if not equals or not name:
                raise click.UsageError(f"--input {word}: write K=V, @file.json or - for stdin.")
            inputs[name] = parse_value(value)
    return inputs


def parse_value(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_text(name: str) -> str:
    """Return a file's text; ``-`` is stdin."""
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


def _parse_object(text: str, source: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{source} is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"{source} must hold an object: names and values of inputs.")
    return value
