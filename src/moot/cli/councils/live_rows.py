"""Rows below the transcript: the members that speak now, and their words so far."""

from collections.abc import Mapping

import click

from moot.cli.councils.members import CouncilRoster
from moot.cli.councils.screen import wrap_text
from moot.cli.shared import output
from moot.core.events import Event
from moot.core.payloads import conversations, councils, runs
from moot.core.sentences.turns import read_turn
from moot.wire.threads import ThreadView

#: rows for the words of all speakers
MAX_ROWS = 8
MAX_SPEECH = 20_000
#: participants shown as thinking or typing at once
MAX_BUSY = 8

TASK_TEXTS = {
    "speak": "is next",
    "hand": "may raise a hand",
    "choose": "chooses who is next",
    "synthesise": "sums up",
    "vote": "votes",
}


class LiveSpeech:
    """A turn that is being spoken."""

    def __init__(self, speaker: str) -> None:
        self.speaker, self.words = speaker, ""


class LiveRows:
    """The speeches and invitations under way. A turn replaces its speech when it is complete."""

    def __init__(self, roster: CouncilRoster) -> None:
        self._roster = roster
        self._speeches: dict[str, LiveSpeech] = {}
        #: wake id -> agent, task and start (monotonic seconds)
        self._wakes: dict[str, tuple[str, str, float]] = {}
        #: presence of outside participants
        self._busy: dict[str, str] = {}

    @property
    def quiet(self) -> bool:
        """Whether no member has the floor, as far as is known."""
        return not self._wakes

    def read(self, thread: ThreadView, now: float) -> None:
        """Take over the invitations that are open already."""
        for member in thread.floor.speaking if thread.floor else ():
            self._wakes[member.wake_id] = (member.agent_id, member.task, now)

    def heard(self, kind: str, data: Mapping[str, object]) -> None:
        """Take a frame that is not an event of the log."""
        name = str(data.get("speechId"))
        if kind == "presence":
            self._set_presence(str(data.get("participant", "")), str(data.get("state", "")))
        elif kind == "speech.started":
            self._speeches[name] = LiveSpeech(str(data.get("speakerId") or data.get("from", "")))
        elif kind == "speech.delta" and name in self._speeches:
            speech = self._speeches[name]
            speech.words = (speech.words + str(data.get("delta", "")))[-MAX_SPEECH:]
        elif kind == "speech.ended" and name in self._speeches:
            # keep the words until the turn arrives, unless no turn is expected
            speaker = self._speeches[name].speaker
            if all(agent != speaker for agent, _, _ in self._wakes.values()):
                del self._speeches[name]

    def _set_presence(self, name: str, state: str) -> None:
        self._busy.pop(name, None)
        if state in ("thinking", "typing") and len(self._busy) < MAX_BUSY:
            self._busy[name] = state

    def follow(self, event: Event, now: float) -> None:
        match event.payload:
            case councils.MembersInvited(wakes=wakes):
                for wake in wakes:
                    self._wakes[wake.wake_id] = (wake.agent_id, wake.task, now)
            case councils.InvitationAnswered(wake_id=wake_id, agent_id=agent_id):
                self._wakes.pop(wake_id, None)
                self._drop_speech(agent_id)
            case conversations.ConversationExchanged(turn=turn):
                self._end_speaker(read_turn(turn).speaker)
            case conversations.ParticipantLeft(participant_id=participant_id):
                self._end_speaker(participant_id)
            case conversations.ConversationEnded() | runs.RunFailed() | runs.RunCancelled():
                self._wakes.clear()
                self._speeches.clear()
                self._busy.clear()
            case _:
                pass

    def _end_speaker(self, speaker: str) -> None:
        """Drop everything of a speaker that has spoken or left."""
        self._wakes = {key: one for key, one in self._wakes.items() if one[0] != speaker}
        self._drop_speech(speaker)

    def _drop_speech(self, speaker: str) -> None:
        self._busy.pop(speaker, None)
        self._speeches = {
            key: speech for key, speech in self._speeches.items() if speech.speaker != speaker
        }

    def interrupted(self) -> None:
        """Forget the speeches, because the stream broke off."""
        self._speeches.clear()
        self._busy.clear()

    def rows(self, columns: int, now: float) -> list[str]:
        """Return the newest words of every speaker, and the members that are next."""
        rows: list[str] = []
        speaking = [speech for speech in self._speeches.values() if speech.words.strip()]
        share = max(1, MAX_ROWS // max(1, len(speaking)))
        for speech in speaking[:MAX_ROWS]:
            rows += self._speech_rows(speech, columns, share)
        speakers = {speech.speaker for speech in speaking}
        waiting = [wake for wake in self._wakes.values() if wake[0] not in speakers]
        if waiting:
            rows.append(self._waiting_row(waiting, now))
        active_speakers = speakers | {agent for agent, _, _ in self._wakes.values()}
        busy = [f"{self._roster.called(name)} is {state}" for name, state in self._busy.items()
                if name not in active_speakers]  # fmt: skip
        return [*rows, click.style(f"   {' · '.join(busy)}", dim=True)] if busy else rows

    def _speech_rows(self, speech: LiveSpeech, columns: int, most: int) -> list[str]:
        name = self._roster.called(speech.speaker)
        indent = len(name) + 5
        lines = wrap_text(output.safe_lines(speech.words.strip()), max(10, columns - indent - 1))
        head = f" · {self._roster.styled(speech.speaker)}  "
        newest = lines[-most:]
        return [head + newest[0], *(" " * indent + line for line in newest[1:])]

    def _waiting_row(self, waiting: list[tuple[str, str, float]], now: float) -> str:
        """Return ``Cy is next · thinking 3 s``, with several members in one row."""
        names = ", ".join(self._roster.called(agent) for agent, _, _ in waiting)
        _, task, since = waiting[0]
        activity = TASK_TEXTS.get(task, "is next")
        if len(waiting) > 1:
            activity = {"vote": "vote", "hand": "may raise a hand"}.get(task, "are next")
        spent = int(now - since)
        thinking = f" · thinking {spent} s" if spent >= 1 else ""
        return click.style(f"   {names} {activity}{thinking}", dim=True)
