"""A life said again through the host's own replay, with what must be so of every replay."""

from typing import Any, NamedTuple

from msgspec import UNSET

from moot.core.events import Event, decode
from moot.core.runs.start import RunLimits
from moot.core.state.run import Run, fold
from moot.core.workflows.flow import Flow
from moot.engine.head import Head
from moot.engine.replay.replay import ReplayTransaction
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Batch
from tests.support.core.simulator import TENANT, Life
from tests.support.event_payloads import payload_json

FORK = "fork"
#: what a run is to others, which a replay is not
OWN = ("forkedFrom", "parentRunId", "parentNodeId", "scopeId", "memory")
#: what operators did is not said again
OPERATORS = ("run.paused", "run.resumed", "moot.pause.requested")


class LaterClock:
    """Two years later; every look at it takes a little."""

    def __init__(self) -> None:
        self._micros = 1_763_072_000_000_000

    def micros(self) -> int:
        self._micros += 7
        return self._micros

    def millis(self) -> int:
        return self.micros() // 1000

    def new_id(self, prefix: str) -> str:
        raise AssertionError("a replay draws no ids")

    new_secret = new_id


class NoFlows(WorkflowRegistry):
    def __init__(self) -> None:
        pass

    def known(self, tenant: str, workflow_id: str) -> Flow | None:
        raise AssertionError("a replay hands work to nobody")


class Retold(NamedTuple):
    run: Run
    log: list[Event]
    batch: Batch

    def told(self, type_: str) -> list[Event]:
        return [event for event in self.log if event.type == type_]

    def order(self) -> list[tuple[str, Any]]:
        return order(self.log)


def retold(source: Life, from_seq: int = 0, flow: Flow | None = None) -> Retold:
    """The replay of a life, checked for what holds whatever was replayed."""
    turn = ReplayTransaction(NoFlows(), LaterClock(), RunLimits())
    head = Head(Run(FORK, tenant=TENANT), flow or source.flow)
    turn.build(head, list(source.log), from_seq)
    turn.owed()
    [append] = turn.batch.appends
    found = Retold(head.run, [decode(row) for row in append.events], turn.batch)
    _check_log(found)
    _check_history(source, found, from_seq)
    _check_beside(found)
    return found


def order(log: list[Event]) -> list[tuple[str, Any]]:
    """What can be seen of a log: types and nodes."""
    return [(event.type, None if event.node_id is UNSET else event.node_id) for event in log]


def _check_log(found: Retold) -> None:
    log = found.log
    assert [event.sequence for event in log] == list(range(len(log)))
    assert [event.event_id for event in log] == [f"{FORK}.{n}" for n in range(len(log))]
    assert {event.run_id for event in log} == {FORK}
    assert [event.type for event in log].count("run.started") == 1
    assert len(found.told("replay.diverged")) <= 1
    assert log[0].causation_id is UNSET
    for event in log[1:]:
        assert event.causation_id is not UNSET
        run_id, _, sequence = event.causation_id.rpartition(".")
        assert (run_id, int(sequence) < event.sequence) == (FORK, True), event
    ends = [e for e in log if e.type in ("run.completed", "run.failed", "run.cancelled")]
    assert ends in ([], log[-1:])
    assert fold(FORK, log) == found.run, "memory and log say different things"


def _check_history(source: Life, found: Retold, from_seq: int) -> None:
    """Everything before the sequence is as it was, but for ids and times."""
    for was, now in zip(source.log[:from_seq], found.log[:from_seq], strict=True):
        then, said = (
            {k: v for k, v in payload_json(e).items() if k not in OWN} for e in (was, now)
        )
        assert (was.type, was.node_id, was.hints) == (now.type, now.node_id, now.hints)
        assert _homeless(source, then) == _homeless(source, said)
    forked = {"sourceRunId": source.run.run_id, "fromSeq": from_seq, "mode": "replay"}
    assert payload_json(found.log[0])["forkedFrom"] == forked


def _homeless(source: Life, value: Any) -> Any:
    """Without the id of either run."""
    if isinstance(value, dict):
        return {key: _homeless(source, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_homeless(source, item) for item in value]
    if isinstance(value, str):
        return value.replace(f"{source.run.run_id}:", "*:").replace(f"{FORK}:", "*:")
    return value


def _check_beside(found: Retold) -> None:
    """Nothing is caused elsewhere."""
    batch = found.batch
    assert not (batch.effects or batch.artifacts or batch.unseal or batch.notes)
    assert not (batch.sealed and found.run.terminal)
    assert {run_id for _, run_id, _, _ in batch.sealed} <= {FORK}
    assert {append.run_id for append in batch.appends} == {FORK}


def check_same(source: Life, found: Retold) -> None:
    """The replay of a whole life comes to the same."""
    assert found.told("replay.diverged") == []
    then, now = source.run, found.run
    lived = [pair for pair in order(source.log) if pair[0] not in OPERATORS]
    assert [pair for pair in found.order() if pair[0] not in OPERATORS] == lived
    assert (now.status, now.outputs) == (then.status, then.outputs)
    assert now.variables == then.variables
    assert now.channels == then.channels
    assert (now.messages, now.message_ids) == (then.messages, then.message_ids)
    assert now.error == then.error or (now.error and now.error.code) == (
        then.error and then.error.code
    )
    assert list(now.conversations) == list(then.conversations)
    for key, talk in then.conversations.items():
        again = now.conversations[key]
        assert (again.turns, again.open, again.roster) == (talk.turns, talk.open, talk.roster)
        assert again.conversation_id == talk.conversation_id
    assert {k: (n.status, n.attempt) for k, n in now.nodes.items()} == {
        k: (n.status, n.attempt) for k, n in then.nodes.items()
    }
    assert now.interrupts == {} or set(now.interrupts) == set(then.interrupts)
