"""Show a thread: participants, controls, floor, decision and forks."""

from typing import Any

import msgspec

from moot.api.http.request import Request
from moot.core.conversations.closing_decision import CouncilDecision, read_decision
from moot.core.councils.answer_loops import chain_limit
from moot.core.councils.next_speaker import next_step
from moot.core.events import event_id, iso
from moot.core.replay.origin import fork_origin
from moot.core.state.conversation import THREAD, Conversation, thread_id
from moot.core.state.floor import Floor
from moot.core.state.mutes import is_muted
from moot.core.state.run import Run
from moot.core.state.tasks import ThreadTask
from moot.core.state.thread_controls import ThreadControls
from moot.core.state.titles import count_turns, current_title
from moot.core.threads.agent_bridge import handle_from_name
from moot.store.protocol import RunFilter

#: Forks listed for one thread, and closed side threads whose forks are listed.
MOST_FORKS, MOST_SIDES = 20, 20


def thread_view(run: Run, conversation: Conversation, at: int | None = None) -> dict[str, Any]:
    """Return a thread as it is at a time (ms), by default that of the newest event."""
    body: dict[str, Any] = {
        "threadId": thread_id(run, conversation),
        "runId": run.run_id,
        "nodeId": conversation.node_id,
        "title": current_title(run, conversation),
        "open": conversation.open,
        "turns": conversation.turns,
        "turnCount": count_turns(run, conversation),
        "lastSequence": conversation.last_seq,
        "createdAt": iso(conversation.opened_at * 1000),
        "createdBy": run.person,
        "updatedAt": iso(run.updated_at * 1000),
        "state": state_view(conversation.state, run.updated_at if at is None else at),
    }
    if (decision := closing_decision(run, conversation)) is not None:
        body["decision"] = msgspec.to_builtins(decision)
    if (source := fork_origin(run.forked_from)) is not None:
        body |= {"forkedFrom": source.source_run_id, "forkNote": source.note}
    if conversation.tasks:
        body["tasks"] = [_task_view(run, place, task) for place, task in conversation.tasks.items()]
    if conversation.open and conversation.asked:
        body["asked"] = [
            {"person": who, "turn": turn}
            for who, by in conversation.asked.items()
            for turn, _ in by.values()
        ]
    links = {name: link for name, link in conversation.links.items() if not link.back}
    if links:
        body["links"] = [
            {"threadId": name, "title": link.title, "open": link.open}
            for name, link in links.items()
        ]
    if back := [(name, link) for name, link in conversation.links.items() if link.back]:
        body["linkedFrom"] = [{"threadId": name, "title": link.title} for name, link in back]
    if run.workflow_id == THREAD and "sideOf" in run.inputs:
        body["sideOf"] = run.inputs["sideOf"]
    if conversation.roster is not None:
        body["participants"] = [{"agentId": name} for name in conversation.roster]
    return body | _floor_fields(run, conversation)


def _floor_fields(run: Run, conversation: Conversation) -> dict[str, Any]:
    """Return the floor of a council, or the limit that stopped agents in a thread."""
    if conversation.floor is not None:
        at_rest = not conversation.floor.wakes and next_step(conversation, run.updated_at) is None
        return {"floor": {**floor_view(conversation.floor), "atRest": at_rest}}
    limit = chain_limit(conversation.chain)
    return {} if limit is None else {"stopped": limit}


def _task_view(run: Run, place: int, task: ThreadTask) -> dict[str, Any]:
    return {
        "id": event_id(run.run_id, place),
        "to": task.to,
        "from": task.by,
        "turn": task.turn,
        "since": iso(task.at * 1000),
    }


def closing_decision(run: Run, conversation: Conversation) -> CouncilDecision | None:
    """Return the decision a closed conversation ended with."""
    node = run.nodes.get(conversation.node_id)
    outcome = node.outputs.get("outcome") if node is not None and node.outputs else None
    return None if conversation.open else read_decision(outcome)


def floor_view(floor: Floor) -> dict[str, Any]:
    """Return the state of a council: speakers, rounds, costs, votes."""
    return {
        "mode": floor.policy.mode,
        "now": floor.mode,
        "phase": floor.phase,
        "round": min(floor.round, floor.policy.rounds),
        "rounds": floor.policy.rounds,
        "moderator": floor.policy.moderator,
        "members": {name: member.profile for name, member in floor.members.items()},
        "outside": [name for name, member in floor.members.items() if member.outside],
        "speaking": [
            {
                "wakeId": wake_id,
                "agentId": wake.agent,
                "task": wake.task,
                "since": iso(wake.since * 1000),
            }
            for wake_id, wake in floor.wakes.items()
        ],
        "stopped": floor.stopped,
        "spent": msgspec.to_builtins(floor.spent),
        "limits": msgspec.to_builtins(floor.policy.limits),
        "proposal": floor.proposal,
        "votes": floor.votes,
        "held": [{"held": name, "turn": turn} for name, turn in floor.held.items()],
        "asks": [
            {"askId": name, "agentId": ask.agent, "toolName": ask.tool}
            for name, ask in floor.asks.items()
            if ask.allowed is None
        ],
    }


def bridge_state(run: Run, conversation: Conversation, at: int) -> dict[str, Any]:
    """Return the state in the shapes and handles of Agent Bridge."""
    state = state_view(conversation.state, at)
    tasks: dict[str, list[dict[str, Any]]] = {}
    for place, task in conversation.tasks.items():
        row = {"id": event_id(run.run_id, place), "from": handle_from_name(task.by)}
        tasks.setdefault(handle_from_name(task.to), []).append({**row, "ts": iso(task.at * 1000)})
    for member in state["participants"]["invited"]:
        member["id"], member["invited_by"] = (
            handle_from_name(member["id"]),
            handle_from_name(member["invited_by"]),
        )
    mentions = state.pop("allow_agent_mentions")
    until = state.pop("mutedUntil")
    return {
        **state,
        "muted": sorted(map(handle_from_name, state["muted"])),
        "muted_until": {handle_from_name(name): time for name, time in until.items()},
        "prodded": [handle_from_name(name) for name in state["prodded"]],
        "done": [handle_from_name(name) for name in state["done"]],
        "discussion": {"on": state["discussion"], "allow_agent_mentions": mentions},
        "invited_auto": {"on": state["invited_auto"]},
        "tasks": tasks,
        "mode": conversation.floor.mode if conversation.floor is not None else None,
        "open": conversation.open,
    }


def state_view(state: ThreadControls, at: int) -> dict[str, Any]:
    """Return the folded controls as Agent Bridge writes them, without expired mutes."""
    muted = {name: state.muted[name] for name in sorted(state.muted) if is_muted(state, name, at)}
    return {
        "paused": state.paused,
        "muted": list(muted),
        "mutedUntil": {name: iso(until * 1000) for name, until in muted.items() if until},
        "prodded": state.prodded,
        "done": state.done,
        "ttl_until": iso(state.ttl_until * 1000) if state.ttl_until is not None else None,
        "discussion": state.discussion,
        "allow_agent_mentions": state.allow_agent_mentions,
        "invited_auto": state.invited_auto,
        "participants": {
            "invited": [
                {
                    "id": name,
                    "profile": member.profile,
                    "invited_by": member.invited_by,
                    "invited_at": iso(member.invited_at * 1000),
                    "from_turn": member.from_turn,
                }
                for name, member in state.members.items()
            ]
        },
    }


async def add_forks(request: Request, run: Run, body: dict[str, Any]) -> dict[str, Any]:
    """Add to a thread's view the forks of it and of its closed side threads."""
    if forks := await _list_forks(request, run.run_id):
        body["goesOnIn"] = forks
    ended = [link for link in body.get("links", []) if not link["open"]]
    for link in ended[-MOST_SIDES:]:
        if forks := await _list_forks(request, link["threadId"]):
            link["goesOnIn"] = forks
    return body


async def _list_forks(request: Request, run_id: str) -> list[dict[str, Any]]:
    """Return the forks, newest first."""
    store, where = request.services.store, RunFilter(fork_of=run_id)
    rows, _ = await store.list_runs(request.caller.tenant, where, None, MOST_FORKS)
    return [{"threadId": row.run_id, "note": row.fork_note} for row in rows]
