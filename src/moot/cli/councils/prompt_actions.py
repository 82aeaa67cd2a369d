"""Actions at the prompt besides speaking: undo a control, catch up, count votes."""

from collections.abc import Mapping
from typing import Any

from moot.cli.councils.members import CouncilRoster
from moot.cli.shared.client import Api
from moot.cli.shared.errors import CommandError
from moot.cli.shared.logs import LogReader
from moot.client.operations import search, threads
from moot.core.sentences.table import text_of
from moot.core.text.names import name_from_handle

#: events that are searched for a control to undo
MAX_EVENTS = 500
#: higher than any event's number
END = 2**53


def undo_last_control(api: Api, thread_id: str) -> str:
    """Undo the reader's newest control that still holds, and return its sentence."""
    roster = CouncilRoster()
    roster.read(api.send(threads.get_thread(thread_id)))
    events = api.send(threads.list_thread_events(thread_id, before=END, limit=MAX_EVENTS)).events
    for event in reversed(events):
        if event.undo is not None and name_from_handle(event.sender) == roster.me:
            api.send(threads.control_thread(thread_id, event.undo))
            recorded = LogReader(api).expect(event.id.rpartition(".")[0], event.seq)
            return text_of(recorded.payload, roster.called) or ""
    raise CommandError(
        "Nothing that you have steered here still holds: there is nothing to take back."
    )


class CatchUpRequest:
    """A summary for one reader, while it is being written."""

    def __init__(self, api: Api, thread_id: str) -> None:
        self._api, self._thread_id = api, thread_id
        self._catch_up_id = api.send(search.create_catch_up(thread_id)).catch_up_id

    def lines(self) -> list[str]:
        """Return its lines, or nothing before it is written."""
        summary = self._api.send(search.get_catch_up(self._thread_id, self._catch_up_id))
        author = summary.author.removeprefix("host:")
        if summary.error is not None:
            return [f"{author} wrote nothing: {summary.error['message']}"]
        if summary.turn is None:
            return []
        head = f"{author} on turns {summary.first} to {summary.to}, for you alone:"
        return [head, *summary.turn.content.splitlines()]


def decision_with_votes(text: str, votes: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    """Return a decision with its votes and the dissent."""
    rows = [
        {"by": name, "vote": str(vote.get("vote", "abstain")),
         **({"reason": vote["reason"]} if vote.get("reason") else {})}
        for name, vote in votes.items()
    ]  # fmt: skip
    against = [row for row in rows if row["vote"] == "no"]
    dissent = [{"by": row["by"], "text": row.get("reason", "votes no")} for row in against]
    return {"text": text, "votes": rows, "dissent": dissent}
