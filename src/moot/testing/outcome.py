"""A run and a council on the bench: what came of them, what to do next, what must be so."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moot.client import Edit, Run, Thread
from moot.client.http.operation import given
from moot.client.http.sse import Event
from moot.testing import story
from moot.testing.story import Handoff, Said
from moot.wire.runs import Diff, Question, Verified

if TYPE_CHECKING:
    from moot.testing.bench import Bench


class BenchRun:
    """A run that has come to rest: it has ended, or waits for somebody."""

    def __init__(self, bench: "Bench", run: Run) -> None:
        self._bench, self._run = bench, run
        self._settled()

    def _settled(self) -> "BenchRun":
        self._bench.settle(self._run.id)
        self._run.refresh()
        return self

    def __repr__(self) -> str:
        return f"<BenchRun {self.id} {self.status}>"

    # -- what came of it ---------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def status(self) -> str:
        """As of now: what happened meanwhile counts."""
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
        """The log in short: the types of its events."""
        return [event.type for event in self.events]

    def event(self, type: str, node: str | None = None) -> Event:
        """The first event of this type."""
        for event in self.events:
            if event.type == type and node in (None, event.node):
                return event
        where = f" at node {node}" if node else ""
        raise AssertionError(f"{self.id} has no event {type}{where}; it has: {self.types}")

    def node(self, name: str) -> Any:
        """The state of a node: status, outputs, error."""
        nodes = self._run.refresh().snapshot.node_states
        if name not in nodes:
            raise AssertionError(f"{self.id} has no node '{name}'; it has: {sorted(nodes)}")
        return nodes[name]

    @property
    def handoffs(self) -> list[Handoff]:
        return story.handoffs(self.events)

    def handoff(self, worker: str, number: int = -1) -> Handoff:
        """The work handed to a worker, the last time unless ``number`` says which."""
        found = [one for one in self.handoffs if worker in (one.worker, story.short(one.worker))]
        if not found:
            names = [one.worker for one in self.handoffs]
            raise AssertionError(f"Nothing was handed to '{worker}'; only to: {names}")
        return found[number]

    @property
    def children(self) -> list["BenchRun"]:
        return [BenchRun(self._bench, child) for child in self._run.children()]

    @property
    def transcript(self) -> list[Said]:
        return story.transcript(self.events)

    @property
    def questions(self) -> list[Question]:
        """What it waits for a person to answer, its children included."""
        found = self._run.questions()
        for child in self._run.children():
            if child.waiting:
                found += BenchRun(self._bench, child).questions
        return found

    # -- what to do next ---------------------------------------------------------------------

    def resolve(self, value: Any, node: str | None = None, **more: Any) -> "BenchRun":
        """Answer the open question: ``approve``, ``reject``, or any value it takes."""
        if isinstance(value, str):
            action = {"approve": "accept"}.get(value, value)
            value = {"action": action, **more}
        question = self._question(node)
        self._bench.client.inbox.resolve(question, value)
        return self._settled()

    def approve(self, node: str | None = None, *, comment: str | None = None) -> "BenchRun":
        return self.resolve("approve", node, **given(comment=comment))

    def reject(self, node: str | None = None, *, comment: str | None = None) -> "BenchRun":
        return self.resolve("reject", node, **given(comment=comment))

    def answer(
        self, text: str | None = None, /, node: str | None = None, **by_id: Any
    ) -> "BenchRun":
        """Answer a question with a text, or several by their ids."""
        question = self._question(node)
        asked = question.data.get("questions")
        if asked is None:
            return self.resolve(text if text is not None else by_id, node)
        texts = {} if text is None else {str(asked[0]["id"]): text}
        self._bench.client.inbox.answer(question, {**texts, **by_id})
        return self._settled()

    def _question(self, node: str | None) -> Question:
        found = [one for one in self.questions if node in (None, one.node_id)]
        if len(found) != 1:
            asked = [f"{one.node_id}: {one.question}" for one in found]
            raise AssertionError(
                f"{self.id} ({self.status}) has {len(found)} such questions: {asked}"
            )
        return found[0]

    def cancel(self, reason: str | None = None) -> "BenchRun":
        self._run.cancel(reason=reason)
        return self._settled()

    # -- saying it again ---------------------------------------------------------------------

    def replay(self) -> "Replayed":
        """The run said again from its record. Nothing is called."""
        again = BenchRun(self._bench, self._run.replay())
        return Replayed(again, self._run.diff(again.id))

    def fork(self, at: int, note: str | None = None, **edit: Any) -> "BenchRun":
        """The run taken up before event ``at``, which ``edit`` says otherwise: ``inputs``,
        ``turn``, ``decision`` or ``answer``; with other ``variables`` or ``models``."""
        return BenchRun(self._bench, self._run.fork(at, Edit(**edit), note=note))

    def diff(self, other: "BenchRun") -> Diff:
        return self._run.diff(other.id)

    def verify(self) -> Verified:
        """Whether its log is what the workflow and the facts in it lead to."""
        return self._run.verify()


class Replayed:
    """A replay beside its source."""

    def __init__(self, run: BenchRun, diff: Diff) -> None:
        self.run, self.diff = run, diff

    @property
    def identical(self) -> bool:
        return self.diff.same

    def __repr__(self) -> str:
        return (
            f"<Replayed {self.run.id} {'identical' if self.identical else self.diff.event_diffs}>"
        )


class BenchThread:
    """A council that has fallen silent: it is over, or waits for a person."""

    def __init__(self, bench: "Bench", thread: Thread) -> None:
        self._bench, self._thread = bench, thread
        self._settled()

    def _settled(self) -> "BenchThread":
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
        """How it is led, and where it stands; empty where nobody leads it."""
        return self._thread.refresh().view.floor or {}

    @property
    def run(self) -> BenchRun:
        return BenchRun(self._bench, self._bench.client.runs.get(self._thread.run_id))

    @property
    def events(self) -> list[Event]:
        return self._bench.log(self._thread.run_id)

    @property
    def transcript(self) -> list[Said]:
        return story.transcript(self.events)

    def said_by(self, name: str) -> list[Any]:
        """Everything one participant has said."""
        return [said.content for said in self.transcript if said.by == story.short(name)]

    @property
    def speakers(self) -> list[str]:
        """Who spoke, turn by turn."""
        return [said.by for said in self.transcript]

    def say(self, content: Any, to: str | None = None, speaker: str | None = None) -> "BenchThread":
        """A turn of a person, or of a participant; then the council goes on."""
        whom = to if to is None or ":" in to or to == "all" else f"host:{to}"
        who = speaker if speaker is None or ":" in speaker else f"host:{speaker}"
        self._thread.say(content, to=whom, speaker=who)
        return self._settled()

    def control(self, **content: Any) -> "BenchThread":
        """``control(mute=["host:bo"])``"""
        self._thread.control(content)
        return self._settled()

    def close(self, decision: str | Mapping[str, Any] | None = None) -> "BenchThread":
        self._thread.close(decision)
        return self._settled()

    def minutes(self) -> str:
        return self._thread.export("md").decode()


# -- what must be so -----------------------------------------------------------------------------


def handed_over(run: BenchRun, worker: str, *states: str) -> None:
    """The worker went through exactly these states."""
    found = run.handoff(worker)
    if found.states != list(states):
        why = f" ({found.error})" if found.error else ""
        raise AssertionError(f"{worker} went {_arrows(found.states)}{why}, not {_arrows(states)}")


def said(story_of: BenchThread | BenchRun, name: str, words: str) -> Said:
    """The turn in which somebody said these words."""
    turns = [turn for turn in story_of.transcript if turn.by == story.short(name)]
    for turn in turns:
        if words in str(turn.content):
            return turn
    spoken = "\n".join(f"  {turn.index}: {turn.content}" for turn in turns) or "  nothing"
    raise AssertionError(f"{name} never said {words!r}, but:\n{spoken}")


def asked(run: BenchRun, words: str) -> Question:
    """The open question that has these words in it."""
    for question in run.questions:
        if words in question.question:
            return question
    found = [question.question for question in run.questions]
    raise AssertionError(f"{run.id} ({run.status}) does not ask {words!r}; it asks: {found}")


def happened(run: BenchRun, *types: str) -> None:
    """These events are in the log, in this order; others may be between them."""
    rest = iter(run.types)
    for type_ in types:
        if not any(found == type_ for found in rest):
            raise AssertionError(f"{type_} did not happen in this order; the log is {run.types}")


def _arrows(states: Sequence[str]) -> str:
    return " → ".join(states)
