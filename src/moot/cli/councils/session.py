"""A council on the screen: what is said as it is said, and what a person types into it."""

import json
import select
import shlex
import sys
import time
from typing import Any

import click

from moot.cli.councils import prompt_actions
from moot.cli.councils.line_editor import Editor, Keys
from moot.cli.councils.live_rows import Live
from moot.cli.councils.members import Room, identified
from moot.cli.councils.prompt import (
    Ask,
    Choose,
    Close,
    Mistake,
    Say,
    Steer,
    Task,
    Typed,
    completions,
    help_lines,
    read,
)
from moot.cli.councils.read_marks import Mark
from moot.cli.councils.screen import Keyboard, Pipe, Screen, Terminal
from moot.cli.councils.stream import Feed, Frame
from moot.cli.councils.transcript_lines import Teller, Told, note, turn_of
from moot.cli.runs.follow import FOR_A_PERSON
from moot.cli.shared import output
from moot.cli.shared.client import Api, Client, path_of
from moot.cli.shared.command_hint import way
from moot.cli.shared.errors import Exit, Trouble
from moot.cli.threads.new import missing, unknown

ENDS = {"conversation.closed": Exit.OK, "run.failed": Exit.FAILED, "run.cancelled": Exit.FAILED}
TICK = 1.0
PAUSED = "paused; /resume to go on"
#: how often the words of a quick speaker are drawn
FRAME = 0.04


def threads(thread_id: str, *more: str) -> str:
    return path_of("v1", "host", "moot", "threads", thread_id, *more)


class Left(KeyboardInterrupt):
    """The person has gone, by a word or by Ctrl-C; the council has not."""

    def __init__(self, by_force: bool = False) -> None:
        super().__init__()
        self.by_force = by_force


class Council:
    """One thread, followed until it is closed, or until only a person can help it on."""

    def __init__(
        self,
        api: Api,
        client: Client,
        thread: dict[str, Any],
        prompt: bool,
        as_json: bool = False,
    ) -> None:
        self._api, self._client, self._as_json = api, client, as_json
        self.thread_id = str(thread["threadId"])
        self._thread = thread
        self._conversation: str | None = None
        self._room = Room()
        self._room.read(thread)
        self._teller = Teller(self._room, output.short(self.thread_id))
        self._live = Live(self._room)
        self._screen = screen(prompt and not as_json)
        self._editor = self._keys = None
        if prompt and isinstance(self._screen, Terminal) and not as_json:
            self._editor = Editor(lambda before: completions(before, self._room.seats))
            self._keys = Keys()
        self._keyboard = Keyboard() if self._editor else None
        self._ended: Exit | None = None
        self._stay, self._looked = False, True
        self._catch_up: prompt_actions.CatchUp | None = None
        #: what a person was last told that it waits for
        self._reminded = ""
        #: turns that have been shown, and the newest event that came
        self.turns, self._seen = 0, -1
        #: of a person who looks, not of a program that reads
        person = isinstance(self._screen, Terminal) and not as_json
        self._mark = Mark(api, self.thread_id) if person else None

    @property
    def interactive(self) -> bool:
        return self._editor is not None

    def tell(self, text: str) -> None:
        """Something to begin with."""
        if not self._as_json:
            self._screen.tell([Told(text)])

    def follow(self, after: int, stay: bool = False) -> Exit:
        """Raises Left when the person leaves, also by Ctrl-C."""
        self._stay, self._seen = stay, after
        self._live.read(self._thread, time.monotonic())
        self._look_around()
        feed = Feed(self._client, self.thread_id, after)
        with self._screen:
            if self.interactive:
                self._say("type to take part; @NAME addresses one, /help lists the rest")
            try:
                while self._ended is None:
                    self._draw()
                    self._wait(feed)
            except Left:
                raise
            except KeyboardInterrupt:
                raise Left(by_force=True) from None
            finally:
                self._was_read()
        return self._ended

    def _was_read(self) -> None:
        if self._mark is not None:
            self._mark.reach(self._seen)

    def _look_around(self) -> None:
        """Who is thinking or typing already: of that only changes are told."""
        try:
            there = self._api.get(path_of("threads", self.thread_id, "presence"))["presence"]
        except Trouble:
            return
        for name, here in there.items():
            shown = {"participant": identified(name), "state": here["state"]}
            self._live.heard("presence", shown)

    def _wait(self, feed: Feed) -> None:
        files = [feed.file, *([self._keyboard.file] if self._keyboard else [])]
        ready, _, _ = select.select(files, [], [], TICK)
        if self._keyboard and self._keyboard.file in ready:
            self._type(self._keyboard.read())
        if feed.file in ready:
            time.sleep(FRAME if isinstance(self._screen, Terminal) else 0)
            for frame in feed.take():
                self._take(frame)
                if self._ended is not None:
                    return
        self._caught_up()
        if self._looked and self._live.quiet and self._ended is None:
            self._look()

    def _draw(self) -> None:
        if self._editor is None:
            self._screen.below(self._rows())
        else:
            self._screen.below(self._rows(), self._editor.text, self._editor.at)

    def _settle(self, told: list[Told]) -> None:
        """With what is below as it is now: what has become a turn is drawn no more."""
        self._screen.tell(told, self._rows())

    def _rows(self) -> list[str]:
        rows = self._live.rows(shown_columns(), time.monotonic())
        if self._editor is not None and self._editor.choices:
            rows.append(click.style("   " + "  ".join(self._editor.choices), dim=True))
        return rows

    # -- what comes from the server ------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        match frame.kind:
            case "event":
                self._event(frame.data)
            case "trouble":
                raise frame.data
            case "lost":
                self._live.interrupted()
                self._say("the server is away; waiting for it")
            case "back":
                self._say("the server is back")
            case "open":
                pass
            case kind:
                self._live.heard(kind, frame.data)

    def _event(self, event: dict[str, Any]) -> None:
        """Of this conversation only: a run may have several."""
        self._seen = event["sequence"]
        self._looked = True
        told_of = event["payload"].get("conversationId")
        self._conversation = self._conversation or self._named(event)
        if told_of is not None and self._conversation not in (None, told_of):
            return
        if self._as_json:
            output.json_line(event)
        self._live.follow(event, time.monotonic())
        if not self._as_json:
            news = self._mark.news(turn_of(event).get("turnIndex")) if self._mark else None
            self._settle([*([note(news)] if news else []), *self._teller.tell(event)])
        if event["type"] == "moot.thread.control" and not self._as_json:
            self._reminded = PAUSED  # the control itself has been told
        self.turns += event["type"] == "conversation.exchanged"
        self._ended = ENDS.get(event["type"])

    def _named(self, event: dict[str, Any]) -> str | None:
        named = event["payload"].get("conversationId")
        return named if event.get("nodeId") == self._thread["nodeId"] else None

    def _look(self) -> None:
        """Nobody has the floor: is it at rest, and what helps it on?"""
        self._looked = False
        self._was_read()
        try:
            self._thread = self._api.get(threads(self.thread_id))
            rests = self._at_rest()
        except Trouble:
            return
        if not rests or self._seen < self._thread["lastSequence"]:
            return  # more is on its way
        if not self.interactive:
            self._ended = None if self._stay else Exit.WAITING
        elif "floor" in self._thread:
            self._remind(waits_for(self._thread))

    def _at_rest(self) -> bool:
        """Where the host gives nobody the floor only the run knows whether others are at work."""
        if not self._thread["open"]:
            return False
        if "floor" in self._thread:
            return bool(self._thread["floor"]["atRest"])
        return self._api.get(path_of("v1", "runs", self._thread["runId"]))["status"] in FOR_A_PERSON

    def _remind(self, text: str) -> None:
        """Once, until something else is waited for."""
        if text != self._reminded:
            self._say(text)
        self._reminded = text

    def _say(self, text: str) -> None:
        if not self._as_json:
            self._settle([note(text)])

    # -- what a person types -------------------------------------------------------------------

    def _type(self, data: bytes) -> None:
        if not data:
            raise Left
        assert self._keys is not None
        assert self._editor is not None
        for key in self._keys.read(data):
            line = self._editor.take(key)
            if line is not None:
                self._act(line)

    def _act(self, line: str) -> None:
        try:
            said = read(line, self._room.seats)
            if said is not None:
                self._do(said)
        except Mistake as mistake:
            self._complain(str(mistake))
        except Trouble as trouble:
            self._complain(*self._way_out(trouble))

    def _complain(self, text: str, command: str = "") -> None:
        mark = click.style("   !", fg="red")
        self._settle([Told(output.lines(text), mark, command=output.line(command))])

    def _way_out(self, trouble: Trouble) -> tuple[str, str]:
        """A closed roster stays closed; another council can begin where this one did, with whom
        there is."""
        said, roster = trouble.details, trouble.details.get("roster")
        if not isinstance(roster, list) or "participant" not in said:
            return str(trouble), ""
        if (nobody := missing(self._api, str(said["participant"]))) is not None:
            return nobody, ""
        members = [{"agentId": str(name)} for name in [*roster, said["participant"]]]
        given = json.dumps(members, separators=(",", ":"))
        setting = shlex.quote(f"input.participants={given}")
        return str(trouble), way(f"fork {self.thread_id}@0 --set {setting}")

    def _do(self, said: Typed) -> None:
        match said:
            case Say(text, to):
                turn = {"content": text, **({"to": to} if to else {})}
                node = str(self._thread["nodeId"])
                path = path_of("v1", "runs", self._thread["runId"], "interrupts", node)
                self._api.post(path, {"resumeValue": {"turn": turn}})
            case Steer(content):
                self._steer(content)
                self._remark(content)
            case Choose(word, which):
                self._steer({word: which or self._only(word)})
            case Close(decision, vote):
                self._close(decision, vote)
            case Task(to, text):
                prompt_actions.give_task(self._api, self.thread_id, to, text)
            case Ask("undo"):
                prompt_actions.take_back(
                    self._api, self.thread_id
                )  # which is told as it comes back
            case Ask("catchup"):
                self._catch_up = prompt_actions.CatchUp(self._api, self.thread_id)
                self._say("it is being summed up for you")
            case Ask("help"):
                self._settle([Told(line) for line in help_lines()])
            case Ask():
                raise Left

    def _caught_up(self) -> None:
        if self._catch_up is not None and (lines := self._catch_up.look()):
            self._catch_up = None
            self._settle(list(map(note, lines)))

    def _steer(self, content: dict[str, Any]) -> None:
        self._api.post(threads(self.thread_id, "controls"), {"content": content})

    def _remark(self, content: dict[str, Any]) -> None:
        """Who is invited and not known here must speak by itself."""
        name = str(content.get("invite", {}).get("participant_id", ""))
        if name and (said := unknown(self._api, name)) is not None:
            self._complain(said)

    def _only(self, word: str) -> str:
        """What waits for this word, when it is one thing."""
        kind, key = ("held", "held") if word in ("admit", "drop") else ("asks", "askId")
        floor = self._api.get(threads(self.thread_id)).get("floor", {})
        found = [str(one[key]) for one in floor.get(kind, [])]
        if len(found) != 1:
            waiting = f"which: {', '.join(found)}" if found else "nothing waits for that"
            raise Mistake(f"Say {waiting}." if found else "Nothing waits for that.")
        return found[0]

    def _close(self, decision: str | None, vote: bool) -> None:
        """Without a decision the moderator's is offered, to be looked over and sent."""
        floor = self._api.get(threads(self.thread_id)).get("floor", {})
        proposal = floor.get("proposal")
        if decision is None and proposal and self._editor is not None:
            words = json.dumps(output.one_line(proposal), ensure_ascii=False)
            self._editor.offer(f"/close --decision {words}{' --vote' if vote else ''}")
            self._say("the moderator proposes this; change it or press Enter")
            return
        body: dict[str, Any] = {} if decision is None else {"decision": decision}
        if vote:
            body["vote"] = True
        elif decision is not None and floor.get("votes") and decision == proposal:
            body["decision"] = decided(decision, floor["votes"])
        self._api.post(f"{threads(self.thread_id)}:close", body)


def decided(text: str, votes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A decision with the votes there were, and who was against it."""
    rows = [
        {"by": name, "vote": str(vote.get("vote", "abstain")),
         **({"reason": vote["reason"]} if vote.get("reason") else {})}
        for name, vote in votes.items()
    ]  # fmt: skip
    against = [row for row in rows if row["vote"] == "no"]
    dissent = [{"by": row["by"], "text": row.get("reason", "votes no")} for row in against]
    return {"text": text, "votes": rows, "dissent": dissent}


def waits_for(thread: dict[str, Any]) -> str:
    """What a council or a thread at rest waits for, and the words that help it on."""
    floor = thread["floor"]
    if thread["state"]["paused"]:
        return PAUSED
    if floor["stopped"]:
        return f"stopped at its limit ({floor['stopped']}); /continue to go on, /close to end it"
    if floor["phase"] == "over" and floor["proposal"]:
        return "all is said; /close ends it with the decision, /continue goes on"
    if floor["phase"] == "over":
        return "all is said; /close --decision TEXT ends it, /continue goes on"
    asked = {one["person"]: one["turn"] for one in thread.get("asked", [])}
    if thread.get("you") in asked:
        return f"you are asked in turn {asked[thread['you']]}; say something, or /close"
    if asked:
        people = ", ".join(output.one_line(name.removeprefix("user:")) for name in asked)
        return f"an answer of {people} is waited for; say something, or /close"
    return "nobody has anything to answer; say something, or /close"


def screen(prompt: bool) -> Screen:
    """A terminal that can move its cursor, or a pipe."""
    from moot.config.settings import client_environment

    environ = client_environment()
    if not output.on_terminal() or environ.get("TERM") == "dumb":
        return Pipe()
    keys = prompt and sys.stdin.isatty()
    return Terminal(keys, coloured=not environ.get("NO_COLOR"))


def shown_columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns
