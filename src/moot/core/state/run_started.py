"""What a run's first event says of it, as its state keeps it."""

from typing import TYPE_CHECKING

from moot.core import trace
from moot.core.events import Event
from moot.core.state import initiation, memory

if TYPE_CHECKING:
    from moot.core.state.run import Run


def started(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    owner = said.get("owner", {})
    run.tenant = run.tenant or owner.get("tenant", "")
    run.principal = owner.get("principal", "")
    run.person = said.get("person", "user")
    run.workflow_id = said.get("workflowId", "")
    run.definition = said.get("definition", "")
    run.engine_version = said.get("engineVersion", "")
    run.started_at = run.active_since = at
    run.inputs = dict(said.get("inputs", {}))
    run.variables = dict(said.get("variables", {}))
    run.declared = list(said.get("channels", {}))
    run.channels = {
        name: list(default) if isinstance(default, list) else default
        for name, default in said.get("channels", {}).items()
        if default is not None
    }
    run.tags = list(said.get("tags", []))
    run.metadata = said.get("metadata", {})
    run.configurable = said.get("configurable", {})
    run.scope_id = said.get("scopeId")
    run.limits = dict(said.get("limits", {}))
    run.parent_run = said.get("parentRunId")
    run.parent_node = said.get("parentNodeId")
    run.rights = said.get("rights")
    run.trigger = said.get("trigger")
    run.depth = said.get("depth", 0)
    run.forked_from = said.get("forkedFrom")
    run.memory = memory.begun(run, said["memory"]) if "memory" in said else None
    run.versions = dict(said.get("agentVersions", {}))
    run.origin = said.get("origin")
    given = said.get("trace", {})
    run.trace = trace.read(given.get("traceparent"), given.get("tracestate"))
    initiation.begun(run, event)
