"""Who and what began a run that nobody started by hand: a standing agent, a trigger's delivery."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moot.core.events import Event, NewEvent, event_id

if TYPE_CHECKING:
    from moot.core.run import Run


class Member(Struct, frozen=True, kw_only=True):
    """A standing agent as it was when the run began, and the agent it is an instance of."""

    roster_id: str
    persona: str
    agent_id: str


class Delivered(Struct, frozen=True, kw_only=True):
    """The delivery that led to the run: its id is that of the event which says so."""

    delivery_id: str
    subscription: str
    key: str
    attempt: int = 1


class Initiation(Struct, frozen=True, kw_only=True):
    """``trigger`` is what came in, for the run's own nodes; it is the world's word, not ours."""

    source: str
    member: Member | None = None
    delivered: Delivered | None = None
    trigger: dict[str, Any] | None = None


def beginning(run_id: str, workflow_id: str, begun: Initiation) -> list[NewEvent]:
    """What stands right after the run's start. Ids and names only, nothing that came in."""
    said: list[NewEvent] = []
    delivered, member = begun.delivered, begun.member
    if member is not None:
        payload = {
            "rosterId": member.roster_id,
            "persona": member.persona,
            "agentId": member.agent_id,
            "workflowId": workflow_id,
            "triggerSource": begun.source,
        }
        if delivered is not None:
            payload["triggerSubscriptionId"] = delivered.subscription
        said.append(NewEvent("roster.run.initiated", payload))
    if delivered is not None:
        told = {
            "subscriptionId": delivered.subscription,
            "dedupKey": delivered.key,
            "attempt": delivered.attempt,
            "outcome": "delivered",
            "runId": run_id,
        }
        event_id = delivered.delivery_id
        said.append(NewEvent("trigger.delivery.attempted", told, event_id=event_id))
    return said


def id_at(run: "Run", sequence: int) -> str:
    """The id of the run's event of this number."""
    if run.delivery is not None and run.delivery[0] == sequence:
        return run.delivery[1]
    return event_id(run.run_id, sequence)


def _initiated(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    run.member = Member(
        roster_id=said["rosterId"], persona=said["persona"], agent_id=said["agentId"]
    )


def _delivered(run: "Run", event: Event, at: int) -> None:
    run.delivery = (event.sequence, event.event_id)


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    "roster.run.initiated": _initiated,
    "trigger.delivery.attempted": _delivered,
}
