"""Standing agents at the nodes of a workflow: who is named where, and whose run it is.

A handle (``host:NAME``) may mean a standing agent or just an agent. Which one it is was looked up
when the run began; what was found then is all that counts here.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from moot.core.state.initiation import Initiation, Member
from moot.core.workflows.definition import SUPERVISOR
from moot.core.workflows.graph import Flow, FlowNode

if TYPE_CHECKING:
    from moot.core.runs.start import StartRun
    from moot.core.state.run import Run

HANDLE = re.compile(r"host:[a-z0-9][a-z0-9._-]*")
#: nodes that an agent carries out, when somebody is named or the run is somebody's
WORK = "moot.agent"
#: where a run comes from that somebody asked for, and one that another run began
BY_HAND, DISPATCHED = "run-api", "dispatch"
#: levels of a node's config that are looked through for names
DEEPEST = 8


def whole(name: str) -> str:
    """What a bare name in a config means."""
    return name if ":" in name or "." in name else f"host:{name}"


def handle_of(node: FlowNode) -> str | None:
    """Whom a node names to carry it out: in its config, or else by its pin."""
    definition = node.definition
    if definition.type_id in (WORK, SUPERVISOR):
        name = definition.config.get("agent")
        if isinstance(name, str) and name:
            return whole(name)
    pin = definition.agent
    found = pin.get("agentId") if isinstance(pin, dict) else None
    return found if isinstance(found, str) else None


def own(flow: Flow) -> list[str]:
    """The handles that carry out nodes of the flow, each once."""
    found = {name: None for node in flow.nodes.values() if (name := handle_of(node))}
    return [name for name in found if HANDLE.fullmatch(name)]


def mentioned(flow: Flow) -> list[str]:
    """Every handle that the flow names anywhere: also workers that it may hand work to."""
    found = dict.fromkeys(own(flow))
    for node in flow.nodes.values():
        found |= dict.fromkeys(_within(node.definition.config, DEEPEST))
    return list(found)


def _within(value: Any, levels: int) -> Iterator[str]:
    if isinstance(value, str):
        if HANDLE.fullmatch(value):
            yield value
    elif levels and isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else ():
            yield from _within(name, 0)
        for item in value.values() if isinstance(value, dict) else value:
            yield from _within(item, levels - 1)


def whose(flow: Flow, command: "StartRun") -> Initiation | None:
    """What a run's beginning says of who began it. A run that names one member alone is that
    member's; one that names several says so node by node."""
    if command.initiation is not None:
        return command.initiation  # what began it knows whose it is
    members = [command.members[name] for name in own(flow) if name in command.members]
    if len(members) != 1:
        return None
    source = BY_HAND if command.parent_run is None else DISPATCHED
    return Initiation(source=source, member=members[0])


def worker(run: "Run", flow: Flow, node_id: str) -> dict[str, Any] | None:
    """The agent that a node's events name, if any: a member under its own name. A node for an
    agent that names nobody is work of whoever's run it is."""
    pinned = flow.agents.get(node_id)
    if (not run.members and run.member is None) or node_id not in flow.nodes:
        return pinned
    node = flow.nodes[node_id]
    name = handle_of(node)
    member = run.members.get(name) if name else None
    if name is None and node.definition.type_id == WORK:
        member = run.member
    return pinned if member is None else projected(member)


def payers(run: "Run", name: str | None) -> tuple[str, ...]:
    """Who may have to pay for what is done under a name, the nearest first: whoever does it, else
    whoever's run it is."""
    found = [name] if name else []
    if run.member is not None and run.member.roster_id != name:
        found.append(run.member.roster_id)
    return tuple(found)


def projected(member: Member) -> dict[str, Any]:
    """A member as events name an agent."""
    found = {"agentId": member.roster_id, "name": member.persona}
    if member.manifest_id is not None:
        found["sourceManifestId"] = member.manifest_id
    if member.channel is not None:
        found["channel"] = member.channel
    elif member.version is not None:
        found["version"] = member.version
    return found
