"""Show a thread: participants, controls, floor, decision and forks."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.api.http.request import Request
from moot.api.views import copy_fields
from moot.core.conversations.closing_decision import CouncilDecision, read_decision
from moot.core.councils.limits import chain_limit
from moot.core.councils.next_speaker import next_step
from moot.core.events import event_id, iso
from moot.core.state.conversation import THREAD, Conversation, count_turns, current_title, thread_id
from moot.core.state.floor import Floor, current_mode
from moot.core.state.mutes import is_muted
from moot.core.state.participants import (
    joined_members,
    led_members,
    roster_names,
)
from moot.core.state.run import Run
from moot.core.state.tasks import ThreadTask
from moot.core.text.names import handle_from_name
from moot.store.protocol import RunFilter
from moot.wire import agent_bridge, councils, threads

#: Forks listed for one thread, and closed side threads whose forks are listed.
MOST_FORKS, MOST_SIDES = 20, 20


def thread_view(run: Run, conversation: Conversation, at: int | None = None) -> threads.ThreadView:
    """Return a thread as it is at a time (ms), by default that of the newest event."""
    source, decision = run.forked_from, closing_decision(run, conversation)
    floor = conversation.floor
    at_rest = floor is not None and not floor.wakes
    at_rest = at_rest and next_step(conversation, run.updated_at) is None
    return threads.ThreadView(
        thread_id=thread_id(run, conversation),
        run_id=run.run_id,
        node_id=conversation.node_id,
        title=current_title(run, conversation),
        open=conversation.open,
        turns=conversation.turns,
        turn_count=count_turns(run, conversation),
        last_sequence=conversation.last_seq,
        created_at=iso(conversation.opened_at * 1000),
        created_by=run.person,
        updated_at=iso(run.updated_at * 1000),
        state=state_view(conversation, run.updated_at if at is None else at),
        decision=msgspec.convert(
            decision, councils.CouncilDecisionView | None, from_attributes=True
        ),
        forked_from=None if source is None else source.source_run_id,
        fork_note=UNSET if source is None else source.note,
        tasks=[_task_view(run, place, task) for place, task in conversation.tasks.items()],
        asked=_asked_people(conversation),
        links=_side_threads(conversation),
        linked_from=[
            threads.LinkSource(thread_id=name, title=link.title)
            for name, link in conversation.links.items()
            if link.back
        ],
        side_of=run.inputs.get("sideOf") if run.workflow_id == THREAD else None,
        participants=_roster_view(conversation),
        floor=None if floor is None else floor_view(conversation, floor, at_rest),
        stopped=chain_limit(conversation.chain) if floor is None else None,
    )


def _asked_people(conversation: Conversation) -> list[threads.AskedPerson]:
    if not conversation.open:
        return []
    return [
        threads.AskedPerson(person=who, turn=turn)
        for who, by in conversation.asked.items()
        for turn, _ in by.values()
    ]


def _side_threads(conversation: Conversation) -> list[threads.ThreadLinkView]:
    return [
        threads.ThreadLinkView(thread_id=name, title=link.title, open=link.open)
        for name, link in conversation.links.items()
        if not link.back
    ]


def _roster_view(conversation: Conversation) -> Sequence[threads.ThreadParticipant]:
    names = roster_names(conversation)
    return () if names is None else [threads.ThreadParticipant(agent_id=name) for name in names]


def _task_view(run: Run, place: int, task: ThreadTask) -> threads.ThreadTaskView:
    id_, since = event_id(run.run_id, place), iso(task.at * 1000)
    return copy_fields(threads.ThreadTaskView, task, id=id_, sender=task.by, since=since)


def closing_decision(run: Run, conversation: Conversation) -> CouncilDecision | None:
    """Return the decision a closed conversation ended with."""
    node = run.nodes.get(conversation.node_id)
    outcome = node.outputs.get("outcome") if node is not None and node.outputs else None
    return None if conversation.open else read_decision(outcome)


def floor_view(conversation: Conversation, floor: Floor, at_rest: bool) -> councils.CouncilFloor:
    """Return the state of a council: speakers, rounds, costs, votes."""
    policy, members = floor.policy, led_members(conversation)
    return councils.CouncilFloor(
        mode=policy.mode,
        now=current_mode(conversation, floor),
        phase=floor.phase,
        round=min(floor.round, policy.rounds),
        rounds=policy.rounds,
        moderator=policy.moderator,
        members={name: dict(member.profile) for name, member in members.items()},
        outside=[name for name, member in members.items() if member.outside],
        speaking=[
            copy_fields(councils.SpeakingMember, wake, wake_id=wake_id, agent_id=wake.agent)
            for wake_id, wake in floor.wakes.items()
        ],
        stopped=floor.stopped,
        spent=msgspec.convert(msgspec.to_builtins(floor.spent), councils.CouncilSpending),
        limits=msgspec.convert(msgspec.to_builtins(policy.limits), councils.CouncilLimits),
        proposal=floor.proposal,
        votes={name: dict(vote) for name, vote in floor.votes.items()},
        held=[
            councils.HeldTurn(held=name, turn=msgspec.to_builtins(turn))
            for name, turn in floor.held.items()
        ],
        asks=[
            councils.ToolQuestion(ask_id=name, agent_id=ask.agent, tool_name=ask.tool)
            for name, ask in floor.asks.items()
            if ask.allowed is None
        ],
        at_rest=at_rest,
    )


def bridge_state(run: Run, conversation: Conversation, at: int) -> agent_bridge.BridgeControls:
    """Return the state in the shapes and handles of Agent Bridge."""
    state, floor = state_view(conversation, at), conversation.floor
    return agent_bridge.BridgeControls(
        paused=state.paused,
        muted=sorted(map(handle_from_name, state.muted)),
        muted_until={handle_from_name(name): time for name, time in state.muted_until.items()},
        prodded=[handle_from_name(name) for name in state.prodded],
        done=[handle_from_name(name) for name in state.done],
        ttl_until=state.ttl_until,
        discussion=agent_bridge.BridgeDiscussion(state.discussion, state.allow_agent_mentions),
        invited_auto=agent_bridge.BridgeSwitch(state.invited_auto),
        participants=agent_bridge.InvitedMembers(
            [_with_handles(each) for each in state.participants.invited]
        ),
        tasks=_bridge_tasks(run, conversation),
        mode=current_mode(conversation, floor) if floor is not None else None,
        open=conversation.open,
    )


def _with_handles(member: agent_bridge.InvitedMember) -> agent_bridge.InvitedMember:
    id_, invited_by = handle_from_name(member.id), handle_from_name(member.invited_by)
    return replace(member, id=id_, invited_by=invited_by)


def _bridge_tasks(run: Run, conversation: Conversation) -> dict[str, list[agent_bridge.BridgeTask]]:
    tasks: dict[str, list[agent_bridge.BridgeTask]] = {}
    for place, task in conversation.tasks.items():
        sender, at = handle_from_name(task.by), iso(task.at * 1000)
        row = agent_bridge.BridgeTask(event_id(run.run_id, place), sender, at)
        tasks.setdefault(handle_from_name(task.to), []).append(row)
    return tasks


def state_view(conversation: Conversation, at: int) -> threads.ThreadState:
    """Return the folded controls as Agent Bridge writes them, without expired mutes."""
    state = conversation.state
    muted = {name: state.muted[name] for name in sorted(state.muted) if is_muted(state, name, at)}
    members = [
        copy_fields(agent_bridge.InvitedMember, each, id=name, profile=dict(each.profile))
        for name, each in joined_members(conversation).items()
    ]
    return copy_fields(
        threads.ThreadState,
        state,
        muted=list(muted),
        muted_until={name: iso(until * 1000) for name, until in muted.items() if until},
        participants=agent_bridge.InvitedMembers(members),
    )


async def add_forks(request: Request, run: Run, view: threads.ThreadView) -> threads.ThreadView:
    """Return the view with the forks of the thread and of its closed side threads."""
    ended = [link.thread_id for link in view.links if not link.open][-MOST_SIDES:]
    links = [
        replace(link, goes_on_in=await _list_forks(request, link.thread_id))
        if link.thread_id in ended
        else link
        for link in view.links
    ]
    return replace(view, links=links, goes_on_in=await _list_forks(request, run.run_id))


async def _list_forks(request: Request, run_id: str) -> list[threads.ThreadFork]:
    """Return the forks, newest first."""
    store, where = request.store, RunFilter(fork_of=run_id)
    rows, _ = await store.list_runs(request.tenant, where, None, MOST_FORKS)
    return [threads.ThreadFork(thread_id=row.run_id, note=row.fork_note) for row in rows]
