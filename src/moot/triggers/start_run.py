"""The one way in which a trigger starts a run: looked up, guarded, written in one transaction."""

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from moot.agents.roster.members import Roster, Seat
from moot.clock import Clock
from moot.core.errors import NotProvided
from moot.core.errors.triggers import MemberGone, MemberOffDuty, NotInPortfolio
from moot.core.runs import handles
from moot.core.runs.start import StartRun, check_inputs
from moot.core.state.initiation import Delivered, Initiation, Member
from moot.core.state.run import Run
from moot.core.workflows.graph import Flow
from moot.engine.agents.pins import Drawn, Pins
from moot.engine.host import Host
from moot.store.protocol import Batch, Guard
from moot.store.records import Delivery, Ledger


class Order(Struct, frozen=True, kw_only=True):
    """A run that something asks for."""

    tenant: str
    workflow_id: str
    source: str
    principal: str
    roster_id: str | None = None
    inputs: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    delivered: Delivered | None = None
    #: what came in; the run keeps it as data, and nothing in it is believed
    trigger: dict[str, Any] | None = None
    hops: int = 0


class Claim(Struct, kw_only=True):
    """What goes to disk with the run or not at all. The run's id is filled in for deliveries that
    name none."""

    guards: list[Guard] = []
    ledgers: list[Ledger] = []
    deliveries: list[Delivery] = []
    #: rows that are not about this run
    others: list[Delivery] = []
    #: a ledger that names the run
    ledger_of: Callable[[Run], Ledger] | None = None
    #: tenants whose inbox has fewer notices with it
    inboxes: list[str] = []


class Firing:
    def __init__(
        self, host: Host, roster: Roster, pins: Pins, clock: Clock, sources: Collection[str]
    ) -> None:
        """``sources``: what may fire a portfolio here, besides whoever asks for it by hand."""
        self._host, self._roster, self._pins, self._clock = host, roster, pins, clock
        self._sources = sources

    async def start(self, order: Order, claim: Claim | None = None) -> Run:
        """Raises MemberOffDuty or NotInPortfolio when its member may not do it, Overtaken when the
        member or what is claimed has changed meanwhile; then there is no run."""
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
                member=_whose(order, flow, drawn),
                delivered=order.delivered,
                trigger=order.trigger,
                hops=order.hops,
            ),
        )

        def beside(run: Run, batch: Batch) -> None:
            batch.guards += drawn.guards
            if claim is not None:
                write(claim, run, batch)

        return await self._host.create(flow, command, beside=beside)

    async def drawn(self, order: Order) -> tuple[Flow, Drawn]:
        """What would be started, and who would do it in which version. Raises what a start would;
        starts nothing."""
        seat = await self._seat(order)
        flow = await self._host.flows.newest(order.tenant, order.workflow_id)
        check_inputs(flow, order.inputs)
        return flow, await self._pins.drawn(order.tenant, flow, self._host.flows, seat)

    async def rehearsed(self, order: Order) -> Member:
        """Whose work it would be."""
        _, drawn = await self.drawn(order)
        return drawn.members[str(order.roster_id)]

    async def _seat(self, order: Order) -> Seat | None:
        if order.roster_id is None:
            return None
        if order.source != handles.BY_HAND and order.source not in self._sources:
            raise NotProvided(
                f"{order.source[:64]} fires no portfolio on this host.",
                capability="agents.roster.portfolioTriggerSources",
            )
        seat = await self._roster.find(order.tenant, order.roster_id)
        if seat is None:
            raise MemberGone(order.roster_id)
        if reason := seat.hired.off_duty(self._clock.millis()):
            raise MemberOffDuty(order.roster_id, reason)
        if order.workflow_id not in seat.entry.workflows:
            raise NotInPortfolio(order.roster_id, order.workflow_id, seat.entry.workflows)
        return seat


def _whose(order: Order, flow: Flow, drawn: Drawn) -> Member | None:
    """The member it is started for; else the only one that its nodes name, if the workflow is of
    that one's portfolio."""
    if order.roster_id is not None:
        return drawn.members[order.roster_id]
    named = [name for name in handles.own(flow) if name in drawn.members]
    sole = named[0] if len(named) == 1 else None
    if sole is None or order.workflow_id not in drawn.portfolios.get(sole, ()):
        return None
    return drawn.members[sole]


def write(claim: Claim, run: Run, batch: Batch) -> None:
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
