"""Whether a run can have begun as its first event tells."""

from typing import Any

from msgspec import UNSET

from moot.core.events import ENGINE_VERSION, Event
from moot.core.replay.compare import alike
from moot.core.state.memory import default_scope
from moot.core.state.run import Run
from moot.core.workflows.graph import Flow

Problem = tuple[str, Any, Any]

TRANSPORTS = ("rest", "mcp", "a2a", "ui")
LIMITS = {"nodeExecutions", "durationMs", "parallel", "depth", "tree"}


def start(flow: Flow, run: Run, event: Event, delivered: bool) -> Problem | None:
    """What is wrong with the beginning of a run."""
    said = event.payload
    expected = {
        "workflowId": flow.definition.id,
        "definition": flow.digest,
        "owner": {"tenant": run.tenant, "principal": run.principal},
    }
    for key, value in expected.items():
        if said.get(key) != value:
            return "payload", {key: value}, {key: said.get(key)}
    if said.get("transport") not in TRANSPORTS:
        return "payload", {"transport": TRANSPORTS}, {"transport": said.get("transport")}
    limits = said.get("limits", {})
    if not limits.keys() >= LIMITS or any(type(most) is not int for most in limits.values()):
        return "payload", {"limits": sorted(LIMITS)}, {"limits": limits}
    version = said.get("engineVersion", "")
    if not version.isdigit() or int(version) > ENGINE_VERSION:
        return "engineVersion", f"at most {ENGINE_VERSION}", version
    if event.engine_version != version:
        return "engineVersion", version, event.engine_version
    if problem := _remembered(run, said):
        return problem
    if "parentRunId" in said or "forkedFrom" in said:
        return None  # what another run gave is not known here
    if event.causation_id is not UNSET and not delivered:
        return "cause", None, event.causation_id
    return _seeded(flow, said)


def _remembered(run: Run, said: dict[str, Any]) -> Problem | None:
    """Its own memory, or that of whoever it comes from."""
    told = said.get("memory", {})
    found = told.get("revision", 0)
    if type(found) is not int or found < 0:
        return "payload", "how far memory had come", told
    line = told.get("ancestors", [])[-1:]
    if "memory" in said and line != [said[key] for key in ("parentRunId",) if key in said]:
        return "payload", {"ancestors": said.get("parentRunId")}, told
    if "forkedFrom" in said:
        source = told.get("inherited", [{}])[-1].get("run")
        right = "memory" not in said or source == said["forkedFrom"].get("sourceRunId")
        return None if right else ("payload", said["forkedFrom"], told)
    own = default_scope(run.run_id, run.scope_id)
    if "parentRunId" not in said and told.get("scope", own) != own:
        return "payload", {"scope": own}, told
    return None


def _seeded(flow: Flow, said: dict[str, Any]) -> Problem | None:
    """Defaults, then inputs; of secrets only that they are hidden."""
    seeded = {
        variable.name: variable.default_value
        for variable in flow.definition.variables
        if variable.default_value is not UNSET
    }
    seeded.update(said.get("inputs", {}))
    expected, found = (
        {name: value for name, value in part.items() if name not in flow.sensitive}
        for part in (seeded, said.get("variables", {}))
    )
    channels = {
        name: None if channel.default is UNSET else channel.default
        for name, channel in flow.definition.channels.items()
    }
    if not alike(expected, found, None):
        return "payload", {"variables": expected}, {"variables": found}
    if said.get("channels", {}) != channels:
        return "payload", {"channels": channels}, {"channels": said.get("channels")}
    return None
