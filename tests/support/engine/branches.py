"""What the tests of branches share: a branch, and what must be so of every one."""

from typing import Any

import msgspec
from msgspec import UNSET

from moot.core.events import Event
from moot.core.replay.edits import HistoryEdit
from moot.core.state.run import Run
from moot.engine.host import Host
from moot.engine.replay.fork import ForkRequest, fork_run
from tests.support.engine.hosts import TENANT, log
from tests.support.engine.replays import CHAIR
from tests.support.event_payloads import payload_json

#: what is a branch's own in its first event
OWN = ("forkedFrom", "parentRunId", "parentNodeId", "scopeId", "memory")


async def forked(host: Host, source: str, from_seq: int, **given: Any) -> Run:
    """The branch, whose history is that of its source, which is not touched."""
    before = await log(host, source)
    edit = msgspec.convert(given.pop("edit", {}), HistoryEdit)
    wanted = ForkRequest(from_seq=from_seq, by=CHAIR, edit=edit, **given)
    run = await fork_run(host, TENANT, source, wanted)
    told = await log(host, run.run_id)
    assert_history(before, told, max(from_seq, 1), bool(given) or bool(edit.kinds))
    after = await log(host, source)
    assert after[: len(before)] == before, "the source was touched"
    return run


def assert_history(before: list[Event], told: list[Event], cut: int, changed: bool) -> None:
    assert [event.sequence for event in told] == list(range(len(told)))
    assert [event.type for event in told].count("run.started") == 1
    first = 1 if changed else 0
    for was, now in zip(before[first:cut], told[first:cut], strict=True):
        then, said = (
            {k: v for k, v in payload_json(e).items() if k not in OWN} for e in (was, now)
        )
        assert (was.type, was.node_id, then) == (now.type, now.node_id, said)
        assert hints(was) == hints(now)
        assert place(was) == place(now)
    mark = payload_json(told[0])["forkedFrom"]
    assert (mark["sourceRunId"], mark["mode"]) == (before[0].run_id, "branch")


def hints(event: Event) -> dict[str, Any]:
    found = event.hints if event.hints is not UNSET else {}
    return {key: value for key, value in found.items() if key != "dueAt"}


def place(event: Event) -> str:
    """Where the cause stands; the first event of a fork has none."""
    if not event.sequence or event.causation_id is UNSET:
        return ""
    return event.causation_id.rpartition(".")[2]
