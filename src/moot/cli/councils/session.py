"""Follow a council on the screen, and send the lines that a person types."""

import json
import select
import shlex
import time
from collections.abc import Mapping
from typing import Any

import click

from moot.cli.councils import prompt, prompt_actions
from moot.cli.councils.line_editor import KeyDecoder, LineEditor
from moot.cli.councils.live_rows import LiveRows
from moot.cli.councils.members import CouncilRoster
from moot.cli.councils.prompt_actions import decision_with_votes
from moot.cli.councils.read_marks import ThreadReadMark
from moot.cli.councils.screen import Keyboard, TerminalScreen, open_screen, terminal_columns
from moot.cli.councils.stream import StreamFeed
from moot.cli.councils.transcript_lines import (
    TranscriptLine,
    TranscriptRenderer,
    note_line,
)
from moot.cli.runs.follow import WAITING_STATUSES
from moot.cli.shared import output
from moot.cli.shared.client import Api
from moot.cli.shared.command_hint import command_hint
from moot.cli.shared.errors import CommandError, ExitCode
from moot.cli.shared.events import event_fields, read_event
from moot.cli.shared.streams import StreamFrame
from moot.cli.threads.thread import missing_agent_message, unknown_agent_warning
from moot.client.operations import agent_bridge, runs, threads
from moot.core.events import Event
from moot.core.payloads.conversations import (
    ConversationEnded,
    ConversationExchanged,
    ThreadControlled,
)
from moot.core.payloads.runs import RunCancelled, RunFailed
from moot.core.sentences.turns import spoken_turn
from moot.core.text.names import name_from_handle
from moot.wire.threads import ThreadView

ENDS = {
    ConversationEnded.event_type: ExitCode.OK,
    **dict.fromkeys((RunFailed.event_type, RunCancelled.event_type), ExitCode.FAILED),
}
TICK = 1.0
PAUSED = "paused; /resume to go on"
#: seconds between two drawings of a quick speaker's words
FRAME = 0.04


class SessionLeft(KeyboardInterrupt):
    """The person left, by a command or by Ctrl-C; the council continues."""

    def __init__(self, by_force: bool = False) -> None:
        super().__init__()
        self.by_force = by_force


class CouncilSession:
    """Follows one thread until it closes, or until only a person can continue it."""

    def __init__(self, api: Api, thread: ThreadView, prompted: bool, as_json: bool = False) -> None:
        self._api, self._as_json = api, as_json
        self._thread, self.thread_id = thread, thread.thread_id
        self._conversation: str | None = None
        self._roster = CouncilRoster()
        self._roster.read(thread)
        self._renderer = TranscriptRenderer(self._roster, output.short_id(self.thread_id))
        self._live = LiveRows(self._roster)
        self._screen = open_screen(prompted and not as_json)
        self._editor = self._keys = None
        if prompted and isinstance(self._screen, TerminalScreen) and not as_json:
            self._editor = LineEditor(
                lambda before: prompt.complete_word(before, self._roster.members)
            )
            self._keys = KeyDecoder()
        self._keyboard = Keyboard() if self._editor else None
        self._ended: ExitCode | None = None
        self._stay, self._may_rest = False, True
        self._catch_up: prompt_actions.CatchUpRequest | None = None
        #: the last reminder; it is printed once, until the thread waits for something else
        self._last_reminder = ""
        #: turns that have been shown, and the newest event
        self.turns, self._last_sequence = 0, -1
        # only a person has a read mark, not a program that reads
        is_person = isinstance(self._screen, TerminalScreen) and not as_json
        self._mark = ThreadReadMark(api, self.thread_id) if is_person else None

    @property
    def interactive(self) -> bool:
        return self._editor is not None

    def tell(self, text: str) -> None:
        """Print a first line."""
        if not self._as_json:
            self._screen.tell([TranscriptLine(text)])

    def follow(self, after: int, stay: bool = False) -> ExitCode:
        """Return how the thread ended. Raise SessionLeft when the person leaves, also by Ctrl-C."""
        self._stay, self._last_sequence = stay, after
        self._live.read(self._thread, time.monotonic())
        self._read_presence()
        feed = StreamFeed(self._api, self.thread_id, after)
        with self._screen:
            if self.interactive:
                self._print_note("type to take part; @NAME addresses one, /help lists the rest")
            try:
                while self._ended is None:
                    typed = (self._editor.text, self._editor.at) if self._editor else ()
                    self._screen.below(self._rows(), *typed)
                    self._wait(feed)
            except SessionLeft:
                raise
            except KeyboardInterrupt:
                raise SessionLeft(by_force=True) from None
            finally:
                self._mark_read()
        return self._ended

    def _mark_read(self) -> None:
        if self._mark is not None:
            self._mark.reach(self._last_sequence)

    def _read_presence(self) -> None:
        """Read the presence of all participants, because the stream reports only changes."""
        try:
            call = agent_bridge.get_bridge_presence(self.thread_id)
            presences = self._api.send(call).presence
        except CommandError:
            return
        for name, presence in presences.items():
            frame = {"participant": name_from_handle(name), "state": presence.state}
            self._live.heard("presence", frame)

    def _wait(self, feed: StreamFeed) -> None:
        files = [feed.file, *([self._keyboard.file] if self._keyboard else [])]
        ready, _, _ = select.select(files, [], [], TICK)
        if self._keyboard and self._keyboard.file in ready:
            self._take_keys(self._keyboard.read())
        if feed.file in ready:
            time.sleep(FRAME if isinstance(self._screen, TerminalScreen) else 0)
            for frame in feed.take():
                self._take_frame(frame)
                if self._ended is not None:
                    return
        if self._catch_up is not None and (lines := self._catch_up.lines()):
            self._catch_up = None
            self._print_lines(list(map(note_line, lines)))
        if self._may_rest and self._live.quiet and self._ended is None:
            self._check_rest()

    def _print_lines(self, lines: list[TranscriptLine]) -> None:
        """Print lines and redraw the rows below, so that a finished turn is not drawn as live."""
        self._screen.tell(lines, self._rows())

    def _rows(self) -> list[str]:
        rows = self._live.rows(terminal_columns(), time.monotonic())
        if self._editor is not None and self._editor.choices:
            rows.append(click.style("   " + "  ".join(self._editor.choices), dim=True))
        return rows

    # -- frames from the server ----------------------------------------------------------------

    def _take_frame(self, frame: StreamFrame) -> None:
        match frame.kind:
            case "event":
                self._take_event(read_event(frame.data))
            case "trouble":
                raise frame.data
            case "lost":
                self._live.interrupted()
                self._print_note("the server is away; waiting for it")
            case "back":
                self._print_note("the server is back")
            case "open" | "quiet" | "ended":
                pass
            case kind:
                self._live.heard(kind, frame.data)

    def _take_event(self, event: Event) -> None:
        """Take an event of this conversation; the run may have others."""
        self._last_sequence = event.sequence
        self._may_rest = True
        conversation: str | None = getattr(event.payload, "conversation_id", None)
        if self._conversation is None and event.node_id == self._thread.node_id:
            self._conversation = conversation
        if conversation is not None and self._conversation not in (None, conversation):
            return
        # count a turn before it is printed: Ctrl-C may come while it is
        self.turns += isinstance(event.payload, ConversationExchanged)
        self._live.follow(event, time.monotonic())
        if self._as_json:
            output.print_json_line(event_fields(event))
        else:
            self._print_event(event)
        self._ended = ENDS.get(event.type)

    def _print_event(self, event: Event) -> None:
        turn = spoken_turn(event.payload)
        news = self._mark.news(turn.index) if self._mark and turn else None
        lines = [note_line(news)] if news else []
        self._print_lines([*lines, *self._renderer.tell(event)])
        if isinstance(event.payload, ThreadControlled):
            self._last_reminder = PAUSED  # the control itself has been printed

    def _check_rest(self) -> None:
        """Check whether the thread is at rest now that no member has the floor."""
        self._may_rest = False
        self._mark_read()
        try:
            self._thread = self._api.send(threads.get_thread(self.thread_id))
            at_rest = self._at_rest()
        except CommandError:
            return
        if not at_rest or self._last_sequence < self._thread.last_sequence:
            return  # more is on its way
        if not self.interactive:
            self._ended = None if self._stay else ExitCode.WAITING
        elif self._thread.floor is not None:
            reminder = waiting_reason(self._thread)
            if reminder != self._last_reminder:
                self._print_note(reminder)
            self._last_reminder = reminder

    def _at_rest(self) -> bool:
        """Whether the thread waits. Without a floor, the status of the run tells."""
        if not self._thread.open:
            return False
        if self._thread.floor is not None:
            return self._thread.floor.at_rest
        return self._api.send(runs.get_run(self._thread.run_id)).status in WAITING_STATUSES

    def _print_note(self, text: str) -> None:
        if not self._as_json:
            self._print_lines([note_line(text)])

    # -- lines that a person types -------------------------------------------------------------

    def _take_keys(self, data: bytes) -> None:
        if not data:
            raise SessionLeft
        assert self._keys is not None
        assert self._editor is not None
        for key in self._keys.read(data):
            line = self._editor.take(key)
            if line is not None:
                self._take_line(line)

    def _take_line(self, line: str) -> None:
        try:
            typed = prompt.parse_line(line, self._roster.members)
            if typed is not None:
                self._carry_out(typed)
        except prompt.PromptMistake as mistake:
            self._print_error(str(mistake))
        except CommandError as error:
            self._print_error(*self._error_hint(error))

    def _print_error(self, text: str, command: str = "") -> None:
        mark, safe = click.style("   !", fg="red"), output.safe_lines(text)
        self._print_lines([TranscriptLine(safe, mark, command=output.safe_line(command))])

    def _error_hint(self, error: CommandError) -> tuple[str, str]:
        """Return the error, and for a closed roster the fork that would admit the participant."""
        details, roster = error.details, error.details.get("roster")
        if not isinstance(roster, list) or "participant" not in details:
            return str(error), ""
        if (problem := missing_agent_message(self._api, str(details["participant"]))) is not None:
            return problem, ""
        members = [{"agentId": str(name)} for name in [*roster, details["participant"]]]
        members_json = json.dumps(members, separators=(",", ":"))
        setting = shlex.quote(f"input.participants={members_json}")
        return str(error), command_hint(f"fork {self.thread_id}@0 --set {setting}")

    def _carry_out(self, typed: prompt.TypedLine) -> None:
        match typed:
            case prompt.TypedTurn(text, to):
                turn = {"content": text, **({"to": to} if to else {})}
                run_id, node_id = self._thread.run_id, self._thread.node_id
                self._api.send(runs.resolve_interrupt(run_id, node_id, {"turn": turn}))
            case prompt.TypedControl(content):
                self._api.send(threads.control_thread(self.thread_id, content))
                self._warn_unknown_invitee(content)
            case prompt.TypedChoice(word, which):
                choice = {word: which or self._single_choice(word)}
                self._api.send(threads.control_thread(self.thread_id, choice))
            case prompt.TypedClose(decision, vote):
                self._close(decision, vote)
            case prompt.TypedTask(to, text):
                task = agent_bridge.post_bridge_event(self.thread_id, text, kind="task", to=to)
                self._api.send(task)
            case prompt.TypedCommand("undo"):
                prompt_actions.undo_last_control(self._api, self.thread_id)  # the stream reports it
            case prompt.TypedCommand("catchup"):
                self._catch_up = prompt_actions.CatchUpRequest(self._api, self.thread_id)
                self._print_note("it is being summed up for you")
            case prompt.TypedCommand("help"):
                self._print_lines([TranscriptLine(line) for line in prompt.help_lines()])
            case prompt.TypedCommand():
                raise SessionLeft

    def _warn_unknown_invitee(self, content: Mapping[str, Any]) -> None:
        """Warn when the host does not know the invited participant."""
        name = str(content.get("invite", {}).get("participant_id", ""))
        if name and (warning := unknown_agent_warning(self._api, name)) is not None:
            self._print_error(warning)

    def _single_choice(self, word: str) -> str:
        """Return the one thing that waits for this command. Raise PromptMistake otherwise."""
        floor = self._api.send(threads.get_thread(self.thread_id)).floor
        ids = []
        if floor is not None and word in ("admit", "drop"):
            ids = [turn.held for turn in floor.held]
        elif floor is not None:
            ids = [question.ask_id for question in floor.asks]
        if len(ids) != 1:
            which = f"Say which: {', '.join(ids)}."
            raise prompt.PromptMistake(which if ids else "Nothing waits for that.")
        return ids[0]

    def _close(self, decision: str | None, vote: bool) -> None:
        """Close the thread.

        Without a decision, first offer the moderator's proposal for editing.
        """
        floor = self._api.send(threads.get_thread(self.thread_id)).floor
        proposal, votes = (floor.proposal, floor.votes) if floor else (None, {})
        if decision is None and proposal and self._editor is not None:
            words = json.dumps(output.one_line(proposal), ensure_ascii=False)
            self._editor.offer(f"/close --decision {words}{' --vote' if vote else ''}")
            self._print_note("the moderator proposes this; change it or press Enter")
            return
        adopted: str | dict[str, object] | None = decision
        if not vote and decision is not None and votes and decision == proposal:
            adopted = decision_with_votes(decision, votes)
        self._api.send(threads.close_thread(self.thread_id, adopted, vote=vote or None))


def waiting_reason(thread: ThreadView) -> str:
    """Return why a council or thread is at rest, and the commands that continue it."""
    floor = thread.floor
    if thread.state.paused:
        return PAUSED
    if floor and floor.stopped:
        return f"stopped at its limit ({floor.stopped}); /continue to go on, /close to end it"
    if floor and floor.phase == "over" and floor.proposal:
        return "all is said; /close ends it with the decision, /continue goes on"
    if floor and floor.phase == "over":
        return "all is said; /close --decision TEXT ends it, /continue goes on"
    asked_people = {one.person: one.turn for one in thread.asked}
    if thread.you in asked_people:
        return f"you are asked in turn {asked_people[thread.you]}; say something, or /close"
    if asked_people:
        people = ", ".join(output.one_line(name.removeprefix("user:")) for name in asked_people)
        return f"an answer of {people} is waited for; say something, or /close"
    return "nobody has anything to answer; say something, or /close"
