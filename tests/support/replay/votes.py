"""A scene of a council that the host leads, and that a person ends with a vote."""

from typing import Any

from moot.core.councils.invitations import InvitationEnded
from moot.core.state.floor import Invitation
from tests.support.replay.story import ADA, TENANT, Story, node, workflow

USAGE = {"calls": 1, "inputTokens": 10, "outputTokens": 5}


async def voted(story: Story) -> None:
    """Everybody speaks once, the moderator sums up, and a person wants another decision."""
    members = [{"agentId": f"host:{name}"} for name in ("cfo", "cto", "mo")]
    policy = {"rounds": 1, "moderator": "host:mo", "vote": True}
    config = {"prompt": "Ship?", "participants": members, "participation": policy}
    gate = node("convo", "core.conversationGate", config=config)
    run_id = await story.begin(workflow("voted", [gate], []))
    for content in ("Not yet.", "Now.", "We are two."):
        await end(story, run_id, "spoke", content=content, answer={"decision": "We ship."})
    await end(story, run_id, "answered", answer={"vote": "yes"})
    await story.steer(run_id, {"vote": {"decision": "We ship in June.", "close": True}}, ADA)
    await end(story, run_id, "answered", answer={"vote": "yes"})
    await end(story, run_id, "answered", answer={"vote": "no", "reason": "Too late."})
    await story.wait(run_id)


async def end(story: Story, run_id: str, outcome: str, **said: Any) -> None:
    """The first that has the floor is done with it."""
    floor = (await story.host.view(TENANT, run_id)).run.conversations["convo"].floor
    wakes: dict[str, Invitation] = floor.wakes if floor is not None else {}
    given = InvitationEnded(
        node_id="convo", wake_id=next(iter(wakes)), at=story.now(), outcome=outcome,
        usage=USAGE, **said,
    )  # fmt: skip
    await story.host.handle(TENANT, run_id, given)
