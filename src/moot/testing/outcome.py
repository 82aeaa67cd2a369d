"""Runs and threads on the bench: their results, actions and assertions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from moot.client import Edit, Run, Thread
from moot.client.http.frames import Event
from moot.client.http.operation import without_none
from moot.testing import log_reading
from moot.testing.log_reading import Handoff, Said
from moot.wire.interrupts import Question
from moot.wire.replay import RunDiff, RunVerification

if TYPE_CHECKING:
    from moot.testing.bench import Bench


class BenchRun:
    """A run that has ended or waits for an answer from outside."""

    def __init__(self, bench: "Bench", run: Run) -> None:
        self._bench, self._run = bench, run
        self._settle()

    def _settle(self) -> "BenchRun":
        self._bench.settle(self._run.id)
        self._run.refresh()
        return self

    def __repr__(self) -> str:
        return f"<BenchRun {self.id} {self.status}>"

    # -- results -----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def status(self) -> str:
        """The status now, read from the host."""
        return self._run.refresh().status

    @property
    def outputs(self) -> Any:
        return self._run.refresh().outputs

    @property
    def error(self) -> Any:
        return self._run.refresh().error

    @property
    def variables(self) -> Mapping[str, Any]:
        return self._run.refresh().snapshot.variables

    @property
    def events(self) -> list[Event]:
        return self._bench.log(self.id)

    @property
    def types(self) -> list[str]:
        """The types of all events, in order."""
        return [event.type for event in self.events]

    def event(self, type: str, node: str | None = None) -> Event:
        """Return the first event of this type. Raise AssertionError when there is none."""
        for event in self.events:
            if event.type == type and node in (None, event.node):
                return event
        where = f" at node {node}" if node else ""
        raise AssertionError(f"{self.id} has no event {type}{where}; it has: {self.types}")

    def node(self, name: str) -> Any:
        """Return the state of a node: status, outputs, error."""
        nodes = self._run.refresh().snapshot.node_states
        if name not in nodes:
            raise AssertionError(f"{self.id} has no node '{name}'; it has: {sorted(nodes)}")
        return nodes[name]

    @property
    def handoffs(self) -> list[Handoff]:
        return log_reading.collect_handoffs(self.events)

    def handoff(self, worker: str, number: int = -1) -> Handoff:
        """Return a handoff to a worker; by default the last one."""
        matches = [
            one
            for one in self.handoffs
            if worker in (one.worker, log_reading.short_name(one.worker))
        ]
        if not matches:
            names = [one.worker for one in self.handoffs]
            raise AssertionError(f"Nothing was handed to '{worker}'; only to: {names}")
        return matches[number]

    @property
    def children(self) -> list["BenchRun"]:
        return [BenchRun(self._bench, child) for child in self._run.children()]

    @property
    def transcript(self) -> list[Said]:
        return log_reading.collect_turns(self.events)

    @property
    def questions(self) -> list[Question]:
        """The open questions of the run and its child runs."""
        questions = self._run.questions()
        for child in self._run.children():
            if child.waiting:
                questions += BenchRun(self._bench, child).questions
        return questions

    # -- actions -----------------------------------------------------------------------------

    def resolve(self, value: Any, node: str | None = None, **more: Any) -> "BenchRun":
        """Answer the open question with ``approve``, ``reject`` or any value."""
        if isinstance(value, str):
            action = {"approve": "accept"}.get(value, value)
            value = {"action": action, **more}
        question = self._question(node)
        self._bench.client.inbox.resolve(question, value)
        return self._settle()

    def approve(self, node: str | None = None, *, comment: str | None = None) -> "BenchRun":
        return self.resolve("approve", node, **without_none(comment=comment))

    def reject(self, node: str | None = None, *, comment: str | None = None) -> "BenchRun":
        return self.resolve("reject", node, **without_none(comment=comment))

    def answer(
        self, text: str | None = None, /, node: str | None = None, **by_id: Any
    ) -> "BenchRun":
        """Answer a question with a text, or several by their ids."""
        question = self._question(node)
        parts = question.data.get("questions")
        if parts is None:
            return self.resolve(text if text is not None else by_id, node)
        texts = {} if text is None else {str(parts[0]["id"]): text}
        self._bench.client.inbox.answer(question, {**texts, **by_id})
        return self._settle()

    def _question(self, node: str | None) -> Question:
        matches = [one for one in self.questions if node in (None, one.node_id)]
        if len(matches) != 1:
            texts = [f"{one.node_id}: {one.question}" for one in matches]
            problem = f"has {len(matches)} such questions: {texts}"
            raise AssertionError(f"{self.id} ({self.status}) {problem}")
        return matches[0]

    def cancel(self, reason: str | None = None) -> "BenchRun":
        self._run.cancel(reason=reason)
        return self._settle()

    # -- replay ------------------------------------------------------------------------------

    def replay(self) -> "Replayed":
        """Replay the run from its log. The host calls no model, tool or peer."""
        replay = BenchRun(self._bench, self._run.replay())
        return Replayed(replay, self._run.diff(replay.id))

    def fork(self, at: int, note: str | None = None, **edit: Any) -> "BenchRun":
        """Fork the run before event ``at``, which ``edit`` changes.

        ``edit`` has ``inputs``, ``turn``, ``decision`` or ``answer``, and other ``variables`` or
        ``models``.
        """
        return BenchRun(self._bench, self._run.fork(at, Edit(**edit), note=note))

    def diff(self, other: "BenchRun") -> RunDiff:
        return self._run.diff(other.id)

    def verify(self) -> RunVerification:
        """Verify that the log is one this host could have written."""
        return self._run.verify()


class Replayed:
    """A replay and its differences to the source."""

    def __init__(self, run: BenchRun, diff: RunDiff) -> None:
        self.run, self.diff = run, diff

    @property
    def identical(self) -> bool:
        return self.diff.same

    def __repr__(self) -> str:
        result = "identical" if self.identical else self.diff.event_diffs
        return f"<Replayed {self.run.id} {result}>"


class BenchThread:
    """A council that is over or waits for a person."""

    def __init__(self, bench: "Bench", thread: Thread) -> None:
        self._bench, self._thread = bench, thread
        self._settle()

    def _settle(self) -> "BenchThread":
        self._bench.settle(self._thread.run_id)
        self._thread.refresh()
        return self

    def __repr__(self) -> str:
        return f"<BenchThread {self.id} {self._thread.turns} turns>"

    @property
    def id(self) -> str:
        return self._thread.id

    @property
    def open(self) -> bool:
        return self._thread.refresh().open

    @property
    def floor(self) -> Mapping[str, Any]:
        """The floor of the council; empty if the host does not lead it."""
        floor: Mapping[str, Any] = msgspec.to_builtins(self._thread.refresh().view.floor) or {}
        return floor

    @property
    def run(self) -> BenchRun:
        return BenchRun(self._bench, self._bench.client.runs.get(self._thread.run_id))

    @property
    def events(self) -> list[Event]:
        return self._bench.log(self._thread.run_id)

    @property
    def transcript(self) -> list[Said]:
        return log_reading.collect_turns(self.events)

    def said_by(self, name: str) -> list[Any]:
        """Return the contents of one participant's turns."""
        return [turn.content for turn in self.transcript if turn.by == log_reading.short_name(name)]

    @property
    def speakers(self) -> list[str]:
        """The speaker of each turn."""
        return [turn.by for turn in self.transcript]

    def say(self, content: Any, to: str | None = None, speaker: str | None = None) -> "BenchThread":
        """Take a turn as a person or a participant, and let the council come to rest."""
        addressee = to if to is None or ":" in to or to == "all" else f"host:{to}"
        author = speaker if speaker is None or ":" in speaker else f"host:{speaker}"
        self._thread.say(content, to=addressee, speaker=author)
        return self._settle()

    def control(self, **content: Any) -> "BenchThread":
        """Send a control: ``control(mute=["host:bo"])``."""
        self._thread.control(content)
        return self._settle()

    def close(self, decision: str | Mapping[str, Any] | None = None) -> "BenchThread":
        self._thread.close(decision)
        return self._settle()

    def minutes(self) -> str:
        return self._thread.export("md").decode()


# -- assertions ----------------------------------------------------------------------------------


def handed_over(run: BenchRun, worker: str, *states: str) -> None:
    """Assert that the worker went through exactly these states."""
    handoff = run.handoff(worker)
    if handoff.states != list(states):
        error = f" ({handoff.error})" if handoff.error else ""
        path = _arrows(handoff.states)
        raise AssertionError(f"{worker} went {path}{error}, not {_arrows(states)}")


def said(thread_or_run: BenchThread | BenchRun, name: str, words: str) -> Said:
    """Return the participant's turn with these words. Raise AssertionError without one."""
    turns = [turn for turn in thread_or_run.transcript if turn.by == log_reading.short_name(name)]
    for turn in turns:
        if words in str(turn.content):
            return turn
    spoken = "\n".join(f"  {turn.index}: {turn.content}" for turn in turns) or "  nothing"
    raise AssertionError(f"{name} never said {words!r}, but:\n{spoken}")


def asked(run: BenchRun, words: str) -> Question:
    """Return the open question with these words. Raise AssertionError without one."""
    for question in run.questions:
        if words in question.question:
            return question
    texts = [question.question for question in run.questions]
    raise AssertionError(f"{run.id} ({run.status}) does not ask {words!r}; it asks: {texts}")


def happened(run: BenchRun, *types: str) -> None:
    """Assert that the log has these events in this order; others may be between them."""
    rest = iter(run.types)
    for type_ in types:
        if not any(logged == type_ for logged in rest):
            raise AssertionError(f"{type_} did not happen in this order; the log is {run.types}")


def _arrows(states: Sequence[str]) -> str:
    return " → ".join(states)
