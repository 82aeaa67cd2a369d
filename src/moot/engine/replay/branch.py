"""Branch: a new run with another one's history up to an event and a life of its own from there.

The history is said again in one batch; what is owed after it is seen to as for any run. Children
that lived at the fork are forked with it, and those on other hosts asked for anew, so that no run
has two parents.
"""

import asyncio
from collections import Counter
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.children import peer_requests
from moot.core.commands import Advance, decide
from moot.core.errors import Forbidden, SecretGone, Unprocessable
from moot.core.events import TERMINAL_TYPES, Event, NewEvent, millis
from moot.core.replay import carried_approvals, edits
from moot.core.replay.carried_secrets import Carried, carried
from moot.core.replay.edits import Edit
from moot.core.replay.replay import retold
from moot.core.runs.answers import Answer
from moot.core.runs.start import limits_of
from moot.core.speaker import Speaker
from moot.core.state import lineage
from moot.core.state.run import Run, apply
from moot.engine.head import Head
from moot.engine.host import Host
from moot.engine.memory.journal import refuse_forgotten
from moot.engine.replay.ancestry import ancestors
from moot.engine.run_cache import refuse_newer
from moot.engine.transaction import ReceiptFor, Turn
from moot.engine.workflows.built_in import HOST_ONLY
from moot.store.protocol import Guard

#: events of a branch and of the children forked with it: they are one commit
MOST_EVENTS = 200_000


class Wanted(Struct, kw_only=True):
    """What a branch shall be. ``by`` is who makes it."""

    from_seq: int
    by: Speaker
    #: options in the place of the source's
    configurable: dict[str, Any] = {}
    tags: list[str] | None = None
    metadata: dict[str, Any] = {}
    edit: Edit = Edit()
    #: it is a person who may answer: what was allowed in the source is allowed again
    answers: bool = False
    note: str | None = None
    #: who is to go on with it is still as it was
    guards: list[Guard] = []


class Plan(Struct):
    """A run to be forked: the source up to an event, its secrets, and its living children."""

    source: Head
    log: list[Event]
    cut: int
    #: the source after its first ``cut`` events
    run: Run
    secrets: Carried
    children: list[tuple[str, "Plan"]]

    @property
    def given(self) -> list[Event]:
        return self.log[: self.cut]

    def family(self) -> list["Plan"]:
        return [self, *(plan for _, child in self.children for plan in child.family())]


async def branch(
    host: Host, tenant: str, run_id: str, wanted: Wanted, receipt: ReceiptFor | None = None
) -> Run:
    """A new run that goes on from an event of this one."""
    host.refuse_when_stopping()
    await ancestors(host.store, tenant, run_id)  # or there are too many
    plan = await _plan(host, tenant, run_id, wanted)
    if sum(each.cut for each in plan.family()) > MOST_EVENTS:
        raise Unprocessable(
            f"A branch takes over at most {MOST_EVENTS} events; fork at an earlier one.",
            fromSeq=wanted.from_seq,
        )
    _check_leave(plan, wanted)
    prefix = run_id.partition("_")[0]
    head = Head(Run(host.clock.new_id(f"{prefix}_"), tenant=tenant), plan.source.flow)
    turn = Branch(host, wanted, plan)
    await asyncio.to_thread(turn.tell, head)
    owed = turn.owed()
    events = turn.published[head.run.run_id]
    turn.batch.receipt = receipt(head.run, events) if receipt is not None else None
    turn.batch.guards += wanted.guards
    await host.commit(turn, owed)
    return head.run


def _check_leave(plan: Plan, wanted: Wanted) -> None:
    """What waits behind somebody's word was allowed once: who lets it happen again must be one who
    could have allowed it. What the host begins itself, nobody begins again."""
    if plan.source.run.workflow_id in HOST_ONLY:
        raise Unprocessable("This run is the host's own; nobody leads it elsewhere.")
    told = any(carried_approvals.taken(each.run, each.source.flow) for each in plan.family())
    if told and not (wanted.answers or wanted.by.admin):
        raise Forbidden(
            "Somebody was asked in this run, and what comes next rests on the answer: to take it up"
            " from here a person's key with approvals:respond is needed.",
            scopeRequired="approvals:respond",
        )


async def _plan(host: Host, tenant: str, run_id: str, until: Wanted | str) -> Plan:
    """As it is wanted, or of a child what was there at a time.

    What is sealed is read before the log: a secret that changes meanwhile is seen to have."""
    held = await host.store.sealed(tenant, run_id)
    source = await host.view(tenant, run_id)
    refuse_newer(source.run)
    log = await host.runs.log(source)
    if isinstance(until, str):
        cut = lineage.child_cut(log, until)
    else:
        cut = _cut(source.run, log, until)
    await refuse_forgotten(host, source.run, log, cut)
    plan = await asyncio.to_thread(_folded, source, log, cut, held)
    moment = log[cut - 1].timestamp
    for node_id, child in lineage.living(plan.run):
        plan.children.append((node_id, await _plan(host, tenant, child, moment)))
    return plan


def _cut(run: Run, log: list[Event], wanted: Wanted) -> int:
    """How many events are given. An edit replaces an event and the rest of its decision."""
    cut = max(wanted.from_seq, 1)
    if cut > len(log):
        raise past_the_end(run, cut)
    replaced = [name for name in wanted.edit.replaces if name != "inputs"]
    return cut if replaced else lineage.whole_cut(log, cut)


def past_the_end(run: Run, from_seq: int) -> Unprocessable:
    return Unprocessable(
        f"The run has {run.next_sequence} events; it cannot be forked at {from_seq}.",
        sourceRunId=run.run_id,
        fromSeq=from_seq,
    )


def _folded(source: Head, log: list[Event], cut: int, held: dict[str, bytes]) -> Plan:
    run = Run(source.run.run_id, tenant=source.run.tenant)
    for event in log[:cut]:
        apply(run, event)
    plain = {name: msgspec.json.decode(value) for name, value in held.items()}
    secrets = carried(run, source.flow, log, plain, log[-1].type in TERMINAL_TYPES)
    return Plan(source, log, cut, run, secrets, [])


class Branch(Turn):
    """The batch of a branch and of the children that are forked with it."""

    def __init__(self, host: Host, wanted: Wanted, plan: Plan) -> None:
        super().__init__(host.flows, host.clock, host.limits)
        self._wanted, self._plan = wanted, plan
        self._stamps = stamps(host.clock, plan)
        self._copying = False

    def tell(self, head: Head) -> None:
        """History as it was, the children that live on, and what was edited."""
        wanted, plan = self._wanted, self._plan
        at = plan.log[wanted.from_seq] if wanted.from_seq < len(plan.log) else None
        edits.check(wanted.edit, wanted.from_seq, at)
        changes = self._options(plan)
        if wanted.edit.inputs is not UNSET:
            flow, start = plan.source.flow, plan.log[0]
            new, sealed = edits.changed_inputs(flow, start, plan.secrets.sealed, wanted.edit.inputs)
            changes |= new
            plan.secrets.sealed.update(sealed)
        self._refuse_masks()
        self._fork(head, plan, self._fork_mark(), changes, None)
        self._edit(head, at)
        for each in self.born:
            each.unfinished = bool(decide(each.run, each.flow, Advance(self._now // 1000)))
        self.unfinished = {each.run.run_id for each in self.born if each.unfinished}

    def _options(self, plan: Plan) -> dict[str, Any]:
        """What of the beginning is not as it was."""
        wanted, said = self._wanted, plan.log[0].payload
        changes: dict[str, Any] = {}
        asked = wanted.configurable
        if wanted.edit.models:
            before = {**said.get("configurable", {}), **asked}.get("models", {})
            asked = {**asked, "models": {**before, **wanted.edit.models}}
        if asked:
            changes["configurable"] = merged = {**said.get("configurable", {}), **asked}
            tree = said.get("limits", {}).get("tree")
            changes["limits"] = limits_of(plan.source.flow, merged, self._limits, tree)
        if wanted.edit.inputs is not UNSET:
            changes["person"] = wanted.by.person  # who asks otherwise asks in their own name
        if wanted.tags is not None:
            changes["tags"] = wanted.tags
        if wanted.metadata:
            changes["metadata"] = {**said.get("metadata", {}), **wanted.metadata}
        return changes

    def _fork_mark(self) -> dict[str, Any]:
        wanted = self._wanted
        mark = {**_mark(self._plan.source.run.run_id, wanted.from_seq), "by": wanted.by.principal}
        if self._plan.cut != max(wanted.from_seq, 1):
            mark["given"] = self._plan.cut
        if wanted.note is not None:
            mark["note"] = wanted.note
        if wanted.edit.kinds:
            mark["edit"] = {"by": wanted.by.principal, "kinds": wanted.edit.kinds}
        return mark

    def _refuse_masks(self) -> None:
        """No run goes on with a mask in the place of what it masks."""
        edited = {*self._wanted.edit.variables}
        if self._wanted.edit.inputs is not UNSET:
            edited |= set(self._wanted.edit.inputs)
        given = {f"var:{name}" for name in edited}
        lost = [name for name in self._plan.secrets.lost if name not in given]
        for _, child in self._plan.children:
            lost += [name for each in child.family() for name in each.secrets.lost]
        if lost:
            names = sorted({name.partition(":")[2] for name in lost})
            raise SecretGone(
                f"The branch needs secrets that are not held any more: {', '.join(names)}. Give"
                " them with edit.variables or edit.inputs, or fork before they were set.",
                names=names,
            )

    def _fork(
        self,
        head: Head,
        plan: Plan,
        mark: dict[str, Any],
        changes: dict[str, Any],
        parent: Head | None,
    ) -> None:
        self.born.append(head)
        self._family[head.run.run_id] = head
        self._copy(head, plan, mark, changes, parent)
        for node_id, child in plan.children:
            self._fork_child(head, node_id, child)
        for name in peer_requests.others(head.run):
            asked = plan.log[head.run.abroad[name].asked_seq]
            self._record(head, peer_requests.anew(head.run, name, asked))

    def _fork_child(self, head: Head, node_id: str, plan: Plan) -> None:
        source = plan.source.run.run_id
        name = lineage.child_id(head.run.run_id, source)
        child = Head(Run(name, tenant=head.run.tenant), plan.source.flow)
        self._fork(child, plan, _mark(source, plan.cut), {}, head)
        given = {each.source.run.run_id: each.cut for each in plan.family()}
        self._record(head, lineage.child_forked(node_id, source, name, given))

    def _copy(
        self,
        head: Head,
        plan: Plan,
        mark: dict[str, Any],
        changes: dict[str, Any],
        parent: Head | None,
    ) -> None:
        """Word for word; only what is waited for begins its time anew."""
        self._copying = True
        first = lineage.started(plan.log[0], mark, changes, parent.run if parent else None)
        last = self._plan.log[self._plan.cut - 1].timestamp
        late = lineage.put_off(plan.run, self._clock.millis() - millis(last))
        places = {event.sequence: event.sequence for event in plan.given}
        for event in [first, *plan.given[1:]]:
            due = late.get(event.sequence)
            if due is not None:
                hints = event.hints if event.hints is not UNSET else {}
                event = replace(event, hints={**hints, "dueAt": due})
            self._now = self._stamps[event.timestamp]
            self._record(head, retold(event, plan.source.run.run_id, places))
        self._now = max(self._clock.micros(), head.earliest)
        self._copying = False
        self._hold(head, plan.secrets.sealed)

    def _hold(self, head: Head, sealed: dict[str, Any]) -> None:
        run = head.run
        if sealed and not run.terminal:
            head.sealed.update(sealed)
            self.batch.sealed += [
                (run.tenant, run.run_id, name, msgspec.json.encode(value))
                for name, value in sealed.items()
            ]

    def _beside(self, head: Head, new: NewEvent, event: Event) -> None:
        """What the source caused elsewhere is not caused again by saying so."""
        if not self._copying:
            super()._beside(head, new, event)

    def _edit(self, head: Head, at: Event | None) -> None:
        edit, who = self._wanted.edit, self._wanted.by
        if not edit.variables and not [name for name in edit.replaces if name != "inputs"]:
            return
        run, flow = head.run, head.flow
        if run.terminal:
            raise Unprocessable(
                f"The run had ended by event {self._wanted.from_seq}; fork before its end.",
                fromSeq=self._wanted.from_seq,
            )
        for event in edits.changed_variables(run, flow, edit.variables, who.principal):
            self._record(head, event)
        if at is not None and edit.replaces and edit.inputs is UNSET:
            given = Answer(
                node_id=str(at.node_id), value=edit.answer, who=who, at=self._now // 1000
            )
            for event in edits.decided(run, flow, edit, at, given):
                self._record(head, event)


def _mark(source: str, from_seq: int) -> dict[str, Any]:
    return {"sourceRunId": source, "fromSeq": from_seq, "mode": "branch"}


def stamps(clock: Clock, plan: Plan) -> dict[str, int]:
    """Times of now for the times of then, in the same order over the whole family, and as far
    from one another as there are events of one time."""
    room: Counter[str] = Counter()
    for each in plan.family():
        room |= Counter(event.timestamp for event in each.given)
    times = sorted(room)
    ends = accumulate(room[time] for time in times)
    first = clock.micros() - room.total()
    return {time: first + end - room[time] for time, end in zip(times, ends, strict=True)}
