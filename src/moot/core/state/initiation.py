"""Who and what began a run that nobody started by hand: a standing agent, a trigger's delivery."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from moot.core.events import Event, NewEvent, event_id

if TYPE_CHECKING:
    from moot.core.state.run import Run

INITIATED = "roster.run.initiated"
DELIVERED = "trigger.delivery.attempted"
#: what tells that a run's cause is another run
ELSEWHERE = ("parentRunId", "forkedFrom", "causationHostId")
#: the place of a delivery that was named and not told of yet
UNTOLD = -1


class Member(Struct, frozen=True, kw_only=True):
    """A standing agent as it was when the run began, and the agent it is an instance of, in the
    version that was found then."""

    roster_id: str
    persona: str
    agent_id: str
    manifest_id: str | None = None
    version: str | None = None
    channel: str | None = None

    def told(self) -> dict[str, str]:
        """As a run's start tells it, beside its id."""
        said = {
            "agentId": self.agent_id,
            "persona": self.persona,
            "manifestId": self.manifest_id,
            "version": self.version,
            "channel": self.channel,
        }
        return {name: value for name, value in said.items() if value is not None}


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
    #: see ``moot.core.triggers.hops``
    hops: int = 0


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
        said.append(NewEvent(INITIATED, payload))
    if delivered is not None:
        attempted = {
            "subscriptionId": delivered.subscription,
            "dedupKey": delivered.key,
            "attempt": delivered.attempt,
            "outcome": "delivered",
            "runId": run_id,
        }
        said.append(NewEvent(DELIVERED, attempted, event_id=delivered.delivery_id))
    return said


def id_at(run: "Run", sequence: int) -> str:
    """The id of the run's event of this number."""
    if run.delivery is not None and run.delivery[0] == sequence:
        return run.delivery[1]
    return event_id(run.run_id, sequence)


def begun(run: "Run", start: Event) -> None:
    """Whom the run's start has found, the one whose run began it, and the delivery it promises."""
    said = start.payload
    run.delivery = promised(start)
    run.members = {
        str(name): Member(
            roster_id=str(name),
            persona=found["persona"],
            agent_id=found["agentId"],
            manifest_id=found.get("manifestId"),
            version=found.get("version"),
            channel=found.get("channel"),
        )
        for name, found in said.get("members", {}).items()
    }
    run.member = run.members.get(said.get("member", ""))


def _initiated(run: "Run", event: Event, at: int) -> None:
    said = event.payload
    told = Member(roster_id=said["rosterId"], persona=said["persona"], agent_id=said["agentId"])
    run.member = run.members.get(told.roster_id, told)


def _delivered(run: "Run", event: Event, at: int) -> None:
    run.delivery = (event.sequence, event.event_id)


def promised(start: Event) -> tuple[int, str] | None:
    """The delivery that a run's start names as its cause. It has yet to be told of."""
    given = start.payload
    if start.causation_id is UNSET or any(key in given for key in ELSEWHERE):
        return None
    return (UNTOLD, start.causation_id)


def own_id(run: "Run", event: Event) -> str:
    """The id that the run's next event must have."""
    if event.type == DELIVERED and run.delivery is not None and run.delivery[0] == UNTOLD:
        return run.delivery[1]
    return event_id(run.run_id, run.next_sequence)


def told(run: "Run", event: Event) -> dict[str, Any] | None:
    """What an event that says who or what began the run must say; None where none may stand."""
    said, inherited = event.payload, run.inherited > 0
    if event.type == INITIATED and run.next_sequence == 1:
        names = ("rosterId", "persona", "agentId", "triggerSource")
        expected = {name: str(said.get(name)) for name in names}
        expected["workflowId"] = run.workflow_id
        known = said.get("triggerSubscriptionId")
        return expected if known is None else {**expected, "triggerSubscriptionId": str(known)}
    if event.type == DELIVERED and run.next_sequence in (1, 2):
        if not inherited and (run.delivery is None or run.delivery[0] != UNTOLD):
            return None
        runs = said.get("runId") if inherited else run.run_id
        attempt = said.get("attempt")
        return {
            "subscriptionId": str(said.get("subscriptionId")),
            "dedupKey": str(said.get("dedupKey")),
            "attempt": attempt if type(attempt) is int and attempt > 0 else 1,
            "outcome": "delivered",
            "runId": runs,
        }
    return None


HANDLERS: dict[str, Callable[["Run", Event, int], None]] = {
    INITIATED: _initiated,
    DELIVERED: _delivered,
}
