"""Show a thread: participants, controls, floor, decision and forks."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from moot.api.http.request import Request
from moot.core.conversations.closing_decision import CouncilDecision, read_decision
from moot.core.councils.answer_loops import chain_limit
from moot.core.councils.next_speaker import next_step
from moot.core.events import event_id, iso
from moot.core.state.conversation import THREAD, Conversation, thread_id
from moot.core.state.floor import Floor, Invitation
from moot.core.state.mutes import is_muted
from moot.core.state.run import Run
from moot.core.state.tasks import ThreadTask
from moot.core.state.thread_controls import ThreadControls, ThreadMember
from moot.core.state.titles import count_turns, current_title
from moot.core.text.names import handle_from_name
from moot.store.protocol import RunFilter
from moot.wire.agent_bridge import (
    BridgeControls,
    BridgeDiscussion,
    BridgeSwitch,
    BridgeTask,
    InvitedMember,
    InvitedMembers,
)
from moot.wire.councils import (
    CouncilDecisionView,
    CouncilFloor,
    CouncilLimits,
    CouncilSpending,
    HeldTurn,
    SpeakingMember,
    ToolQuestion,
)
from moot.wire.threads import (
    AskedPerson,
    LinkSource,
    ThreadFork,
    ThreadLinkView,
    ThreadParticipant,
    ThreadState,
    ThreadTaskView,
    ThreadView,
)

#: Forks listed for one thread, and closed side threads whose forks are listed.
MOST_FORKS, MOST_SIDES = 20, 20


def thread_view(run: Run, conversation: Conversation, at: int | None = None) -> ThreadView:
    """Return a thread as it is at a time (ms), by default that of the newest event."""
    source, decision = run.forked_from, closing_decision(run, conversation)
    floor = conversation.floor
    return ThreadView(
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
        state=state_view(conversation.state, run.updated_at if at is None else at),
        decision=None if decision is None else _decision_view(decision),
        forked_from=None if source is None else source.source_run_id,
        fork_note=UNSET if source is None else source.note,
        tasks=[_task_view(run, place, task) for place, task in conversation.tasks.items()],
        asked=_asked_people(conversation),
        links=_side_threads(conversation),
        linked_from=[
            LinkSource(thread_id=name, title=link.title)
            for name, link in conversation.links.items()
            if link.back
        ],
        side_of=run.inputs.get("sideOf") if run.workflow_id == THREAD else None,
        participants=_roster_view(conversation.roster),
        floor=None if floor is None else floor_view(floor, _is_at_rest(run, conversation, floor)),
        stopped=chain_limit(conversation.chain) if floor is None else None,
    )


def _decision_view(decision: CouncilDecision) -> CouncilDecisionView:
    return msgspec.convert(msgspec.to_builtins(decision), CouncilDecisionView)


def _asked_people(conversation: Conversation) -> list[AskedPerson]:
    if not conversation.open:
        return []
    return [
        AskedPerson(person=who, turn=turn)
        for who, by in conversation.asked.items()
        for turn, _ in by.values()
    ]


def _side_threads(conversation: Conversation) -> list[ThreadLinkView]:
    return [
        ThreadLinkView(thread_id=name, title=link.title, open=link.open)
        for name, link in conversation.links.items()
        if not link.back
    ]


def _roster_view(roster: list[str] | None) -> Sequence[ThreadParticipant]:
    return () if roster is None else [ThreadParticipant(agent_id=name) for name in roster]


def _is_at_rest(run: Run, conversation: Conversation, floor: Floor) -> bool:
    return not floor.wakes and next_step(conversation, run.updated_at) is None


def _task_view(run: Run, place: int, task: ThreadTask) -> ThreadTaskView:
    return ThreadTaskView(
        id=event_id(run.run_id, place),
        to=task.to,
        sender=task.by,
        turn=task.turn,
        since=iso(task.at * 1000),
    )


def closing_decision(run: Run, conversation: Conversation) -> CouncilDecision | None:
    """Return the decision a closed conversation ended with."""
    node = run.nodes.get(conversation.node_id)
    outcome = node.outputs.get("outcome") if node is not None and node.outputs else None
    return None if conversation.open else read_decision(outcome)


def floor_view(floor: Floor, at_rest: bool) -> CouncilFloor:
    """Return the state of a council: speakers, rounds, costs, votes."""
    policy = floor.policy
    return CouncilFloor(
        mode=policy.mode,
        now=floor.mode,
        phase=floor.phase,
        round=min(floor.round, policy.rounds),
        rounds=policy.rounds,
        moderator=policy.moderator,
        members={name: member.profile for name, member in floor.members.items()},
        outside=[name for name, member in floor.members.items() if member.outside],
        speaking=[_speaking_member(wake_id, wake) for wake_id, wake in floor.wakes.items()],
        stopped=floor.stopped,
        spent=msgspec.convert(msgspec.to_builtins(floor.spent), CouncilSpending),
        limits=msgspec.convert(msgspec.to_builtins(policy.limits), CouncilLimits),
        proposal=floor.proposal,
        votes=floor.votes,
        held=[HeldTurn(held=name, turn=turn) for name, turn in floor.held.items()],
        asks=[
            ToolQuestion(ask_id=name, agent_id=ask.agent, tool_name=ask.tool)
            for name, ask in floor.asks.items()
            if ask.allowed is None
        ],
        at_rest=at_rest,
    )


def _speaking_member(wake_id: str, wake: Invitation) -> SpeakingMember:
    since = iso(wake.since * 1000)
    return SpeakingMember(wake_id=wake_id, agent_id=wake.agent, task=wake.task, since=since)


def bridge_state(run: Run, conversation: Conversation, at: int) -> BridgeControls:
    """Return the state in the shapes and handles of Agent Bridge."""
    state = state_view(conversation.state, at)
    return BridgeControls(
        paused=state.paused,
        muted=sorted(map(handle_from_name, state.muted)),
        muted_until={handle_from_name(name): time for name, time in state.muted_until.items()},
        prodded=[handle_from_name(name) for name in state.prodded],
        done=[handle_from_name(name) for name in state.done],
        ttl_until=state.ttl_until,
        discussion=BridgeDiscussion(state.discussion, state.allow_agent_mentions),
        invited_auto=BridgeSwitch(state.invited_auto),
        participants=InvitedMembers([_with_handles(each) for each in state.participants.invited]),
        tasks=_bridge_tasks(run, conversation),
        mode=conversation.floor.mode if conversation.floor is not None else None,
        open=conversation.open,
    )


def _with_handles(member: InvitedMember) -> InvitedMember:
    id_, invited_by = handle_from_name(member.id), handle_from_name(member.invited_by)
    return replace(member, id=id_, invited_by=invited_by)


def _bridge_tasks(run: Run, conversation: Conversation) -> dict[str, list[BridgeTask]]:
    tasks: dict[str, list[BridgeTask]] = {}
    for place, task in conversation.tasks.items():
        sender, at = handle_from_name(task.by), iso(task.at * 1000)
        row = BridgeTask(event_id(run.run_id, place), sender, at)
        tasks.setdefault(handle_from_name(task.to), []).append(row)
    return tasks


def state_view(state: ThreadControls, at: int) -> ThreadState:
    """Return the folded controls as Agent Bridge writes them, without expired mutes."""
    muted = {name: state.muted[name] for name in sorted(state.muted) if is_muted(state, name, at)}
    return ThreadState(
        paused=state.paused,
        muted=list(muted),
        muted_until={name: iso(until * 1000) for name, until in muted.items() if until},
        prodded=state.prodded,
        done=state.done,
        ttl_until=iso(state.ttl_until * 1000) if state.ttl_until is not None else None,
        discussion=state.discussion,
        allow_agent_mentions=state.allow_agent_mentions,
        invited_auto=state.invited_auto,
        participants=InvitedMembers(
            [_invited_member(name, member) for name, member in state.members.items()]
        ),
    )


def _invited_member(name: str, member: ThreadMember) -> InvitedMember:
    return InvitedMember(
        id=name,
        profile=member.profile,
        invited_by=member.invited_by,
        invited_at=iso(member.invited_at * 1000),
        from_turn=member.from_turn,
    )


async def add_forks(request: Request, run: Run, view: ThreadView) -> ThreadView:
    """Return the view with the forks of the thread and of its closed side threads."""
    ended = [link.thread_id for link in view.links if not link.open][-MOST_SIDES:]
    links = [
        replace(link, goes_on_in=await _list_forks(request, link.thread_id))
        if link.thread_id in ended
        else link
        for link in view.links
    ]
    return replace(view, links=links, goes_on_in=await _list_forks(request, run.run_id))


async def _list_forks(request: Request, run_id: str) -> list[ThreadFork]:
    """Return the forks, newest first."""
    store, where = request.services.store, RunFilter(fork_of=run_id)
    rows, _ = await store.list_runs(request.caller.tenant, where, None, MOST_FORKS)
    return [ThreadFork(thread_id=row.run_id, note=row.fork_note) for row in rows]
