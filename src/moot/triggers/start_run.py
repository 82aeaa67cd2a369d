"""Start a run for a trigger: look it up, guard it, write it in one transaction."""

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import MemberVersion, RosterService
from moot.clock import Clock
from moot.core.errors import NotProvided
from moot.core.errors.triggers import MemberGone
from moot.core.runs import standing_agents
from moot.core.state.initiation import RunMember
from moot.core.state.run import Run
from moot.core.workflows.flow import Flow
from moot.engine.host import Host
from moot.engine.start import (
    AgentPins,
    PinnedAgents,
    RunOrder,
    check_member,
    prepare_run,
    start_run,
)
from moot.store.protocol import Batch
from moot.store.records import Delivery, Guard, LedgerRow


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
        member = await self._find_member(order)

        def beside(run: Run, batch: Batch) -> None:
            if claim is not None:
                add_claim_to_batch(claim, run, batch)

        return await start_run(self._host, order, self._pins, member, beside=beside)

    async def drawn(self, order: RunOrder) -> tuple[Flow, PinnedAgents]:
        """Return the workflow and the members and versions that a start would use. Raise what a
        start would raise; start nothing."""
        member = await self._find_member(order)
        return await prepare_run(self._host, order, self._pins, member)

    async def rehearsed(self, order: RunOrder) -> RunMember:
        """Return the member that would do the work."""
        _, drawn = await self.drawn(order)
        return drawn.members[str(order.roster_id)]

    async def _find_member(self, order: RunOrder) -> MemberVersion | None:
        if order.roster_id is None:
            return None
        source = order.source or ""
        if source != standing_agents.BY_HAND and source not in self._sources:
            message = f"{source[:64]} fires no portfolio on this host."
            raise NotProvided(message, capability="agents.roster.portfolioTriggerSources")
        member = await self._roster.find(order.tenant, order.roster_id)
        if member is None:
            raise MemberGone(order.roster_id)
        check_member(member, order.workflow_id, self._clock.millis())
        return member


def add_claim_to_batch(claim: RunClaim, run: Run, batch: Batch) -> None:
    batch.guards += claim.guards
    batch.inboxes += claim.inboxes
    batch.ledgers += claim.ledgers
    if claim.ledger_of is not None:
        batch.ledgers.append(claim.ledger_of(run))
    batch.deliveries += claim.others
    batch.deliveries += [
        replace(each, run_id=each.run_id or run.run_id) for each in claim.deliveries
    ]
