"""Scenes of agents and of model calls."""

from typing import Any

from moot.conformance.nodes.structured_output import MockAnswer
from moot.engine.replay.replay import replay_run
from tests.support.replay.story import ADA, TENANT, Story, chain, node

GOOD = MockAnswer(content='{"valid":true}')
BAD = MockAnswer(content="hardly")
CUT = MockAnswer(content='{"va', stop_reason="max_tokens")
REFUSAL = MockAnswer(content="", stop_reason="safety", refusal_text="I must not.")


def model(name: str) -> dict[str, Any]:
    schema = {"type": "object", "required": ["valid"], "properties": {"valid": {"type": "boolean"}}}
    config = {"provider": "mock", "model": "mock-mini", "outputSchema": schema, "prompt": "Well?"}
    return node(name, "core.ai.structuredOutput", config=config)


async def agents(story: Story) -> None:
    """Two agents, one after the other; the second is not sure and a person mends its decision."""
    first = {
        "mockReasoning": {"summary": "s", "streamChunks": ["I think ", "I am."]},
        "mockToolCalls": [
            {"toolId": "web:get", "arguments": {"q": "x"}, "result": ["a"], "durationMs": 3},
            {"toolId": "web:put", "error": {"error": "no", "message": "Not today."}},
        ],
        "mockHandoff": {"toAgentId": "host:other", "reason": "tired"},
        "mockDecision": {"decision": "go", "confidence": 0.9},
    }
    second = {"mockReasoning": True, "mockDecision": {"decision": "stop", "confidence": 0.2}}
    nodes = [
        node("one", "core.conformance.mock-agent", config=first, agent={"agentId": "host:one"}),
        node("two", "core.conformance.mock-agent", config=second, agent={"agentId": "host:two"}),
    ]
    run_id = await story.begin(chain("conformance-agents", *nodes))
    await story.until(run_id, "waiting-approval")
    answer = {"action": "edit-accept", "editedArtifactData": "go on"}
    await story.answer(run_id, "two", answer, ADA)
    await story.wait(run_id)


async def models(story: Story) -> None:
    """Answers that do not fit, one that is cut off, one that fits, and one that never does."""
    story.programs.tell(TENANT, "ask", [BAD, CUT, GOOD])
    story.programs.tell(TENANT, "again", [BAD])
    run_id = await story.begin(chain("models", model("ask"), model("again")))
    await story.wait(run_id)


async def refusals(story: Story) -> None:
    """A model that refuses, and a replay in which it does not."""
    story.programs.tell(TENANT, "ask", [REFUSAL, GOOD])
    run_id = await story.begin(chain("refusals", model("ask")))
    await story.wait(run_id)
    await replay_run(story.host, TENANT, run_id, 0)
