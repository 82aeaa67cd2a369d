"""What is happening in a council right now: who has the floor, and the words so far."""

from typing import Any

import click

from moot.cli.councils.members import Room
from moot.cli.councils.screen import wrapped
from moot.cli.councils.transcript_lines import listed, turn_of
from moot.cli.shared import output

#: rows for the words of all who speak
MOST_ROWS = 8
LONGEST = 20_000
#: who are shown at once to be thinking or typing
MOST_BUSY = 8

DOES = {
    "speak": "is next",
    "hand": "may raise a hand",
    "choose": "chooses who is next",
    "synthesise": "sums up",
    "vote": "votes",
}


class Speech:
    """A turn under way."""

    def __init__(self, speaker: str) -> None:
        self.speaker, self.words = speaker, ""


class Live:
    """Nothing of it is kept: the turn itself comes when it is whole."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._speeches: dict[str, Speech] = {}
        #: wake -> who, for what, since when (monotonic seconds)
        self._wakes: dict[str, tuple[str, str, float]] = {}
        #: what those outside say they are doing
        self._busy: dict[str, str] = {}

    @property
    def quiet(self) -> bool:
        """Nobody has the floor, as far as is known."""
        return not self._wakes

    def read(self, thread: dict[str, Any], now: float) -> None:
        """Who has the floor already."""
        for wake in thread.get("floor", {}).get("speaking", []):
            self._wakes[wake["wakeId"]] = (wake["agentId"], wake["task"], now)

    def heard(self, kind: str, said: dict[str, Any]) -> None:
        """A frame that is not of the log."""
        name = str(said.get("speechId"))
        if kind == "presence":
            self._present(str(said.get("participant", "")), str(said.get("state", "")))
        elif kind == "speech.started":
            self._speeches[name] = Speech(str(said.get("speakerId") or said.get("from", "")))
        elif kind == "speech.delta" and name in self._speeches:
            speech = self._speeches[name]
            speech.words = (speech.words + str(said.get("delta", "")))[-LONGEST:]
        elif kind == "speech.ended" and name in self._speeches:
            # the words stay until the turn has come, unless none is to come
            speaker = self._speeches[name].speaker
            if all(agent != speaker for agent, _, _ in self._wakes.values()):
                del self._speeches[name]

    def _present(self, name: str, state: str) -> None:
        self._busy.pop(name, None)
        if state in ("thinking", "typing") and len(self._busy) < MOST_BUSY:
            self._busy[name] = state

    def follow(self, event: dict[str, Any], now: float) -> None:
        said = event["payload"]
        match event["type"]:
            case "moot.participation.decided":
                for wake in listed(said.get("wakes")):
                    task = (str(wake.get("agentId")), str(wake.get("task")), now)
                    self._wakes[str(wake.get("wakeId"))] = task
            case "moot.participation.answered":
                self._wakes.pop(str(said.get("wakeId")), None)
                self._hush(str(said.get("agentId")))
            case "conversation.exchanged":
                turn = turn_of(event)
                self._over(str(turn.get("speakerId") or turn.get("from")))
            case "moot.participant.left":
                self._over(str(said.get("participantId")))
            case "conversation.closed" | "run.failed" | "run.cancelled":
                self._wakes.clear()
                self._speeches.clear()
                self._busy.clear()
            case _:
                pass

    def _over(self, speaker: str) -> None:
        """He has spoken or has gone: nothing more of his is to come."""
        self._wakes = {key: one for key, one in self._wakes.items() if one[0] != speaker}
        self._hush(speaker)

    def _hush(self, speaker: str) -> None:
        self._busy.pop(speaker, None)
        self._speeches = {
            key: speech for key, speech in self._speeches.items() if speech.speaker != speaker
        }

    def interrupted(self) -> None:
        """The stream broke off: what was being said is not known any more."""
        self._speeches.clear()
        self._busy.clear()

    def rows(self, columns: int, now: float) -> list[str]:
        """The newest words of everybody who speaks, and who is next."""
        rows: list[str] = []
        speaking = [speech for speech in self._speeches.values() if speech.words.strip()]
        share = max(1, MOST_ROWS // max(1, len(speaking)))
        for speech in speaking[:MOST_ROWS]:
            rows += self._words(speech, columns, share)
        said = {speech.speaker for speech in speaking}
        waiting = [wake for wake in self._wakes.values() if wake[0] not in said]
        if waiting:
            rows.append(self._next(waiting, now))
        known = said | {agent for agent, _, _ in self._wakes.values()}
        does = [f"{self._room.called(name)} is {state}" for name, state in self._busy.items()
                if name not in known]  # fmt: skip
        return [*rows, click.style(f"   {' · '.join(does)}", dim=True)] if does else rows

    def _words(self, speech: Speech, columns: int, most: int) -> list[str]:
        name = self._room.called(speech.speaker)
        indent = len(name) + 5
        lines = wrapped(output.lines(speech.words.strip()), max(10, columns - indent - 1))
        head = f" · {self._room.styled(speech.speaker)}  "
        shown = lines[-most:]
        return [head + shown[0], *(" " * indent + line for line in shown[1:])]

    def _next(self, waiting: list[tuple[str, str, float]], now: float) -> str:
        """``Cy is next · thinking 3 s``; several at once in one row."""
        names = ", ".join(self._room.called(agent) for agent, _, _ in waiting)
        _, task, since = waiting[0]
        does = DOES.get(task, "is next")
        if len(waiting) > 1:
            does = {"vote": "vote", "hand": "may raise a hand"}.get(task, "are next")
        spent = int(now - since)
        thinking = f" · thinking {spent} s" if spent >= 1 else ""
        return click.style(f"   {names} {does}{thinking}", dim=True)
