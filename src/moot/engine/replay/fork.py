"""Fork a run: copy its history up to an event, then let the copy live on.

The history is written in one batch, and the fork's effects are owed as for any run. Children that
lived at the fork are forked with it, and remote children are requested again, so that no run has
two parents.
"""

import asyncio
from collections import Counter
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from moot.clock import Clock
from moot.core.catalogue import TERMINAL_TYPES
from moot.core.children import peer_requests
from moot.core.commands import Advance, decide
from moot.core.errors import SecretGone, Unprocessable
from moot.core.events import Event, NewEvent, millis, payload_fields
from moot.core.payloads.runs import RecordedEdit, RunFork
from moot.core.replay import carried_approvals, edits
from moot.core.replay.carried_secrets import CarriedSecrets, carry_secrets
from moot.core.replay.edits import HistoryEdit
from moot.core.replay.lineage import (
    branch_start,
    child_cut,
    child_forked_event,
    complete_cut,
    forked_child_id,
    living_children,
    postponed_due_times,
)
from moot.core.replay.replay import repeat_event
from moot.core.runs.answers import GateAnswer
from moot.core.runs.start import resolve_limits
from moot.core.speaker import Speaker
from moot.core.state.run import Run, apply
from moot.engine.head import Head
from moot.engine.host import Host
from moot.engine.memory.journal import refuse_forgotten_memory
from moot.engine.replay.ancestry import list_ancestors
from moot.engine.run_cache import refuse_newer_engine
from moot.engine.transaction import ReceiptFor, Transaction
from moot.engine.workflows.built_in import HOST_ONLY
from moot.store.records import Guard

#: events of a fork and of the children forked with it, which are one commit
MOST_EVENTS = 200_000


class ForkRequest(Struct, kw_only=True):
    """The options of a fork. ``by`` is the principal that makes it."""

    from_seq: int
    by: Speaker
    #: options that replace the source's
    configurable: dict[str, Any] = {}
    tags: list[str] | None = None
    metadata: dict[str, Any] = {}
    edit: HistoryEdit = HistoryEdit()
    #: the caller may answer approvals, so the source's approvals hold in the fork
    answers: bool = False
    note: str | None = None
    #: checks that the agents of the fork are unchanged at the commit
    guards: list[Guard] = []


class ForkPlan(Struct):
    """A run to be forked: the source up to an event, its secrets, and its living children."""

    source: Head
    log: list[Event]
    cut: int
    #: the source after its first ``cut`` events
    run: Run
    secrets: CarriedSecrets
    children: list[tuple[str, "ForkPlan"]]

    @property
    def history(self) -> list[Event]:
        return self.log[: self.cut]

    def family(self) -> list["ForkPlan"]:
        return [self, *(plan for _, child in self.children for plan in child.family())]


async def fork_run(
    host: Host, tenant: str, run_id: str, request: ForkRequest, receipt: ReceiptFor | None = None
) -> Run:
    """Create a new run that continues from an event of this one."""
    host.refuse_when_stopping()
    await list_ancestors(host.store, tenant, run_id)  # raises when there are too many
    plan = await _plan_fork(host, tenant, run_id, request)
    if sum(each.cut for each in plan.family()) > MOST_EVENTS:
        raise Unprocessable(
            f"A branch takes over at most {MOST_EVENTS} events; fork at an earlier one.",
            fromSeq=request.from_seq,
        )
    if plan.source.run.workflow_id in HOST_ONLY:
        raise Unprocessable("This run is the host's own; nobody leads it elsewhere.")
    family = ((each.run, each.source.flow) for each in plan.family())
    carried_approvals.check_inherited_approvals(family, request.answers or request.by.admin)
    prefix = run_id.partition("_")[0]
    head = Head(Run(host.clock.new_id(f"{prefix}_"), tenant=tenant), plan.source.flow)
    transaction = ForkTransaction(host, request, plan)
    await asyncio.to_thread(transaction.build, head)
    owed = transaction.owed()
    events = transaction.published[head.run.run_id]
    transaction.batch.receipt = receipt(head.run, events) if receipt is not None else None
    transaction.batch.guards += request.guards
    await host.commit(transaction, owed)
    return head.run


async def _plan_fork(host: Host, tenant: str, run_id: str, until: ForkRequest | str) -> ForkPlan:
    """Plan the fork that is requested, or the fork of a child at the time ``until``.

    Sealed values are read before the log, so that a secret which changes meanwhile is noticed.
    """
    sealed = await host.store.sealed(tenant, run_id)
    source = await host.view(tenant, run_id)
    refuse_newer_engine(source.run)
    log = await host.runs.log(source)
    if isinstance(until, str):
        cut = child_cut(log, until)
    else:
        cut = _cut_of(source.run, log, until)
    await refuse_forgotten_memory(host, source.run, log, cut)
    plan = await asyncio.to_thread(_fold_plan, source, log, cut, sealed)
    moment = log[cut - 1].timestamp
    for node_id, child in living_children(plan.run):
        plan.children.append((node_id, await _plan_fork(host, tenant, child, moment)))
    return plan


def _cut_of(run: Run, log: list[Event], request: ForkRequest) -> int:
    """Return how many events the fork copies. An edit replaces an event and the rest of its
    decision."""
    cut = max(request.from_seq, 1)
    if cut > len(log):
        raise past_end_error(run, cut)
    replaced = [name for name in request.edit.replaces if name != "inputs"]
    return cut if replaced else complete_cut(log, cut)


def past_end_error(run: Run, from_seq: int) -> Unprocessable:
    return Unprocessable(
        f"The run has {run.next_sequence} events; it cannot be forked at {from_seq}.",
        sourceRunId=run.run_id,
        fromSeq=from_seq,
    )


def _fold_plan(source: Head, log: list[Event], cut: int, sealed: dict[str, bytes]) -> ForkPlan:
    run = Run(source.run.run_id, tenant=source.run.tenant)
    for event in log[:cut]:
        apply(run, event)
    plain = {name: msgspec.json.decode(value) for name, value in sealed.items()}
    secrets = carry_secrets(run, source.flow, log, plain, log[-1].type in TERMINAL_TYPES)
    return ForkPlan(source, log, cut, run, secrets, [])


class ForkTransaction(Transaction):
    """The batch of a fork and of the children that are forked with it."""

    def __init__(self, host: Host, request: ForkRequest, plan: ForkPlan) -> None:
        super().__init__(host.flows, host.clock, host.limits)
        self._request, self._plan = request, plan
        self._stamps = fork_times(host.clock, plan)
        self._copying = False

    def build(self, head: Head) -> None:
        """Copy the history, fork the living children, and apply the edits."""
        request, plan = self._request, self._plan
        at = plan.log[request.from_seq] if request.from_seq < len(plan.log) else None
        edits.check_edit(request.edit, request.from_seq, at)
        changes = self._options(plan)
        if request.edit.inputs is not UNSET:
            flow, start = plan.source.flow, plan.log[0]
            new, sealed = edits.edit_inputs(flow, start, plan.secrets.sealed, request.edit.inputs)
            changes |= new
            plan.secrets.sealed.update(sealed)
        self._refuse_masks()
        self._fork(head, plan, self._fork_mark(), changes, None)
        self._edit(head, at)
        for each in self.new_heads:
            each.unfinished = bool(decide(each.run, each.flow, Advance(self._now // 1000)))
        self.unfinished = {each.run.run_id for each in self.new_heads if each.unfinished}

    def _options(self, plan: ForkPlan) -> dict[str, Any]:
        """Return the payload fields of the first event that differ from the source's."""
        request, payload = self._request, payload_fields(plan.log[0])
        changes: dict[str, Any] = {}
        configurable = request.configurable
        if request.edit.models:
            before = {**payload.get("configurable", {}), **configurable}.get("models", {})
            configurable = {**configurable, "models": {**before, **request.edit.models}}
        if configurable:
            changes["configurable"] = merged = {**payload.get("configurable", {}), **configurable}
            tree = payload.get("limits", {}).get("tree")
            changes["limits"] = resolve_limits(plan.source.flow, merged, self._limits, tree)
        if request.edit.inputs is not UNSET:
            changes["person"] = request.by.person  # other inputs are asked in the caller's name
        if request.tags is not None:
            changes["tags"] = request.tags
        if request.metadata:
            changes["metadata"] = {**payload.get("metadata", {}), **request.metadata}
        return changes

    def _fork_mark(self) -> RunFork:
        request, by, kinds = self._request, self._request.by.principal, self._request.edit.kinds
        return RunFork(
            source_run_id=self._plan.source.run.run_id,
            from_seq=request.from_seq,
            mode="branch",
            by=by,
            given=self._plan.cut if self._plan.cut != max(request.from_seq, 1) else None,
            note=request.note,
            edit=RecordedEdit(by=by, kinds=kinds) if kinds else None,
        )

    def _refuse_masks(self) -> None:
        """Raise SecretGone when the fork would run with a mask in place of a secret."""
        edited = {*self._request.edit.variables}
        if self._request.edit.inputs is not UNSET:
            edited |= set(self._request.edit.inputs)
        replaced = {f"var:{name}" for name in edited}
        lost = [name for name in self._plan.secrets.lost if name not in replaced]
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
        plan: ForkPlan,
        mark: RunFork,
        changes: dict[str, Any],
        parent: Head | None,
    ) -> None:
        self.new_heads.append(head)
        self._family[head.run.run_id] = head
        self._copy(head, plan, mark, changes, parent)
        for node_id, child in plan.children:
            self._fork_child(head, node_id, child)
        for name in peer_requests.inherited_requests(head.run):
            request_event = plan.log[head.run.abroad[name].asked_seq]
            self._record(head, peer_requests.fork_request_event(head.run, name, request_event))

    def _fork_child(self, head: Head, node_id: str, plan: ForkPlan) -> None:
        source = plan.source.run.run_id
        name = forked_child_id(head.run.run_id, source)
        child = Head(Run(name, tenant=head.run.tenant), plan.source.flow)
        mark = RunFork(source_run_id=source, from_seq=plan.cut, mode="branch")
        self._fork(child, plan, mark, {}, head)
        copied_events = {each.source.run.run_id: each.cut for each in plan.family()}
        self._record(head, child_forked_event(node_id, source, name, copied_events))

    def _copy(
        self,
        head: Head,
        plan: ForkPlan,
        mark: RunFork,
        changes: dict[str, Any],
        parent: Head | None,
    ) -> None:
        """Copy the history unchanged, except that pending deadlines start again."""
        self._copying = True
        first = branch_start(plan.log[0], mark, changes, parent.run if parent else None)
        last = self._plan.log[self._plan.cut - 1].timestamp
        late = postponed_due_times(plan.run, self._clock.millis() - millis(last))
        places = {event.sequence: event.sequence for event in plan.history}
        for event in [first, *plan.history[1:]]:
            due = late.get(event.sequence)
            if due is not None:
                hints = event.hints if event.hints is not UNSET else {}
                event = replace(event, hints={**hints, "dueAt": due})
            self._now = self._stamps[event.timestamp]
            self._record(head, repeat_event(event, plan.source.run.run_id, places))
        self._now = max(self._clock.micros(), head.earliest)
        self._copying = False
        self._seal(head, plan.secrets.sealed)

    def _seal(self, head: Head, sealed: dict[str, Any]) -> None:
        run = head.run
        if sealed and not run.terminal:
            head.sealed.update(sealed)
            self.batch.sealed += [
                (run.tenant, run.run_id, name, msgspec.json.encode(value))
                for name, value in sealed.items()
            ]

    def _apply_consequences(self, head: Head, new: NewEvent, event: Event) -> None:
        """Do not repeat consequences of copied events."""
        if not self._copying:
            super()._apply_consequences(head, new, event)

    def _edit(self, head: Head, at: Event | None) -> None:
        edit, speaker = self._request.edit, self._request.by
        if not edit.variables and not [name for name in edit.replaces if name != "inputs"]:
            return
        run, flow = head.run, head.flow
        if run.terminal:
            raise Unprocessable(
                f"The run had ended by event {self._request.from_seq}; fork before its end.",
                fromSeq=self._request.from_seq,
            )
        for event in edits.edit_variables(run, flow, edit.variables, speaker.principal):
            self._record(head, event)
        if at is not None and edit.replaces and edit.inputs is UNSET:
            answer = GateAnswer(
                node_id=str(at.node_id), value=edit.answer, who=speaker, at=self._now // 1000
            )
            for event in edits.decide_edit(run, flow, edit, at, answer):
                self._record(head, event)


def fork_times(clock: Clock, plan: ForkPlan) -> dict[str, int]:
    """Return old time -> new time for the whole family.

    The order stays the same, and each time leaves room for as many microseconds as it has events.
    """
    room: Counter[str] = Counter()
    for each in plan.family():
        room |= Counter(event.timestamp for event in each.history)
    times = sorted(room)
    ends = accumulate(room[time] for time in times)
    first = clock.micros() - room.total()
    return {time: first + end - room[time] for time, end in zip(times, ends, strict=True)}
