"""Items of a queue as they are shown: where each has led, who was at it, what it has cost."""

from typing import Any

from moot.api.runs.snapshot import metrics
from moot.api.services import Services
from moot.api.triggers.subscriptions import delivery
from moot.core.errors import RunNotFound
from moot.core.events import decode, decode_head, iso
from moot.engine.host import Host
from moot.store.records import Delivery

STATES = frozenset({"waiting", "retrying", "delivered", "dead", "dropped"})
#: state -> what is said to who puts an item in
STATUS = {"delivered": "accepted", "waiting": "waiting", "retrying": "retrying", "dead": "dead",
          "dropped": "dropped"}  # fmt: skip
#: what counts as somebody's turn
TURNS = frozenset({"conversation.exchanged", "agent.invocation.completed"})
MOST_TURNS = 200
PAGE = 1000


def row(found: Delivery) -> dict[str, Any]:
    said = delivery(found)
    said["itemId"] = said.pop("deliveryId")
    return {**said, "subject": found.subject} if found.subject else said


async def whole(services: Services, found: Delivery) -> dict[str, Any]:
    """Also what it said, as long as that is kept and nothing of it is a secret of its workflow."""
    said, host = row(found), services.host
    content = await services.triggers.items.content(found)
    if content is not None:
        said["content"] = content
    if found.run_id is None:
        return said
    try:
        run = (await host.view(found.tenant, found.run_id)).run
    except RunNotFound:
        return said
    said["run"] = {
        "runId": run.run_id,
        "workflowId": run.workflow_id,
        "status": run.status.value,
        "startedAt": iso(run.started_at * 1000),
        "metrics": metrics(run),
    }
    if run.member is not None:
        member = run.member
        said["member"] = {
            "rosterId": member.roster_id,
            "persona": member.persona,
            "agentId": member.agent_id,
        }
    said["turns"] = await _turns(host, found.tenant, run.run_id)
    return said


async def _turns(host: Host, tenant: str, run_id: str) -> list[dict[str, Any]]:
    """The first of them, in order; ids and names, not what was said."""
    found: list[dict[str, Any]] = []
    after = -1
    while len(found) < MOST_TURNS and (rows := await host.store.read(tenant, run_id, after, PAGE)):
        after += len(rows)
        found += [_turn(each) for each in rows if decode_head(each).type in TURNS]
    return found[:MOST_TURNS]


def _turn(raw: bytes) -> dict[str, Any]:
    event = decode(raw)
    said = event.payload
    turn = said.get("turn")
    by = turn.get("speakerId") if isinstance(turn, dict) else said.get("agentId")
    shown = {"sequence": event.sequence, "type": event.type, "at": event.timestamp}
    return {**shown, "by": by} if isinstance(by, str) else shown
