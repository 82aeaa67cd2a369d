"""Compile the YAML form of a workflow to a protocol definition."""

from moot.core.workflows.yaml.compile import compile_yaml
from moot.core.workflows.yaml.source import FlowFileError

__all__ = ["FlowFileError", "compile_yaml"]
