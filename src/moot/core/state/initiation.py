"""The start of a run without a caller: its standing agent and its delivery."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, structs

from moot.core.events import Event, NewEvent, event_id, payload_fields
from moot.core.payloads.base import Payload
from moot.core.payloads.runs import DeliveryAttempted, RecordedMember, RunInitiated, RunStarted

if TYPE_CHECKING:
    from moot.core.state.run import Run

#: the sequence of a delivery that the start names and the log does not record yet
NOT_RECORDED = -1


class RunMember(Struct, frozen=True, kw_only=True):
    """A standing agent at the start of the run, with its agent in the version resolved then."""

    roster_id: str
    persona: str
    agent_id: str
    manifest_id: str | None = None
    version: str | None = None
    channel: str | None = None

    def recorded(self) -> RecordedMember:
        """Return the member as the start of a run records it beside its id."""
        return RecordedMember(
            agent_id=self.agent_id, persona=self.persona, manifest_id=self.manifest_id,
            version=self.version, channel=self.channel,
        )  # fmt: skip


class TriggerDelivery(Struct, frozen=True, kw_only=True):
    """The delivery that led to the run; its id is the id of the event that records it."""

    delivery_id: str
    subscription: str
    key: str
    attempt: int = 1


class Initiation(Struct, frozen=True, kw_only=True):
    """The cause of a run: ``trigger`` is the inbound content for its nodes and is untrusted."""

    source: str
    member: RunMember | None = None
    delivered: TriggerDelivery | None = None
    trigger: dict[str, Any] | None = None
    #: see ``moot.core.triggers.hops``
    hops: int = 0


def initiation_events(run_id: str, workflow_id: str, initiation: Initiation) -> list[NewEvent]:
    """Return the events after the run's start. They hold ids and names, no inbound content."""
    events: list[NewEvent] = []
    delivered, member = initiation.delivered, initiation.member
    if member is not None:
        initiated = RunInitiated(
            roster_id=member.roster_id,
            persona=member.persona,
            agent_id=member.agent_id,
            workflow_id=workflow_id,
            trigger_source=initiation.source,
            trigger_subscription_id=None if delivered is None else delivered.subscription,
        )
        events.append(NewEvent(initiated))
    if delivered is not None:
        attempted = DeliveryAttempted(
            subscription_id=delivered.subscription,
            dedup_key=delivered.key,
            attempt=delivered.attempt,
            outcome="delivered",
            run_id=run_id,
        )
        events.append(NewEvent(attempted, event_id=delivered.delivery_id))
    return events


def event_id_at(run: "Run", sequence: int) -> str:
    """Return the id of the run's event at this sequence."""
    if run.delivery is not None and run.delivery[0] == sequence:
        return run.delivery[1]
    return event_id(run.run_id, sequence)


def apply_initiation(run: "Run", payload: RunStarted, start: Event) -> None:
    """Apply the standing agents and the delivery that the run's start names."""
    run.delivery = _promised_delivery(payload, start)
    run.members = {
        name: RunMember(roster_id=name, **structs.asdict(member))
        for name, member in (payload.members or {}).items()
    }
    run.member = run.members.get(payload.member or "")


def _apply_run_initiated(run: "Run", payload: RunInitiated, event: Event, at: int) -> None:
    member = RunMember(
        roster_id=payload.roster_id, persona=payload.persona, agent_id=payload.agent_id
    )
    run.member = run.members.get(member.roster_id, member)


def _apply_delivery_attempted(
    run: "Run", payload: DeliveryAttempted, event: Event, at: int
) -> None:
    run.delivery = (event.sequence, event.event_id)


def _promised_delivery(payload: RunStarted, start: Event) -> tuple[int, str] | None:
    """Return the delivery that the start names as its cause; the log records it later."""
    other_causes = (payload.parent_run_id, payload.forked_from, payload.causation_host_id)
    if start.causation_id is UNSET or any(cause is not None for cause in other_causes):
        return None
    return (NOT_RECORDED, start.causation_id)


def next_event_id(run: "Run", event: Event) -> str:
    """Return the id that the run's next event must have."""
    if (
        event.type == DeliveryAttempted.event_type
        and run.delivery is not None
        and run.delivery[0] == NOT_RECORDED
    ):
        return run.delivery[1]
    return event_id(run.run_id, run.next_sequence)


def expected_initiation(run: "Run", event: Event) -> dict[str, Any] | None:
    """Return the payload that an initiation event must have here; None where none is allowed."""
    payload, is_inherited = payload_fields(event), run.inherited > 0
    if event.type == RunInitiated.event_type and run.next_sequence == 1:
        names = ("rosterId", "persona", "agentId", "triggerSource")
        expected = {name: str(payload.get(name)) for name in names}
        expected["workflowId"] = run.workflow_id
        subscription = payload.get("triggerSubscriptionId")
        return (
            expected
            if subscription is None
            else {**expected, "triggerSubscriptionId": str(subscription)}
        )
    if event.type == DeliveryAttempted.event_type and run.next_sequence in (1, 2):
        if not is_inherited and (run.delivery is None or run.delivery[0] != NOT_RECORDED):
            return None
        run_id = payload.get("runId") if is_inherited else run.run_id
        attempt = payload.get("attempt")
        return {
            "subscriptionId": str(payload.get("subscriptionId")),
            "dedupKey": str(payload.get("dedupKey")),
            "attempt": attempt if type(attempt) is int and attempt > 0 else 1,
            "outcome": "delivered",
            "runId": run_id,
        }
    return None


HANDLERS: dict[type[Payload], Callable[["Run", Any, Event, int], None]] = {
    RunInitiated: _apply_run_initiated,
    DeliveryAttempted: _apply_delivery_attempted,
}
