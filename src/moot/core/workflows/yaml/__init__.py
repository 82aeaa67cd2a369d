"""The friendly YAML form of a workflow, compiled to a protocol definition. Text in, dict out."""

from moot.core.workflows.yaml.compile import compile_yaml
from moot.core.workflows.yaml.source import FlowFileError

__all__ = ["FlowFileError", "compile_yaml"]
