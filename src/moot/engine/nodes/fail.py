"""core.fail: fails on purpose, with a code and a message."""

from typing import Any

from moot.core.workflows.node_types import Call, Failed, Kind, NodeError, NodeType
from moot.engine.nodes.inputs import first_problem

DEFAULTS = {"code": "conformance_test_failure", "message": "Intentional conformance failure"}


def _fail(call: Call) -> Failed:
    """What comes in on a port wins, so that a message can name what went wrong."""
    said = {**DEFAULTS, **call.config, **call.inputs}
    code, message = str(said["code"]), str(said["message"])
    return Failed(
        NodeError(code=code, message=message, retryable=call.config.get("retryable") is True)
    )


def _check(config: dict[str, Any]) -> str | None:
    return first_problem(
        *(
            f"config.{key} must be a text"
            for key in DEFAULTS
            if key in config and not (isinstance(config[key], str) and config[key])
        )
    )


TYPE = NodeType(type_id="core.fail", kind=Kind.INSTANT, instant=_fail, check=_check)
