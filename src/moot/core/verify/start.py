"""Verify the first event of a run."""

from typing import Any

from msgspec import UNSET

from moot.core.events import ENGINE_VERSION, Event, payload_fields
from moot.core.payloads.comparison import is_alike
from moot.core.state.memory import default_scope
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow

Problem = tuple[str, Any, Any]

TRANSPORTS = ("rest", "mcp", "a2a", "ui")
LIMIT_NAMES = {"nodeExecutions", "durationMs", "parallel", "depth", "tree"}


def check_start(flow: Flow, run: Run, event: Event, delivered: bool) -> Problem | None:
    """Return the first problem of the run's start, or None."""
    payload = payload_fields(event)
    expected = {
        "workflowId": flow.definition.id,
        "definition": flow.digest,
        "owner": {"tenant": run.tenant, "principal": run.principal},
    }
    for key, value in expected.items():
        if payload.get(key) != value:
            return "payload", {key: value}, {key: payload.get(key)}
    if payload.get("transport") not in TRANSPORTS:
        return "payload", {"transport": TRANSPORTS}, {"transport": payload.get("transport")}
    limits = payload.get("limits", {})
    if not limits.keys() >= LIMIT_NAMES or any(type(most) is not int for most in limits.values()):
        return "payload", {"limits": sorted(LIMIT_NAMES)}, {"limits": limits}
    version = payload.get("engineVersion", "")
    if not version.isdigit() or int(version) > ENGINE_VERSION:
        return "engineVersion", f"at most {ENGINE_VERSION}", version
    if event.engine_version != version:
        return "engineVersion", version, event.engine_version
    if problem := _check_memory(run, payload):
        return problem
    if "parentRunId" in payload or "forkedFrom" in payload:
        return None  # values from another run are not known here
    if event.causation_id is not UNSET and not delivered:
        return "cause", None, event.causation_id
    return _check_variables(flow, payload)


def _check_memory(run: Run, payload: dict[str, Any]) -> Problem | None:
    """Check that the memory is the run's own, its parent's or its source's."""
    memory = payload.get("memory", {})
    revision = memory.get("revision", 0)
    if type(revision) is not int or revision < 0:
        return "payload", "how far memory had come", memory
    parents = memory.get("ancestors", [])[-1:]
    if "memory" in payload and parents != [
        payload[key] for key in ("parentRunId",) if key in payload
    ]:
        return "payload", {"ancestors": payload.get("parentRunId")}, memory
    if "forkedFrom" in payload:
        source = memory.get("inherited", [{}])[-1].get("run")
        is_valid = "memory" not in payload or source == payload["forkedFrom"].get("sourceRunId")
        return None if is_valid else ("payload", payload["forkedFrom"], memory)
    scope = default_scope(run.run_id, run.scope_id)
    if "parentRunId" not in payload and memory.get("scope", scope) != scope:
        return "payload", {"scope": scope}, memory
    return None


def _check_variables(flow: Flow, payload: dict[str, Any]) -> Problem | None:
    """Check that the variables are defaults, then inputs. Secrets are not compared."""
    seeded = {
        variable.name: variable.default_value
        for variable in flow.definition.variables
        if variable.default_value is not UNSET
    }
    seeded.update(payload.get("inputs", {}))
    expected, recorded = (
        {name: value for name, value in part.items() if name not in flow.sensitive}
        for part in (seeded, payload.get("variables", {}))
    )
    channels = {
        name: None if channel.default is UNSET else channel.default
        for name, channel in flow.definition.channels.items()
    }
    if not is_alike(expected, recorded, None):
        return "payload", {"variables": expected}, {"variables": recorded}
    if payload.get("channels", {}) != channels:
        return "payload", {"channels": channels}, {"channels": payload.get("channels")}
    return None
