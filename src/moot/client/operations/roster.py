"""Standing agents: their operations, and their resource of the client."""

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from moot.client.http.methods import Resource, S, client_method
from moot.client.http.operation import RequestParts, Retry, operation
from moot.wire import roster


@operation("GET /v1/agents/roster", roster.RosterEntryList)
def list_roster_entries() -> RequestParts:
    """List the standing agents in the form of the protocol."""
    return RequestParts()


@operation("GET /v1/agents/roster/{roster_id}", roster.RosterEntry)
def get_roster_entry(roster_id: str) -> RequestParts:
    """Get a standing agent in the form of the protocol."""
    return RequestParts(roster_id)


@operation("GET /v1/host/moot/roster", roster.MemberList)
def list_members() -> RequestParts:
    """List the standing agents with their status and budget."""
    return RequestParts()


@operation("GET /v1/host/moot/roster/{roster_id}", roster.MemberDetail)
def get_member(roster_id: str) -> RequestParts:
    """Get a standing agent and the history of its changes."""
    return RequestParts(roster_id)


@operation("GET /v1/host/moot/roster/{roster_id}/work", roster.MemberWork)
def get_member_work(roster_id: str) -> RequestParts:
    """Get an agent's triggers, recent runs and open questions, even after its dismissal."""
    return RequestParts(roster_id)


@operation("POST /v1/host/moot/roster", roster.HiredMember, Retry.ONCE)
def hire_member(  # noqa: PLR0913 - each is a field of the entry
    persona: str, agent: str, *, roster_id: str | None = None, workflows: Sequence[str] = (),
    version: str | None = None, channel: str | None = None, label: str | None = None,
    description: str | None = None, budget: roster.MemberBudget | None = None,
    enabled: bool = True,
) -> RequestParts:  # fmt: skip
    """Hire an agent as a standing agent: in a version, by a channel, or in its newest form."""
    body = roster.HireMember(
        persona=persona, roster_id=roster_id, workflows=list(workflows), label=label,
        agent_ref=roster.MemberAgentRef(agent_id=agent, version=version, channel=channel),
        description=description, budget=budget, enabled=enabled,
    )  # fmt: skip
    return RequestParts(body=body)


@operation("PATCH /v1/host/moot/roster/{roster_id}", roster.ChangedMember)
def change_member(roster_id: str, fields: Mapping[str, Any]) -> RequestParts:
    """Change fields: persona, agentRef, workflows, enabled, label, description or budget."""
    return RequestParts(roster_id, body=dict(fields))


@operation("DELETE /v1/host/moot/roster/{roster_id}", NoneType)
def dismiss_member(roster_id: str) -> RequestParts:
    """Dismiss a standing agent. Its past work stays, and its triggers pause."""
    return RequestParts(roster_id)


@operation("GET /v1/host/moot/roster/{roster_id}/history", roster.MemberHistory)
def list_member_history(roster_id: str) -> RequestParts:
    """List the changes of a standing agent, even after its dismissal."""
    return RequestParts(roster_id)


@operation("POST /v1/host/moot/roster/{roster_id}/pause", roster.PausedMember)
def pause_member(
    roster_id: str, *, reason: str | None = None, until: str | None = None, stop: bool = False
) -> RequestParts:
    """Start no more runs for the agent; ``stop`` cancels its current runs, too."""
    return RequestParts(
        roster_id, body=roster.PauseMember(reason=reason or "", until=until, stop=stop)
    )


@operation("POST /v1/host/moot/roster/{roster_id}/resume", roster.MemberView)
def resume_member(roster_id: str) -> RequestParts:
    """Put the agent on duty again."""
    return RequestParts(roster_id, body={})


@operation("POST /v1/host/moot/roster/{roster_id}/run", roster.MemberRun, Retry.ONCE)
def run_member_workflow(
    roster_id: str, workflow_id: str, *, inputs: Mapping[str, Any] | None = None,
    item: str | None = None, dry_run: bool = False,
) -> RequestParts:  # fmt: skip
    """Start one of its workflows now, or with ``dry_run`` only see what would start."""
    body = roster.RunMemberWorkflow(
        workflow_id=workflow_id, inputs=dict(inputs or {}), item=item, dry_run=dry_run
    )
    return RequestParts(roster_id, body=body)


class RosterResource(Resource[S]):
    """All standing agents."""

    entries = client_method(list_roster_entries)
    entry = client_method(get_roster_entry)
    list = client_method(list_members)
    get = client_method(get_member)
    work = client_method(get_member_work)
    hire = client_method(hire_member)
    change = client_method(change_member)
    dismiss = client_method(dismiss_member)
    history = client_method(list_member_history)
    pause = client_method(pause_member)
    resume = client_method(resume_member)
    run = client_method(run_member_workflow)
