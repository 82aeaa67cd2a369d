"""Actions at the prompt besides speaking: undo a control, give a task, catch up."""

from typing import Any

from moot.cli.councils.members import CouncilRoster, id_from_handle
from moot.cli.shared.client import Api, api_path
from moot.cli.shared.errors import CommandError

#: events that are searched for a control to undo
MAX_EVENTS = 500
#: higher than any event's number
END = 2**53


def undo_last_control(api: Api, thread_id: str) -> str:
    """Undo the reader's newest control that still holds, and return its sentence."""
    path = api_path("v1", "host", "moot", "threads", thread_id)
    roster = CouncilRoster()
    roster.read(api.get(path))
    events = api.get(f"{path}/events", before=END, limit=MAX_EVENTS)["events"]
    for event in reversed(events):
        if "undo" in event and id_from_handle(event["from"]) == roster.me:
            api.post(f"{path}/controls", {"content": event["undo"]})
            return str(_control_sentence(event, roster))
    raise CommandError(
        "Nothing that you have steered here still holds: there is nothing to take back."
    )


def _control_sentence(event: dict[str, Any], roster: CouncilRoster) -> str:
    from moot.core.threads.control_text import event_sentence  # heavy: imported when it is needed

    return event_sentence(event, lambda name: roster.called(id_from_handle(name))) or ""


def post_task(api: Api, thread_id: str, to: str, text: str) -> None:
    body = {"type": "task", "to": to, "content": text}
    api.post(api_path("threads", thread_id, "events"), body)


class CatchUpRequest:
    """A summary for one reader, while it is being written."""

    def __init__(self, api: Api, thread_id: str) -> None:
        path = api_path("v1", "host", "moot", "threads", thread_id)
        self._api, self._summary = api, api.post(f"{path}:catch-up")

    def lines(self) -> list[str]:
        """Return its lines, or nothing before it is written."""
        summary = self._summary = self._api.get(self._summary["url"]) | {
            "url": self._summary["url"]
        }
        author = str(summary["author"]).removeprefix("host:")
        if "error" in summary:
            return [f"{author} wrote nothing: {summary['error']['message']}"]
        if "turn" not in summary:
            return []
        head = f"{author} on turns {summary['from']} to {summary['to']}, for you alone:"
        return [head, *str(summary["turn"]["content"]).splitlines()]
