"""Resolve the standing agents that a workflow's nodes name.

A handle (``host:NAME``) names a standing agent or a plain agent. The start of the run records which
one it is; this module uses only that record.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from moot.core.state.initiation import Initiation, RunMember
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.flow import Flow, FlowNode
from moot.core.workflows.schema import NodeDef

if TYPE_CHECKING:
    from moot.core.runs.start import StartRun
    from moot.core.state.run import Run

HANDLE = re.compile(r"host:[a-z0-9][a-z0-9._-]*")
#: the type of nodes that an agent carries out
AGENT_NODE = "moot.agent"
#: the source of a run that a caller started, and of one that another run started
BY_HAND, DISPATCHED = "run-api", "dispatch"
#: how many levels of a node's config are searched for handles
MAX_CONFIG_DEPTH = 8
#: flows whose handles are cached
CACHED_FLOWS = 512


def full_handle(name: str) -> str:
    """Return the handle for a bare name in a config."""
    return name if ":" in name or "." in name else f"host:{name}"


def node_handle(node: FlowNode) -> str | None:
    """Return the handle in the node's config, or else the agent pinned to it."""
    definition = node.definition
    if definition.type_id in (AGENT_NODE, SUPERVISOR):
        name = definition.config.get("agent")
        if isinstance(name, str) and name:
            return full_handle(name)
    return pinned_agent(definition)


def pinned_agent(definition: NodeDef) -> str | None:
    """Return the agent that a node's definition pins to it."""
    agent_id = definition.agent.get("agentId") if isinstance(definition.agent, dict) else None
    return agent_id if isinstance(agent_id, str) else None


@lru_cache(maxsize=CACHED_FLOWS)
def node_handles(flow: Flow) -> tuple[str, ...]:
    """Return the handles that carry out nodes of the flow, each once."""
    handles = {name: None for node in flow.nodes.values() if (name := node_handle(node))}
    return tuple(name for name in handles if HANDLE.fullmatch(name))


@lru_cache(maxsize=CACHED_FLOWS)
def all_handles(flow: Flow) -> tuple[str, ...]:
    """Return every handle in the flow, including workers in configs."""
    handles = dict.fromkeys(node_handles(flow))
    for node in flow.nodes.values():
        handles |= dict.fromkeys(_find_handles(node.definition.config, MAX_CONFIG_DEPTH))
    return tuple(handles)


def _find_handles(value: Any, levels: int) -> Iterator[str]:
    if isinstance(value, str):
        if HANDLE.fullmatch(value):
            yield value
    elif levels and isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else ():
            yield from _find_handles(name, 0)
        for item in value.values() if isinstance(value, dict) else value:
            yield from _find_handles(item, levels - 1)


def run_initiation(flow: Flow, command: "StartRun") -> Initiation | None:
    """Return the initiation to record at the start of a run, if any.

    A run that names exactly one member belongs to it. One that names several has none.
    """
    if command.initiation is not None:
        return command.initiation
    members = [command.members[name] for name in node_handles(flow) if name in command.members]
    if len(members) != 1:
        return None
    source = BY_HAND if command.parent_run is None else DISPATCHED
    return Initiation(source=source, member=members[0])


def node_agent(run: "Run", flow: Flow, node_id: str) -> dict[str, Any] | None:
    """Return the agent that a node's events name, if any.

    An agent node without a handle belongs to the member that the run belongs to.
    """
    pinned = flow.agents.get(node_id)
    if (not run.members and run.member is None) or node_id not in flow.nodes:
        return pinned
    node = flow.nodes[node_id]
    name = node_handle(node)
    member = run.members.get(name) if name else None
    if name is None and node.definition.type_id == AGENT_NODE:
        member = run.member
    return pinned if member is None else agent_from_member(member)


def budget_owners(run: "Run", name: str | None) -> tuple[str, ...]:
    """Return the members whose budgets may pay for ``name``: itself, then the run's member."""
    owners = [name] if name else []
    if run.member is not None and run.member.roster_id != name:
        owners.append(run.member.roster_id)
    return tuple(owners)


def agent_from_member(member: RunMember) -> dict[str, str]:
    """Return a member in the form that events use for an agent."""
    agent = {
        "agentId": member.roster_id,
        "name": member.persona,
        "sourceManifestId": member.manifest_id,
        "channel": member.channel,
        "version": member.version if member.channel is None else None,
    }
    return {name: value for name, value in agent.items() if value is not None}
