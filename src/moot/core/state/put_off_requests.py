"""Who is asked for while he is muted: that waits, and he is asked once he may speak again.

What was said to all meanwhile passes him by, as the decision says that left him out.
"""

from typing import TYPE_CHECKING, Any

from moot.core.state.floor import Ask, Floor
from moot.core.state.thread_controls import ThreadState

if TYPE_CHECKING:
    from moot.core.state.conversation import Conversation

MUTED = "muted"


def put_off(floor: Floor, state: ThreadState, said: dict[str, Any]) -> None:
    """Part of the fold of ``moot.participation.decided``, before the asks it settles are gone."""
    for item in said.get("skipped", []):
        name = str(item.get("agentId", ""))
        ask = floor.asked.get(name)
        if ask is None and name in state.prodded:
            ask = Ask("prodded", direct=True)
        if ask is not None and item.get("reason") == MUTED:
            floor.later[name] = ask


def taken_up(floor: Floor, state: ThreadState) -> None:
    """Part of the fold: whoever is muted no longer is asked now, unless he was asked since."""
    for name in [name for name in floor.later if name not in state.muted]:
        ask = floor.later.pop(name)
        if name in floor.members:
            floor.asked.setdefault(name, ask)


def due(talk: "Conversation") -> dict[str, int]:
    """Whose being asked waits for the end of a mute, and when that is."""
    later = talk.floor.later if talk.floor is not None and talk.open else {}
    return {name: until for name in later if (until := talk.state.muted.get(name, 0))}
