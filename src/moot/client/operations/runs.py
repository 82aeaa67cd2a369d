"""Runs and what waits in them: every call there is."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

from msgspec import Struct

from moot.client.http.operation import Again, Sent, given, operation
from moot.wire import runs
from moot.wire.runs import Data

SSE = "text/event-stream"
Mode = Literal["debug", "updates", "messages", "values"]
#: how the ids of manifests begin; any other bare name is an agent of the host
MANIFEST = "local.agents."
#: what a server waits at most in one call
LONGEST_POLL_S = 60
LONGEST_INBOX_WAIT_S = 30


class Options(Struct, frozen=True, kw_only=True):
    """How a run is started, besides its inputs."""

    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = {}
    configurable: Mapping[str, Any] = {}
    scope_id: str | None = None
    #: refuse to start while another run of the scope is active
    exclusive: bool = False
    callback_url: str | None = None
    #: for a start that must be found again, by this program after a crash or by another one
    idempotency_key: str | None = None


class Edit(Struct, frozen=True, kw_only=True):
    """What a fork says otherwise: one event (inputs, turn, decision or answer), and variables and
    models of agents from there on."""

    inputs: Mapping[str, Any] | None = None
    turn: str | None = None
    decision: Mapping[str, Any] | None = None
    answer: Any = None
    variables: Mapping[str, Any] | None = None
    models: Mapping[str, str] | None = None

    def body(self) -> Data:
        turn = None if self.turn is None else {"content": self.turn}
        return given(
            inputs=self.inputs, turn=turn, decision=self.decision, answer=self.answer,
            variables=self.variables, models=self.models,
        )  # fmt: skip


class Where(TypedDict, total=False):
    """Which runs are listed."""

    status: str | Sequence[str] | None
    workflow: str | None
    agent: str | None
    parent: str | None
    fork_of: str | None
    prefix: str | None


class Created(runs.Answer, frozen=True):
    run_id: str
    status: str
    events_url: str = ""
    status_url: str = ""


@operation("POST /v1/runs", Created)
def start(
    workflow: str,
    inputs: Mapping[str, Any] | None = None,
    options: Options | None = None,
    /,
    **named: Any,
) -> Sent:
    """Start a run of a workflow. Inputs are given as one mapping, by name, or both."""
    return _started({"workflowId": workflow}, {**(inputs or {}), **named}, options or Options())


@operation("POST /v1/runs", Created)
def ask(
    agent: str,
    prompt: str | None = None,
    options: Options | None = None,
    /,
    *,
    task: Mapping[str, Any] | None = None,
) -> Sent:
    """Start a run that is a question to an agent, in words or as data."""
    inputs = given(prompt=prompt, task=task)
    whole = ":" in agent or agent.startswith(MANIFEST)
    agent_id = agent if whole else f"host:{agent}"
    return _started({"agentId": agent_id}, inputs, options or Options())


def _started(what: Data, inputs: Data, how: Options) -> Sent:
    body = given(
        **what,
        inputs=inputs,
        tags=list(how.tags) or None,
        metadata=how.metadata or None,
        configurable=how.configurable or None,
        scopeId=how.scope_id,
        callbackUrl=how.callback_url,
    )
    headers = given(**{"Idempotency-Key": how.idempotency_key})
    return Sent(body=body, headers={**headers, "X-Dedup": "enforce"} if how.exclusive else headers)


@operation("GET /v1/runs/{run_id}", runs.Snapshot)
def get(run_id: str) -> Sent:
    """A run as it is now."""
    return Sent(run_id)


@operation("GET /v1/host/moot/runs", runs.RunPage)
def page(  # noqa: PLR0913 - each is one column of the list
    *,
    status: str | Sequence[str] | None = None,
    workflow: str | None = None,
    agent: str | None = None,
    parent: str | None = None,
    fork_of: str | None = None,
    prefix: str | None = None,
    member: str | None = None,
    dead_lettered: bool | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Sent:
    """One page of the runs, newest first. ``waiting`` is a status, too."""
    statuses = status if isinstance(status, str | None) else ",".join(status)
    query = {"status": statuses, "workflow": workflow, "agent": agent, "parent": parent}
    query |= {"forkOf": fork_of, "prefix": prefix, "member": member, "cursor": cursor}
    return Sent(query={**query, "deadLettered": dead_lettered, "limit": limit})


@operation("POST /v1/runs/{run_id}/cancel", runs.Cancelled)
def cancel(run_id: str, *, reason: str | None = None) -> Sent:
    """Cancel a run and its children."""
    return Sent(run_id, body=given(reason=reason))


@operation("POST /v1/runs:bulk-cancel", runs.BulkCancelled)
def cancel_all(run_ids: Sequence[str], *, reason: str | None = None) -> Sent:
    """Cancel up to 100 runs; each has an outcome of its own."""
    return Sent(body=given(runIds=list(run_ids), reason=reason))


@operation("POST /v1/runs/{run_id}:pause", runs.Paused)
def pause(run_id: str, *, reason: str | None = None, now: bool = False) -> Sent:
    """Pause a run; ``now`` does not wait for the nodes at work."""
    policy = "immediate" if now else None
    return Sent(run_id, body=given(reason=reason, drainPolicy=policy))


@operation("POST /v1/runs/{run_id}:resume", runs.Resumed)
def resume(run_id: str, *, reason: str | None = None) -> Sent:
    """Let a paused run go on."""
    return Sent(run_id, body=given(reason=reason))


@operation("POST /v1/runs/{run_id}:fork", runs.Forked)
def replay(run_id: str, *, from_seq: int = 0) -> Sent:
    """Say a run again from its record, as a new run. Nothing is called."""
    return Sent(run_id, body={"mode": "replay", "fromSeq": from_seq})


@operation("POST /v1/runs/{run_id}:fork", runs.Forked)
def branch(
    run_id: str,
    from_seq: int,
    *,
    configurable: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Sent:
    """Take a run up before the event ``from_seq``, with other options, as the protocol has it."""
    kept = None if tags is None else list(tags)
    overlay = given(configurable=configurable, tags=kept, metadata=metadata)
    body = {"mode": "branch", "fromSeq": from_seq}
    return Sent(run_id, body={**body, "runOptionsOverlay": overlay} if overlay else body)


@operation("POST /v1/host/moot/runs/{run_id}:fork", runs.Forked)
def fork(
    run_id: str, from_seq: int, edit: Edit | None = None, /, *, note: str | None = None
) -> Sent:
    """Take a run up before the event ``from_seq``, and say that event otherwise."""
    body = given(fromSeq=from_seq, edit=edit.body() if edit else None, note=note)
    return Sent(run_id, body=body)


@operation("GET /v1/runs/{run_id}:diff", runs.Diff)
def diff(run_id: str, against: str) -> Sent:
    """Where two runs part ways, event by event."""
    return Sent(run_id, query={"against": against})


@operation("POST /v1/host/moot/runs/{run_id}:verify", runs.Verified, Again.FREELY)
def verify(run_id: str) -> Sent:
    """Work a run out anew from its log and compare."""
    return Sent(run_id, body={})


@operation("GET /v1/runs/{run_id}/events", bytes)
def stream(run_id: str, mode: Mode = "debug") -> Sent:
    """The events as they happen."""
    return Sent(run_id, query={"streamMode": mode}, accept=SSE)


@operation("GET /v1/runs/{run_id}/events/poll", runs.Page)
def poll(run_id: str, *, after: int = -1, wait: int = 0) -> Sent:
    """Events after ``after``; with ``wait``, news is waited for so many seconds."""
    wait = min(wait, LONGEST_POLL_S)
    return Sent(run_id, query={"lastSequence": after, "timeout": wait}, seconds=float(wait))


@operation("GET /v1/runs/{run_id}/artifacts/{artifact_id}", bytes)
def artifact(run_id: str, artifact_id: str) -> Sent:
    """An artifact of a run, as it was written."""
    return Sent(run_id, artifact_id)


@operation("GET /v1/runs/{run_id}/debug-bundle", dict)
def debug_bundle(run_id: str, *, most_events: int | None = None) -> Sent:
    """One run as one document for diagnosis."""
    return Sent(run_id, query={"maxEvents": most_events})


@operation("GET /v1/host/moot/runs/{run_id}/turns/{iteration}", dict)
def turn(run_id: str, number: int) -> Sent:
    """What a supervisor knew when it decided in a turn."""
    return Sent(run_id, str(number))


@operation("GET /v1/runs/{run_id}/ancestry", runs.Ancestry)
def ancestry(run_id: str) -> Sent:
    """Where a run comes from: its parent here, or on another host."""
    return Sent(run_id)


# -- what waits ----------------------------------------------------------------------------------


@operation("GET /v1/host/moot/inbox", runs.Inbox)
def inbox(*, limit: int = 100, revision: int | None = None, wait: int | None = None) -> Sent:
    """Everything that waits for a person, longest first; with ``wait``, once it has changed."""
    seconds = None if wait is None else min(wait, LONGEST_INBOX_WAIT_S)
    query = {"limit": limit, "revision": revision, "wait": seconds}
    return Sent(query=query, seconds=float(seconds or 0))


@operation("GET /v1/host/moot/runs/{run_id}/interrupts", runs.Questions)
def questions(run_id: str) -> Sent:
    """What a run waits for, and who has answered."""
    return Sent(run_id)


@operation("POST /v1/runs/{run_id}/interrupts/{node_id}", runs.Taken)
def resolve(run_id: str, node_id: str, value: Any) -> Sent:
    """Answer what a node waits for."""
    return Sent(run_id, node_id, body={"resumeValue": value})


class Asked(Protocol):
    """A row of the inbox, or a question of a run."""

    @property
    def run_id(self) -> str: ...

    @property
    def node_id(self) -> str: ...


def _given_to(where: str | Asked, node: str | None, value: Any) -> Sent:
    """To the node that is named; without one the run must have one question only."""
    if isinstance(where, str):
        return Sent(where, body={"resumeValue": value, **given(nodeId=node)})
    return Sent(where.run_id, body={"resumeValue": value, "nodeId": where.node_id})


@operation("POST /v1/runs/{run_id}:resolveInterrupt", runs.Taken)
def resolve_only(where: str | Asked, value: Any, *, node: str | None = None) -> Sent:
    """Answer a question with any value: of a run, or a row of the inbox."""
    return _given_to(where, node, value)


@operation("POST /v1/runs/{run_id}:resolveInterrupt", runs.Taken)
def answer(
    where: str | Asked,
    said: Mapping[str, Any] | None = None,
    /,
    *,
    node: str | None = None,
    **named: Any,
) -> Sent:
    """Answer what is asked, by the names of the questions."""
    return _given_to(where, node, {"answers": {**(said or {}), **named}})


@operation("POST /v1/runs/{run_id}:resolveInterrupt", runs.Taken)
def approve(
    where: str | Asked,
    *,
    comment: str | None = None,
    edited: Any = None,
    voter: str | None = None,
    override: str | None = None,
    node: str | None = None,
) -> Sent:
    """Approve, or with ``edited`` something else instead. ``override`` says why an administrator
    decides what others are to decide."""
    action = {"action": "accept"}
    if edited is not None:
        action = {"action": "edit-accept", "editedArtifactData": edited}
    return _given_to(where, node, {**action, **_why(comment, voter, override)})


@operation("POST /v1/runs/{run_id}:resolveInterrupt", runs.Taken)
def reject(
    where: str | Asked,
    *,
    comment: str | None = None,
    refine: str | None = None,
    voter: str | None = None,
    override: str | None = None,
    node: str | None = None,
) -> Sent:
    """Reject, or with ``refine`` send it back to be made better like this."""
    action: Data = {"action": "reject"}
    if refine is not None:
        action = {"action": "refine", "refineFeedback": {"scope": "whole", "text": refine}}
    return _given_to(where, node, {**action, **_why(comment, voter, override)})


def _why(comment: str | None, voter: str | None, override: str | None) -> Data:
    by_force = None if override is None else True
    return given(comment=comment, voter=voter, reason=override, override=by_force)


@operation("GET /v1/interrupts/{token}", runs.Question)
def question_by_link(token: str) -> Sent:
    """Read a question by its link; no key is needed."""
    return Sent(token)


@operation("POST /v1/interrupts/{token}", runs.Taken)
def answer_by_link(token: str, value: Any) -> Sent:
    """Answer a question by its link; no key is needed."""
    return Sent(token, body={"resumeValue": value})
