"""A scene of work on another host, whose answers the story tells itself."""

from moot.core.children.decide import ChildWaits
from moot.core.commands import Command, PeerFound, PeerStopped
from moot.core.runs.child_outputs import ChildEnded
from moot.core.trace import parse_trace as trace_of
from moot.core.workflows.peer_ids import parse_origin
from moot.engine.peers.calls import Peer
from moot.engine.replay.fork import ForkRequest, fork_run
from tests.support.replay.story import ADA, TENANT, Story, edge, node, workflow

#: nobody listens there
NOWHERE = "http://127.0.0.1:1"
PARENT = 'run_far; host="moon"; url="https://moon.example/x"; cause=core.dispatch; depth=1; tree=9'


async def elsewhere(story: Story) -> None:
    """Three workers on another host: one waits and completes, one is lost, one loses the race."""
    story.host.peers.know([Peer("lab", NOWHERE, None)])
    plan = [
        {"kind": "next-worker", "nextWorkerIds": ["lab/a"]},
        {"kind": "next-worker", "nextWorkerIds": ["lab/b", "lab/c"]},
        {"kind": "terminate"},
    ]
    config = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "race"},
              "outputMapping": {"result": "out"}}  # fmt: skip
    nodes = [
        node("boss", "core.orchestrator.supervisor", config={"plan": plan}),
        node("hands", "core.dispatch", config=config),
        node("sub", "core.subWorkflow", config={"workflowId": "lab/d", "onChildFailure": "absorb"}),
    ]
    edges = [edge("boss", "hands"), edge("hands", "boss"), edge("hands", "sub")]
    known = [{"name": "result", "type": "string", "defaultValue": ""}]
    origin = parse_origin(PARENT)
    trace = trace_of("00-" + "1" * 32 + "-" + "2" * 16 + "-01", "a=1")
    run_id = await story.begin(
        workflow("elsewhere", nodes, edges, variables=known), origin=origin, trace=trace
    )
    await _found(story, run_id, "far_a")
    waits = ChildWaits(node_id="hands", child_run="far_a", workflow_id="lab/a",
                       status="waiting-input")  # fmt: skip
    await _take(story, run_id, waits)
    await _ended(story, run_id, "far_a", "completed", cause="far_a.7", cause_host="the-lab")
    await _found(story, run_id, "far_b")
    await _found(story, run_id, "far_c")
    await _ended(story, run_id, "far_b", "failed", stop=True)
    for name, each in list((await story.host.view(TENANT, run_id)).run.abroad.items()):
        if each.stop:
            await _take(story, run_id, PeerStopped(ask_id=name, outcome="stopped"))
    await _found(story, run_id, "far_d")
    await _ended(story, run_id, "far_d", "cancelled")
    await story.wait(run_id)


async def elsewhere_twice(story: Story) -> None:
    """A branch of a run whose child on another host lives has a child of its own there."""
    story.host.peers.know([Peer("lab", NOWHERE, None)])
    sub = node("sub", "core.subWorkflow", config={"workflowId": "lab/d"})
    source = await story.begin(workflow("elsewhere-twice", [sub], []))
    await _found(story, source, "far_d")
    place = (await story.host.view(TENANT, source)).run.next_sequence
    run = await fork_run(story.host, TENANT, source, ForkRequest(from_seq=place, by=ADA))
    await _found(story, run.run_id, "far_e")
    for name, child in ((source, "far_d"), (run.run_id, "far_e")):
        await _ended(story, name, child, "completed")
        await story.wait(name)


async def _take(story: Story, run_id: str, command: Command) -> None:
    await story.host.handle(TENANT, run_id, command)


async def _found(story: Story, run_id: str, child: str) -> None:
    run = (await story.host.view(TENANT, run_id)).run
    name = next(key for key, each in run.abroad.items() if each.child is None and not each.stop)
    found = PeerFound(ask_id=name, child_run=child, host_id="the-lab", at=story.now())
    await _take(story, run_id, found)


async def _ended(story: Story, run_id: str, child: str, status: str, **given: object) -> None:
    run = (await story.host.view(TENANT, run_id)).run
    node_id = next(each.node_id for each in run.abroad.values() if each.child == child)
    error = None if status == "completed" else {"code": "broken", "message": "It broke."}
    ended = ChildEnded(
        node_id=node_id, child_run=child, status=status, at=story.now(), error=error,
        variables={"out": f"of {child}"}, **given,  # type: ignore[arg-type]
    )  # fmt: skip
    await _take(story, run_id, ended)
