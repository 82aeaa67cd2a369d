"""Random questions and random answers to them: right ones, wrong ones, nonsense."""

from typing import Any

import hypothesis.strategies as st

from tests.support.core.simulator import ADA, BOT, CHAIR, chain, node

GIVEN = [{"name": "given", "type": "object", "defaultValue": "unset"}]

#: a child that asks
ASKER = chain(node("ok", "core.approvalGate"), id="asker", variables=GIVEN)

PEOPLE = st.sampled_from([CHAIR, ADA, BOT])

timeouts = st.sampled_from([{}, {}, {"timeoutMs": 30}, {"timeoutMs": 0, "onTimeout": "complete"}])


@st.composite
def gates(draw: st.DrawFn) -> dict[str, Any]:
    """The body of one gate node."""
    config: dict[str, Any] = dict(draw(timeouts))
    kind = draw(st.sampled_from(["approval", "clarification", "event", "custom", "talk"]))
    if kind == "approval":
        config.pop("onTimeout", None)
        config["actions"] = ["accept", "reject", "refine", "edit", "ask"]
        config["requiredApprovals"] = draw(st.integers(1, 3))
        config["rejectionPolicy"] = draw(st.sampled_from(["single-veto", "majority"]))
        return {"typeId": "core.approvalGate", "config": config}
    if kind == "clarification":
        config["questions"] = [{"id": "q", "question": "?", "schema": {"type": "integer"}}]
        return {"typeId": "core.clarificationGate", "config": config}
    if kind == "talk":
        config |= draw(st.sampled_from([{}, {"lifecycle": "open-exchange-close", "turnCount": 2}]))
        if draw(st.booleans()):
            config["participants"] = [{"agentId": "host:bot"}, {"agentId": "host:cto"}]
        return {"typeId": "core.conversationGate", "config": config}
    data = {"eventType": "paid", "correlation": {"id": 1}}
    what = {"kind": "external-event", "data": data} if kind == "event" else {"kind": "custom"}
    return {"typeId": "core.interrupt", "config": {**config, **what}}


#: answers that suit some kind of question, and some that suit none
ANSWERS: tuple[Any, ...] = (
    {"action": "accept"}, {"action": "accept", "voter": "v1"}, {"action": "accept", "voter": "v2"},
    {"action": "reject", "voter": "v3"}, {"action": "reject", "voter": "v1"},
    {"decision": "approved"}, {"decision": "rejected", "feedback": "no"}, {"decision": ["x"]},
    {"action": "refine"}, {"action": "refine", "refineFeedback": {"scope": "whole"}},
    {"action": "edit", "editedArtifactData": 1}, {"action": "edit-accept"},
    {"action": "ask", "question": "why?"}, {"answers": {"q": 1}}, {"answers": {"q": "x"}},
    {"answers": [{"id": "q", "answer": 2}]}, {"answers": [{"id": ["q"], "answer": 2}]},
    {"id": 1, "more": 2}, {"id": True}, {}, [], None, "x", 1,
    {"content": "hello"}, {"content": "hello", "to": "user"}, {"role": "system", "content": "x"},
    {"role": "agent", "speakerId": "host:bot", "content": {"a": 1}, "to": "user:ada"},
    {"role": "agent", "speakerId": "userbot", "content": "x"},
    {"operation": "close"}, {"operation": "close", "decision": "June"}, {"operation": "x"},
    {"operation": "close", "decision": {"text": "June", "citedTurns": [99]}},
)  # fmt: skip

answers = st.sampled_from(ANSWERS)


def fitting(kind: str) -> Any:
    """An answer that ends the wait, at the latest when each of three has given it."""
    return {
        "approval": {"action": "accept"},
        "clarification": {"answers": {"q": 1}},
        "external-event": {"id": 1},
        "conversation.exchange": {"operation": "close"},
    }.get(kind, {"any": "thing"})
