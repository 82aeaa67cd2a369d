"""Scenes of waiting: approvals, questions, councils, a child that asks, a pause."""

from typing import Any

from moot.core.commands import CancelRun, PauseRun, ResumeRun
from moot.core.replay.edits import HistoryEdit
from moot.engine.replay.fork import ForkRequest, fork_run
from tests.support.replay.story import ADA, BOT, CHAIR, TENANT, Story, chain, edge, node, workflow


def gate(name: str, type_: str, **config: Any) -> dict[str, Any]:
    return node(name, f"core.{type_}", config=config)


async def approvals(story: Story) -> None:
    """A question and a quorum of two, an edit, a rejection that an edge takes."""
    nodes = [
        gate("both", "approvalGate", title="Publish", requiredApprovals=2,
             rejectionPolicy="majority", actions=["accept", "reject", "ask"], timeoutMs=60_000),
        gate("text", "approvalGate", actions=["accept", "edit", "refine"]),
        gate("last", "approvalGate", approversList=["user:ada"]),
        node("undo"),
    ]  # fmt: skip
    edges = [
        edge("both", "text"), edge("text", "last"), edge("last", "undo", sourceOutput="reject")
    ]  # fmt: skip
    run_id = await story.begin(workflow("approvals", nodes, edges))
    await story.answer(run_id, "both", {"action": "ask", "question": "Who reads it?"}, ADA)
    await story.answer(run_id, "both", {"action": "reject", "comment": "too early"}, ADA)
    await story.answer(run_id, "both", {"action": "accept", "voter": "user:bob"})
    story.clock.pass_time(1000)
    await story.answer(run_id, "both", {"decision": "approved"}, ADA)
    await story.answer(run_id, "text", {"action": "edit", "editedArtifactData": {"a": 1}}, ADA)
    value = {"action": "reject", "comment": "no", "override": True, "reason": "ada is away"}
    await story.answer(run_id, "last", value)
    await story.wait(run_id)


async def questions(story: Story) -> None:
    """A clarification, an external event, a question of its own kind, one nobody answers."""
    asked = [{"id": "q1", "question": "Colour?"}, {"id": "q2", "question": "How many?"}]
    event = {"eventType": "paid", "correlation": {"orderId": 7}}
    nodes = [
        gate("ask", "clarificationGate", questions=asked),
        gate("paid", "interrupt", kind="external-event", data=event),
        gate("own", "interrupt", kind="custom", data={"customKind": "sign"},
             profile="openwop-interrupt-auth-required"),
        gate("late", "clarificationGate", questions=asked, timeoutMs=1000, onTimeout="complete"),
    ]  # fmt: skip
    run_id = await story.begin(chain("questions", *nodes))
    answers = [{"id": "q1", "answer": "blue"}, {"id": "q2", "answer": 2}]
    await story.answer(run_id, "ask", {"answers": answers}, ADA)
    story.clock.pass_time(86_400_000)
    await story.answer(run_id, "paid", {"orderId": 7, "amount": 42}, BOT)
    await story.answer(run_id, "own", ["signed"], ADA)
    await story.wait(run_id, 400)


async def council(story: Story) -> None:
    """A closed roster, controls of every kind, a person addressed, a close with a decision."""
    members = [{"agentId": f"host:{name}"} for name in ("cfo", "cto", "chair")]
    convo = gate("convo", "conversationGate", prompt="May or June?", participants=members,
                 agentId="host:chair", groupId="council-7")  # fmt: skip
    declared = {"conversation": {"reducer": "message"}}
    run_id = await story.begin(chain("council", convo, channels=declared))
    talk, steer = story.answer, story.steer
    await talk(run_id, "convo", {"role": "agent", "speakerId": "host:cfo", "content": "June"}, BOT)
    await steer(run_id, {"mute": {"targets": ["host:cto"], "seconds": 60}, "prod": ["host:cfo"]})
    await steer(run_id, {"unmute": ["host:cto"], "ttl_seconds": 600, "pause": {}})
    await talk(run_id, "convo", {"content": {"note": "please be brief"}, "messageId": "m-1"}, ADA)
    await steer(run_id, {"pause": False, "discussion": {"on": True, "allow_agent_mentions": False}})
    await steer(run_id, {"done": True}, BOT)
    await steer(run_id, {"pause": "perhaps", "invited_auto": {"on": True}, "ttl_seconds": -1})
    asks = {"role": "agent", "speakerId": "host:cto", "content": "Ada?", "to": "user:ada"}
    await talk(run_id, "convo", {"operation": "exchange", "turn": asks})
    await talk(run_id, "convo", {"content": "June", "meta": {"replyTo": "x"}}, ADA)
    decision = {
        "text": "We ship in June.", "votes": {"host:cfo": "yes", "user:ada": "yes"},
        "dissent": [{"by": "host:cto", "text": "May"}], "citedTurns": [1, 4],
        "actionItems": ["tell the press"],
    }  # fmt: skip
    final = {"role": "agent", "speakerId": "host:chair", "content": "June it is."}
    await talk(run_id, "convo", {"operation": "close", "turn": final, "decision": decision})
    await story.wait(run_id)


async def gathering(story: Story) -> None:
    """An open conversation that people and agents join and leave."""
    run_id = await story.begin(chain("gathering", gate("convo", "conversationGate")))
    await story.answer(run_id, "convo", {"content": "Who is there?"}, ADA)
    profile = {"client": "cli", "model": "demo"}
    await story.steer(run_id, {"invite": {"participant_id": "host:cfo", "profile": profile}}, ADA)
    await story.steer(run_id, {"invite": {"participant_id": "user:bob"}})
    turn = {"role": "agent", "speakerId": "host:cfo", "content": "I am.", "to": "user"}
    await story.answer(run_id, "convo", turn, BOT)
    await story.steer(run_id, {"uninvite": "host:cfo", "note": "thanks"}, ADA)
    await story.answer(run_id, "convo", {"operation": "close", "outcome": None})
    await story.wait(run_id)


async def by_itself(story: Story) -> None:
    """A talk without people, one that closes after its turns, one that runs out of time."""
    nodes = [
        gate("mock", "conversationGate", mockAutoResume=True, turnCount=1),
        gate("short", "conversationGate", lifecycle="open-exchange-close", turnCount=1),
        gate("slow", "conversationGate", timeoutMs=1000, onTimeout="complete"),
    ]
    run_id = await story.begin(chain("by_itself", *nodes))
    await story.answer(run_id, "short", {"content": "all I have to say"}, ADA)
    await story.wait(run_id, 400)


async def waiting_child(story: Story) -> None:
    """A parent shows how its child waits; a cancel takes both."""
    kid = chain("asker", gate("ok", "approvalGate"), gate("again", "clarificationGate",
                questions=[{"id": "q", "question": "Sure?"}]))  # fmt: skip
    sub = node("sub", "core.subWorkflow", config={"workflowId": "asker"})
    run_id = await story.begin(kid, chain("waiting_parent", sub))
    await story.until(run_id, "waiting-approval")
    child = next(iter((await story.host.view(TENANT, run_id)).run.children))
    story.clock.pass_time(5000)
    await story.answer(child, "ok", {"action": "accept"}, ADA)
    await story.until(run_id, "waiting-input")
    await story.host.handle(TENANT, run_id, CancelRun(story.now(), "enough", "key_story"))


async def supervisor(story: Story) -> None:
    """A wave with a loser, a weak decision, a question, an end; a cap that is reached."""
    quick = chain("quick", node("w"), variables=[variable("out", "done")])
    slow = chain("slow", node("w", "core.delay", config={"ms": 60_000}))
    plan = [
        {"kind": "next-worker", "nextWorkerIds": ["slow", "quick"]},
        {"kind": "next-worker", "nextWorkerIds": ["quick"], "confidence": 0.3},
        {"kind": "ask-user", "prompt": "Enough?"},
    ]
    config = {"fanOutPolicy": "parallel", "joinPolicy": {"mode": "first"},
              "outputMapping": {"result": "out"}}  # fmt: skip
    nodes = [
        node("boss", "core.orchestrator.supervisor", config={"plan": plan}),
        node("hands", "core.dispatch", config=config),
    ]
    flow = workflow("supervisor", nodes, [edge("boss", "hands"), edge("hands", "boss")],
                    variables=[variable("result", "")])  # fmt: skip
    run_id = await story.begin(quick, slow, flow)
    await story.until(run_id, "waiting-approval")
    await story.answer(run_id, "hands", {"action": "accept"}, ADA)
    await story.asked(run_id, "conversation.exchange")
    await story.answer(run_id, "hands", {"content": "Yes."}, ADA)
    await story.wait(run_id)


async def branched(story: Story) -> None:
    """A run that was forked while its child was asked, with another value of a variable."""
    kid = chain("asked", gate("ok", "approvalGate"))
    sub = node("sub", "core.subWorkflow", config={"workflowId": "asked"})
    source = await story.begin(kid, chain("branched", sub))
    await story.until(source, "waiting-approval")
    length = (await story.host.view(TENANT, source)).run.next_sequence
    wanted = ForkRequest(
        from_seq=length, by=CHAIR, edit=HistoryEdit(variables={"x": 1}), note="what if"
    )
    run = await fork_run(story.host, TENANT, source, wanted)
    await story.until(run.run_id, "waiting-approval")
    for each in (source, run.run_id):
        child = next(iter((await story.host.view(TENANT, each)).run.children))
        await story.answer(child, "ok", {"action": "accept"}, ADA)
        await story.wait(each)


def variable(name: str, default: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "defaultValue": default}


async def paused_wait(story: Story) -> None:
    """A pause that drains while another branch waits; the wait goes on after it."""
    nodes = [gate("ok", "approvalGate"), node("nap", "core.delay", config={"ms": 1000})]
    run_id = await story.begin(workflow("paused_wait", nodes, []))
    await story.host.handle(TENANT, run_id, PauseRun(story.now(), "drain-current-node"))
    story.clock.pass_time(1000)
    story.host.timers._fire()
    await story.until(run_id, "paused")
    story.clock.pass_time(1000)
    await story.host.handle(TENANT, run_id, ResumeRun(story.now()))
    await story.answer(run_id, "ok", {"action": "accept"})
    await story.wait(run_id)
