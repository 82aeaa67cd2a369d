"""A replay asks no model. Only one that a test has told what to say may answer a second time, so
that a refusal which comes in the replay alone can be shown.
"""

from moot.core.agents import refusals
from moot.core.events import Event, NewEvent
from moot.engine.head import Head


def shifted(head: Head, event: Event, at: int) -> list[NewEvent]:
    """The end of the replay, when such a model does not answer as the record says."""
    node = head.flow.nodes.get(str(event.node_id))
    if event.type != "moot.effect.finished" or node is None or node.type.rehearsed is None:
        return []
    again = node.type.rehearsed(head.run.tenant, node.id)
    return [] if again is None else refusals.diverged(head.run, event, again, at)
