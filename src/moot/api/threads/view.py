"""A thread as it is shown: who takes part, how it is steered, and where a led one stands."""

from typing import Any

import msgspec

from moot.core.conversations.decisions import Decision, read
from moot.core.councils.answer_loops import chain_limit
from moot.core.councils.next_step import step
from moot.core.events import event_id, iso
from moot.core.replay.origin import origin
from moot.core.state.conversation import THREAD, Conversation, thread_id, title_of, turns_said
from moot.core.state.floor import Floor
from moot.core.state.run import Run
from moot.core.state.tasks import Task
from moot.core.state.thread_controls import ThreadState, is_muted
from moot.core.threads.agent_bridge import handle


def shown(run: Run, talk: Conversation, at: int | None = None) -> dict[str, Any]:
    """As it is at a time (ms), which is that of the newest event unless told."""
    body: dict[str, Any] = {
        "threadId": thread_id(run, talk),
        "runId": run.run_id,
        "nodeId": talk.node_id,
        "title": title_of(run, talk),
        "open": talk.open,
        "turns": talk.turns,
        "turnCount": turns_said(run, talk),
        "lastSequence": talk.last_seq,
        "createdAt": iso(talk.opened_at * 1000),
        "createdBy": run.person,
        "updatedAt": iso(run.updated_at * 1000),
        "state": state_of(talk.state, run.updated_at if at is None else at),
    }
    if (decision := decided(run, talk)) is not None:
        body["decision"] = msgspec.to_builtins(decision)
    if (source := origin(run.forked_from)) is not None:
        body |= {"forkedFrom": source.source_run_id, "forkNote": source.note}
    if talk.tasks:
        body["tasks"] = [_task(run, place, task) for place, task in talk.tasks.items()]
    if talk.open and talk.asked:
        body["asked"] = [
            {"person": who, "turn": turn}
            for who, by in talk.asked.items()
            for turn, _ in by.values()
        ]
    links = {name: link for name, link in talk.links.items() if not link.back}
    if links:
        body["links"] = [
            {"threadId": name, "title": link.title, "open": link.open}
            for name, link in links.items()
        ]
    if back := [(name, link) for name, link in talk.links.items() if link.back]:
        body["linkedFrom"] = [{"threadId": name, "title": link.title} for name, link in back]
    if run.workflow_id == THREAD and "sideOf" in run.inputs:
        body["sideOf"] = run.inputs["sideOf"]
    if talk.roster is not None:
        body["participants"] = [{"agentId": name} for name in talk.roster]
    return body | _led(run, talk)


def _led(run: Run, talk: Conversation) -> dict[str, Any]:
    """Where a led one stands, and where agents that nobody leads were stopped."""
    if talk.floor is not None:
        at_rest = not talk.floor.wakes and step(talk, run.updated_at) is None
        return {"floor": {**floor_of(talk.floor), "atRest": at_rest}}
    limit = chain_limit(talk.chain)
    return {} if limit is None else {"stopped": limit}


def _task(run: Run, place: int, task: Task) -> dict[str, Any]:
    return {
        "id": event_id(run.run_id, place),
        "to": task.to,
        "from": task.by,
        "turn": task.turn,
        "since": iso(task.at * 1000),
    }


def decided(run: Run, talk: Conversation) -> Decision | None:
    """What it was closed with."""
    node = run.nodes.get(talk.node_id)
    outcome = node.outputs.get("outcome") if node is not None and node.outputs else None
    return None if talk.open else read(outcome)


def floor_of(floor: Floor) -> dict[str, Any]:
    """Who is next, how far it is, what it has cost."""
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


def bridge_state(run: Run, talk: Conversation, at: int) -> dict[str, Any]:
    """The same in the shapes, and under the handles, that programs for Agent Bridge know."""
    told = state_of(talk.state, at)
    tasks: dict[str, list[dict[str, Any]]] = {}
    for place, task in talk.tasks.items():
        row = {"id": event_id(run.run_id, place), "from": handle(task.by)}
        tasks.setdefault(handle(task.to), []).append({**row, "ts": iso(task.at * 1000)})
    for member in told["participants"]["invited"]:
        member["id"], member["invited_by"] = handle(member["id"]), handle(member["invited_by"])
    mentions = told.pop("allow_agent_mentions")
    until = told.pop("mutedUntil")
    return {
        **told,
        "muted": sorted(map(handle, told["muted"])),
        "muted_until": {handle(name): time for name, time in until.items()},
        "prodded": [handle(name) for name in told["prodded"]],
        "done": [handle(name) for name in told["done"]],
        "discussion": {"on": told["discussion"], "allow_agent_mentions": mentions},
        "invited_auto": {"on": told["invited_auto"]},
        "tasks": tasks,
        "mode": talk.floor.mode if talk.floor is not None else None,
        "open": talk.open,
    }


def state_of(state: ThreadState, at: int) -> dict[str, Any]:
    """The folded controls, as Agent Bridge writes them; a mute that is over is none."""
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
