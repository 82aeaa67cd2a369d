"""A thread in which everybody is done comes to its end by itself."""

from moot.core.conversations import decide, turns
from moot.core.events import NewEvent
from moot.core.runs.answers import Answer
from moot.core.speaker import Speaker
from moot.core.state.conversation import THREAD, Conversation
from moot.core.state.run import Run
from moot.core.text.names import full_name, is_person
from moot.core.workflows.graph import Flow

TEXT = "Everybody is done; the thread is closed."


def all_done(run: Run, talk: Conversation, sender: str) -> bool:
    """Whether it is so once the sender is: everybody who was invited, and who began it where that
    is a person. No agents end a thread among themselves: one person at least has said so."""
    members = talk.roster if talk.roster is not None else list(talk.state.members)
    wanted = {full_name(name) for name in members}
    if run.workflow_id != THREAD or not wanted:
        return False
    if is_person(run.person):
        wanted.add(run.person)
    done = {*talk.state.done, full_name(sender)}
    return wanted <= done and any(map(is_person, done))


def closed(run: Run, flow: Flow, talk: Conversation, who: Speaker, at: int) -> list[NewEvent]:
    """Without a decision. The log stays to be read."""
    node = flow.nodes[talk.node_id]
    final = turns.system_turn(talk, TEXT, at)
    final["via"] = who.principal
    given = Answer(node_id=node.id, value=None, who=who, at=at)
    return decide.closing(run, flow, node, talk, turns.closed(talk, node, final, None), given)
