"""What a person does beside talking: takes back what was steered, gives a task, catches up."""

from typing import Any

from moot.cli.councils.members import Room, identified
from moot.cli.shared.client import Api, path_of
from moot.cli.shared.errors import Trouble

#: events that are looked through for what can be taken back
LOOK = 500
#: higher than any event's number
END = 2**53


def take_back(api: Api, thread_id: str) -> str:
    """The newest thing of one's own that still holds; says what it was."""
    path = path_of("v1", "host", "moot", "threads", thread_id)
    room = Room()
    room.read(api.get(path))
    events = api.get(f"{path}/events", before=END, limit=LOOK)["events"]
    for event in reversed(events):
        if "undo" in event and identified(event["from"]) == room.me:
            api.post(f"{path}/controls", {"content": event["undo"]})
            return str(_said(event, room))
    raise Trouble("Nothing that you have steered here still holds: there is nothing to take back.")


def _said(event: dict[str, Any], room: Room) -> str:
    from moot.core.threads.control_text import says  # heavy: read when something is taken back

    return says(event, lambda name: room.called(identified(name))) or ""


def give_task(api: Api, thread_id: str, to: str, text: str) -> None:
    body = {"type": "task", "to": to, "content": text}
    api.post(path_of("threads", thread_id, "events"), body)


class CatchUp:
    """A summary for oneself alone, while it is being written."""

    def __init__(self, api: Api, thread_id: str) -> None:
        path = path_of("v1", "host", "moot", "threads", thread_id)
        self._api, self._made = api, api.post(f"{path}:catch-up")

    def look(self) -> list[str]:
        """Its lines; none before it is there."""
        made = self._made = self._api.get(self._made["url"]) | {"url": self._made["url"]}
        author = str(made["author"]).removeprefix("host:")
        if "error" in made:
            return [f"{author} wrote nothing: {made['error']['message']}"]
        if "turn" not in made:
            return []
        head = f"{author} on turns {made['from']} to {made['to']}, for you alone:"
        return [head, *str(made["turn"]["content"]).splitlines()]
