"""Standing agents: every call there is, and the part of the client that makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from moot.client.http.methods import AsyncOf, Of, awaits, waits
from moot.client.http.operation import Again, Sent, given, operation, silent
from moot.wire import roster


@operation("GET /v1/agents/roster", roster.RosterEntries)
def entries() -> Sent:
    """The standing agents, as the protocol shows them."""
    return Sent()


@operation("GET /v1/agents/roster/{roster_id}", roster.RosterEntry)
def entry(roster_id: str) -> Sent:
    """One of them."""
    return Sent(roster_id)


@operation("GET /v1/host/moot/roster", roster.Members)
def members() -> Sent:
    """The standing agents: who is on duty, what is left to them."""
    return Sent()


@operation("GET /v1/host/moot/roster/{roster_id}", roster.Member)
def member(roster_id: str) -> Sent:
    """One of them, and who did what with it."""
    return Sent(roster_id)


@operation("GET /v1/host/moot/roster/{roster_id}/work", roster.MemberWork)
def work(roster_id: str) -> Sent:
    """What wakes it, how it went lately, what it asks; also of one that was let go."""
    return Sent(roster_id)


@operation("POST /v1/host/moot/roster", roster.Member, Again.ONCE)
def hire(  # noqa: PLR0913 - each is a field of the entry
    persona: str, agent: str, *, roster_id: str | None = None, workflows: Sequence[str] = (),
    version: str | None = None, channel: str | None = None, label: str | None = None,
    description: str | None = None, budget: Mapping[str, Any] | None = None,
    enabled: bool | None = None,
) -> Sent:  # fmt: skip
    """Take somebody on, as an instance of an agent: in a version, by a channel, or as it is."""
    ref = {"agentId": agent, **given(version=version, channel=channel)}
    more = given(
        rosterId=roster_id, workflows=list(workflows) or None, label=label,
        description=description, budget=dict(budget) if budget else None, enabled=enabled,
    )  # fmt: skip
    return Sent(body={"persona": persona, "agentRef": ref, **more})


@operation("PATCH /v1/host/moot/roster/{roster_id}", roster.Member)
def change(roster_id: str, fields: Mapping[str, Any]) -> Sent:
    """Change what the mapping names: persona, agentRef, workflows, enabled, label, description,
    budget."""
    return Sent(roster_id, body=dict(fields))


@silent("DELETE /v1/host/moot/roster/{roster_id}")
def dismiss(roster_id: str) -> Sent:
    """Let it go; what it did stays its own, what woke it rests."""
    return Sent(roster_id)


@operation("GET /v1/host/moot/roster/{roster_id}/history", roster.MemberHistory)
def history(roster_id: str) -> Sent:
    """Who did what with it; also with one that was let go."""
    return Sent(roster_id)


@operation("POST /v1/host/moot/roster/{roster_id}/pause", roster.Member)
def pause(
    roster_id: str, *, reason: str | None = None, until: str | None = None, stop: bool = False
) -> Sent:
    """Start nothing more for it; ``stop`` cancels what is under way, too."""
    return Sent(roster_id, body={"stop": stop, **given(reason=reason, until=until)})


@operation("POST /v1/host/moot/roster/{roster_id}/resume", roster.Member)
def resume(roster_id: str) -> Sent:
    """On duty again."""
    return Sent(roster_id, body={})


@operation("POST /v1/host/moot/roster/{roster_id}/run", roster.MemberRun, Again.ONCE)
def run(
    roster_id: str, workflow_id: str, *, inputs: Mapping[str, Any] | None = None,
    item: str | None = None, dry_run: bool = False,
) -> Sent:  # fmt: skip
    """Start one of its workflows now, or only see what would be started."""
    more = given(inputs=dict(inputs) if inputs else None, item=item, dryRun=dry_run or None)
    return Sent(roster_id, body={"workflowId": workflow_id, **more})


class Roster(Of):
    entries = waits(entries)
    entry = waits(entry)
    list = waits(members)
    get = waits(member)
    work = waits(work)
    hire = waits(hire)
    change = waits(change)
    dismiss = waits(dismiss)
    history = waits(history)
    pause = waits(pause)
    resume = waits(resume)
    run = waits(run)


class AsyncRoster(AsyncOf):
    entries = awaits(entries)
    entry = awaits(entry)
    list = awaits(members)
    get = awaits(member)
    work = awaits(work)
    hire = awaits(hire)
    change = awaits(change)
    dismiss = awaits(dismiss)
    history = awaits(history)
    pause = awaits(pause)
    resume = awaits(resume)
    run = awaits(run)
