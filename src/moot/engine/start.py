"""Start runs: the one way from a request to the first events on disk."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moot.agents.roster.members import MemberVersion
from moot.core.conversations.participants import check_roster
from moot.core.errors.triggers import MemberOffDuty, NotInPortfolio
from moot.core.events import ENGINE_VERSION
from moot.core.payloads.runs import PeerOrigin
from moot.core.runs import standing_agents
from moot.core.runs.start import StartRun, check_inputs
from moot.core.state.initiation import Initiation, RunMember, TriggerDelivery
from moot.core.state.run import Run
from moot.core.trace import Trace
from moot.core.workflows.flow import Flow
from moot.engine.agents.pins import AgentPins, PinnedAgents
from moot.engine.host import Host
from moot.engine.nodes import conversation_gate
from moot.engine.transaction import BatchHook, ReceiptFor
from moot.store.protocol import Batch


class RunOrder(Struct, frozen=True, kw_only=True):
    """The run that a caller or a trigger asks for."""

    tenant: str
    principal: str
    workflow_id: str
    #: the workflow, when the caller has loaded it; else the newest one with the id runs
    flow: Flow | None = None
    #: the person that the key names, if any
    person: str = "user"
    inputs: dict[str, Any] = {}
    #: refuse a conversation whose roster cannot work before the run exists
    checks_rosters: bool = False
    configurable: dict[str, Any] = {}
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    scope_id: str | None = None
    #: refuse a second run of the scope
    dedup: bool = False
    callback_url: str | None = None
    engine_version: int = ENGINE_VERSION
    #: the caller's trace, the run on another host that it acts for, and the share of that run
    trace: Trace | None = None
    origin: PeerOrigin | None = None
    cause: str | None = None
    cause_host: str | None = None
    depth: int = 0
    tree: int | None = None
    #: the kind of trigger, or a start by hand for a member; None for a plain request
    source: str | None = None
    #: the standing agent that the run is for
    roster_id: str | None = None
    delivered: TriggerDelivery | None = None
    #: the inbound event; the run stores it as untrusted data
    trigger: dict[str, Any] | None = None
    hops: int = 0


async def start_run(
    host: Host,
    order: RunOrder,
    pins: AgentPins | None = None,
    member: MemberVersion | None = None,
    receipt: ReceiptFor | None = None,
    beside: BatchHook | None = None,
) -> Run:
    """Start the run and return when its first events are on disk.

    ``member`` is the standing agent that ``order`` names, and ``pins`` finds the agents of the
    nodes; the host's own workflows have none. Raise Overtaken when an agent of the run has changed
    meanwhile.
    """
    flow, pinned = await prepare_run(host, order, pins, member)

    def add_guards(run: Run, batch: Batch) -> None:
        batch.guards += pinned.guards
        if beside is not None:
            beside(run, batch)

    command = start_command(host, order, flow, pinned)
    return await host.create(flow, command, receipt, order.dedup, add_guards)


async def prepare_run(
    host: Host, order: RunOrder, pins: AgentPins | None = None, member: MemberVersion | None = None
) -> tuple[Flow, PinnedAgents]:
    """Return the workflow and the agents that a start would use.

    Raise what a start would raise; start nothing.
    """
    flow = order.flow or await host.flows.newest(order.tenant, order.workflow_id)
    check_inputs(flow, order.inputs)
    if order.checks_rosters:
        check_rosters(flow, order.inputs)
    if pins is None:
        return flow, PinnedAgents()
    return flow, await pins.drawn(order.tenant, flow, host.flows, member)


def start_command(host: Host, order: RunOrder, flow: Flow, pinned: PinnedAgents) -> StartRun:
    return StartRun(
        tenant=order.tenant,
        principal=order.principal,
        person=order.person,
        at=host.clock.millis(),
        limits=host.limits,
        inputs=order.inputs,
        configurable=order.configurable,
        tags=order.tags,
        metadata=order.metadata,
        scope_id=order.scope_id,
        callback_url=order.callback_url,
        engine_version=order.engine_version,
        trace=order.trace,
        origin=order.origin,
        cause=order.cause,
        cause_host=order.cause_host,
        depth=order.depth,
        tree=order.tree,
        versions=pinned.versions,
        members=pinned.members,
        initiation=_initiation(order, flow, pinned),
    )


def check_rosters(flow: Flow, inputs: Mapping[str, Any]) -> None:
    """Raise when a conversation's roster cannot work, before a run exists."""
    for node in flow.nodes.values():
        if node.type.type_id == conversation_gate.TYPE.type_id:
            roster = node.definition.config.get("participants", inputs.get("participants"))
            if roster is not None:
                check_roster(roster)


def check_member(member: MemberVersion, workflow_id: str | None, now: int) -> None:
    """Raise MemberOffDuty or NotInPortfolio when the member may not do this work."""
    roster_id, portfolio = member.entry.roster_id, member.entry.workflows
    if reason := member.hired.off_duty(now):
        raise MemberOffDuty(roster_id, reason)
    if workflow_id is not None and workflow_id not in portfolio:
        raise NotInPortfolio(roster_id, workflow_id, portfolio)


def _initiation(order: RunOrder, flow: Flow, pinned: PinnedAgents) -> Initiation | None:
    if order.source is None:
        return None
    return Initiation(
        source=order.source,
        member=_responsible_member(order, flow, pinned),
        delivered=order.delivered,
        trigger=order.trigger,
        hops=order.hops,
    )


def _responsible_member(order: RunOrder, flow: Flow, pinned: PinnedAgents) -> RunMember | None:
    """Return the member the run is started for.

    Without one, return the only member that its nodes name, if the workflow is in the portfolio of
    that member.
    """
    if order.roster_id is not None:
        return pinned.members[order.roster_id]
    candidates = [name for name in standing_agents.node_handles(flow) if name in pinned.members]
    only = candidates[0] if len(candidates) == 1 else None
    if only is None or order.workflow_id not in pinned.portfolios.get(only, ()):
        return None
    return pinned.members[only]
