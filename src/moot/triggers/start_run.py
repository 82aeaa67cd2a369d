"""Start a run for a trigger: look it up, guard it, write it in one transaction."""

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import MemberVersion, RosterService
from moot.clock import Clock
from moot.core.errors import NotProvided
from moot.core.errors.triggers import MemberGone, MemberOffDuty, NotInPortfolio
from moot.core.runs import standing_agents
from moot.core.runs.start import StartRun, check_inputs
from moot.core.state.initiation import Initiation, RunMember, TriggerDelivery
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow
from moot.engine.agents.pins import AgentPins, PinnedAgents
from moot.engine.host import Host
from moot.store.protocol import Batch
from moot.store.records import Delivery, Guard, LedgerRow


class RunOrder(Struct, frozen=True, kw_only=True):
    """A request of a trigger to start a run."""

    tenant: str
    workflow_id: str
    source: str
    principal: str
    roster_id: str | None = None
    inputs: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    delivered: TriggerDelivery | None = None
    #: the inbound event; the run stores it as untrusted data
    trigger: dict[str, Any] | None = None
    hops: int = 0


class RunClaim(Struct, kw_only=True):
    """Rows to write in the transaction of the new run, or not at all. Deliveries without a run id
    get the id of the new run."""

    guards: list[Guard] = []
    ledgers: list[LedgerRow] = []
    deliveries: list[Delivery] = []
    #: rows that are not about this run
    others: list[Delivery] = []
    #: builds a ledger that names the run
    ledger_of: Callable[[Run], LedgerRow] | None = None
    #: tenants whose inbox loses notices by this run
    inboxes: list[str] = []


class RunStarter:
    """Starts runs for triggers and for members of the roster."""

    def __init__(
        self,
        host: Host,
        roster: RosterService,
        pins: AgentPins,
        clock: Clock,
        sources: Collection[str],
    ) -> None:
        """``sources`` may start portfolio workflows here, besides requests by hand."""
        self._host, self._roster, self._pins, self._clock = host, roster, pins, clock
        self._sources = sources

    async def start(self, order: RunOrder, claim: RunClaim | None = None) -> Run:
        """Start the run and write the claim with it.

        Raise MemberOffDuty or NotInPortfolio when the member may not do this work, and Overtaken
        when the member or the claimed rows have changed. Then there is no run."""
        flow, drawn = await self.drawn(order)
        command = StartRun(
            tenant=order.tenant,
            principal=order.principal,
            at=self._clock.millis(),
            limits=self._host.limits,
            inputs=order.inputs,
            configurable=order.configurable,
            tags=order.tags,
            metadata=order.metadata,
            versions=drawn.versions,
            members=drawn.members,
            initiation=Initiation(
                source=order.source,
                member=_responsible_member(order, flow, drawn),
                delivered=order.delivered,
                trigger=order.trigger,
                hops=order.hops,
            ),
        )

        def beside(run: Run, batch: Batch) -> None:
            batch.guards += drawn.guards
            if claim is not None:
                add_claim_to_batch(claim, run, batch)

        return await self._host.create(flow, command, beside=beside)

    async def drawn(self, order: RunOrder) -> tuple[Flow, PinnedAgents]:
        """Return the workflow and the members and versions that a start would use. Raise what a
        start would raise; start nothing."""
        member = await self._find_member(order)
        flow = await self._host.flows.newest(order.tenant, order.workflow_id)
        check_inputs(flow, order.inputs)
        return flow, await self._pins.drawn(order.tenant, flow, self._host.flows, member)

    async def rehearsed(self, order: RunOrder) -> RunMember:
        """Return the member that would do the work."""
        _, drawn = await self.drawn(order)
        return drawn.members[str(order.roster_id)]

    async def _find_member(self, order: RunOrder) -> MemberVersion | None:
        if order.roster_id is None:
            return None
        if order.source != standing_agents.BY_HAND and order.source not in self._sources:
            raise NotProvided(
                f"{order.source[:64]} fires no portfolio on this host.",
                capability="agents.roster.portfolioTriggerSources",
            )
        member = await self._roster.find(order.tenant, order.roster_id)
        if member is None:
            raise MemberGone(order.roster_id)
        if reason := member.hired.off_duty(self._clock.millis()):
            raise MemberOffDuty(order.roster_id, reason)
        if order.workflow_id not in member.entry.workflows:
            raise NotInPortfolio(order.roster_id, order.workflow_id, member.entry.workflows)
        return member


def _responsible_member(order: RunOrder, flow: Flow, drawn: PinnedAgents) -> RunMember | None:
    """Return the member the run is started for. Without one, return the only member that its nodes
    name, if the workflow is in the portfolio of that member."""
    if order.roster_id is not None:
        return drawn.members[order.roster_id]
    candidates = [name for name in standing_agents.node_handles(flow) if name in drawn.members]
    only = candidates[0] if len(candidates) == 1 else None
    if only is None or order.workflow_id not in drawn.portfolios.get(only, ()):
        return None
    return drawn.members[only]


def add_claim_to_batch(claim: RunClaim, run: Run, batch: Batch) -> None:
    batch.guards += claim.guards
    batch.inboxes += claim.inboxes
    batch.ledgers += claim.ledgers
    if claim.ledger_of is not None:
        batch.ledgers.append(claim.ledger_of(run))
    batch.deliveries += claim.others
    for delivery in claim.deliveries:
        batch.deliveries.append(
            replace(delivery, run_id=run.run_id) if delivery.run_id is None else delivery
        )
