"""Operations on runs and their interrupts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from moot.client.http.operation import RequestParts, Retry, operation, without_none
from moot.wire import interrupts, replay, runs

SSE = "text/event-stream"
StreamMode = Literal["debug", "updates", "messages", "values"]
#: prefix of manifest ids; any other bare name is an agent of the host
MANIFEST = "local.agents."
#: the longest time that the server waits in one call
LONGEST_POLL_S = 60
LONGEST_INBOX_WAIT_S = 30


class Options(Struct, frozen=True, kw_only=True):
    """Options of a new run besides its inputs."""

    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = {}
    configurable: Mapping[str, Any] = {}
    scope_id: str | None = None
    #: refuse to start while another run of the scope is active
    exclusive: bool = False
    callback_url: str | None = None
    #: identifies the start, so that a program can repeat it after a crash
    idempotency_key: str | None = None


class Edit(Struct, frozen=True, kw_only=True):
    """The changes of a fork: one event (inputs, turn, decision or answer), and the variables and
    models of agents from there on."""

    inputs: Mapping[str, Any] | None = None
    turn: str | None = None
    decision: Mapping[str, Any] | None = None
    answer: Any = None
    variables: Mapping[str, Any] | None = None
    models: Mapping[str, str] | None = None

    def body(self) -> replay.ForkEdit:
        return replay.ForkEdit(
            inputs=UNSET if self.inputs is None else dict(self.inputs),
            turn=UNSET if self.turn is None else replay.TurnEdit(content=self.turn),
            decision=UNSET if self.decision is None else dict(self.decision),
            answer=UNSET if self.answer is None else self.answer,
            variables=dict(self.variables or {}),
            models=dict(self.models or {}),
        )


class RunListFilter(TypedDict, total=False):
    """Filters of a list of runs."""

    status: str | Sequence[str] | None
    workflow: str | None
    agent: str | None
    parent: str | None
    fork_of: str | None
    prefix: str | None


@operation("POST /v1/runs", runs.StartedRun)
def start_run(
    workflow: str,
    inputs: Mapping[str, Any] | None = None,
    options: Options | None = None,
    /,
    **named: Any,
) -> RequestParts:
    """Start a run of a workflow. Pass inputs as one mapping, by name, or both."""
    body = runs.CreateRun(workflow_id=workflow, inputs={**(inputs or {}), **named})
    return _start_request(body, options or Options())


@operation("POST /v1/runs", runs.StartedRun)
def ask_agent(
    agent: str,
    prompt: str | None = None,
    options: Options | None = None,
    /,
    *,
    task: Mapping[str, Any] | None = None,
) -> RequestParts:
    """Start a run that asks an agent, in words or with data."""
    inputs = without_none(prompt=prompt, task=task)
    is_full_id = ":" in agent or agent.startswith(MANIFEST)
    agent_id = agent if is_full_id else f"host:{agent}"
    return _start_request(runs.CreateRun(agent_id=agent_id, inputs=inputs), options or Options())


def _start_request(target: runs.CreateRun, options: Options) -> RequestParts:
    body = replace(
        target,
        tags=list(options.tags),
        metadata=dict(options.metadata),
        configurable=dict(options.configurable),
        scope_id=UNSET if options.scope_id is None else options.scope_id,
        callback_url=UNSET if options.callback_url is None else options.callback_url,
    )
    dedup = "enforce" if options.exclusive else None
    headers = {"Idempotency-Key": options.idempotency_key, "X-Dedup": dedup}
    return RequestParts(body=body, headers=headers)


@operation("GET /v1/runs/{run_id}", runs.Snapshot)
def get_run(run_id: str) -> RequestParts:
    """Get a run as it is now."""
    return RequestParts(run_id)


@operation("GET /v1/host/moot/runs", runs.RunList)
def list_runs(  # noqa: PLR0913 - each is one column of the list
    *,
    status: str | Sequence[str] | None = None,
    workflow: str | None = None,
    agent: str | None = None,
    parent: str | None = None,
    fork_of: str | None = None,
    prefix: str | None = None,
    member: str | None = None,
    dead_lettered: bool | None = None,
    begun: bool | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> RequestParts:
    """Get one page of runs, newest first. ``waiting`` is a status, too.

    ``begun`` adds the cause of each run.
    """
    statuses = status if isinstance(status, str | None) else ",".join(status)
    query = {"status": statuses, "workflow": workflow, "agent": agent, "parent": parent}
    query |= {"forkOf": fork_of, "prefix": prefix, "member": member, "cursor": cursor}
    more = {"deadLettered": dead_lettered, "begun": begun, "limit": limit}
    return RequestParts(query={**query, **more})


@operation("POST /v1/runs/{run_id}/cancel", runs.CancelledRun)
def cancel_run(run_id: str, *, reason: str | None = None) -> RequestParts:
    """Cancel a run and its children."""
    return RequestParts(run_id, body=runs.CancelRunBody(reason=reason))


@operation("POST /v1/runs:bulk-cancel", runs.BulkCancelResults)
def cancel_runs(run_ids: Sequence[str], *, reason: str | None = None) -> RequestParts:
    """Cancel up to 100 runs; the answer has one result for each."""
    return RequestParts(body=runs.BulkCancel(run_ids=list(run_ids), reason=reason))


@operation("POST /v1/runs/{run_id}:pause", runs.PausedRun)
def pause_run(run_id: str, *, reason: str | None = None, now: bool = False) -> RequestParts:
    """Pause a run; ``now`` does not wait for active nodes."""
    policy: Literal["immediate"] | UnsetType = "immediate" if now else UNSET
    return RequestParts(run_id, body=runs.PauseRunBody(reason=reason, drain_policy=policy))


@operation("POST /v1/runs/{run_id}:resume", runs.ResumedRun)
def resume_run(run_id: str, *, reason: str | None = None) -> RequestParts:
    """Resume a paused run."""
    return RequestParts(run_id, body=runs.ResumeRunBody(reason=reason))


@operation("POST /v1/runs/{run_id}:fork", replay.ForkedRun)
def replay_run(run_id: str, *, from_seq: int = 0) -> RequestParts:
    """Replay a run from its log, as a new run. The host calls no model, tool or peer."""
    return RequestParts(run_id, body=replay.ForkRun(mode="replay", from_seq=from_seq))


@operation("POST /v1/runs/{run_id}:fork", replay.ForkedRun)
def branch_run(
    run_id: str,
    from_seq: int,
    *,
    configurable: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> RequestParts:
    """Continue a run before event ``from_seq`` with other options, by the protocol's route."""
    overlay = replay.RunOptionsOverlay(
        configurable=dict(configurable or {}),
        tags=UNSET if tags is None else list(tags),
        metadata=dict(metadata or {}),
    )
    body = replay.ForkRun(
        mode="branch", from_seq=from_seq, run_options_overlay=None if overlay.empty else overlay
    )
    return RequestParts(run_id, body=body)


@operation("POST /v1/host/moot/runs/{run_id}:fork", replay.ForkedRun)
def fork_run(
    run_id: str,
    from_seq: int,
    edit: Edit | replay.ForkEdit | None = None,
    /,
    *,
    note: str | None = None,
) -> RequestParts:
    """Fork a run before event ``from_seq``, which ``edit`` may change."""
    changes = edit if isinstance(edit, replay.ForkEdit) else (edit or Edit()).body()
    return RequestParts(
        run_id, body=replay.ForkRunEdited(from_seq=from_seq, edit=changes, note=note)
    )


@operation("GET /v1/runs/{run_id}:diff", replay.RunDiff)
def diff_runs(run_id: str, against: str) -> RequestParts:
    """Compare two runs event by event."""
    return RequestParts(run_id, query={"against": against})


@operation("POST /v1/host/moot/runs/{run_id}:verify", replay.RunVerification, Retry.FREELY)
def verify_run(run_id: str) -> RequestParts:
    """Verify that the log is one this host could have written."""
    return RequestParts(run_id, body=replay.VerifyRunBody())


@operation("GET /v1/runs/{run_id}/events", bytes)
def stream_run(run_id: str, mode: StreamMode = "debug") -> RequestParts:
    """Stream the events of a run."""
    return RequestParts(run_id, query={"streamMode": mode}, accept=SSE)


@operation("GET /v1/runs/{run_id}/events/poll", runs.RunEventPage)
def poll_events(run_id: str, *, after: int = -1, wait: int = 0) -> RequestParts:
    """Get the events after ``after``; wait up to ``wait`` seconds for new ones."""
    wait = min(wait, LONGEST_POLL_S)
    return RequestParts(run_id, query={"lastSequence": after, "timeout": wait}, seconds=float(wait))


@operation("GET /v1/runs/{run_id}/artifacts/{artifact_id}", bytes)
def get_artifact(run_id: str, artifact_id: str) -> RequestParts:
    """Get the bytes of an artifact."""
    return RequestParts(run_id, artifact_id)


@operation("GET /v1/runs/{run_id}/debug-bundle", runs.DebugBundle)
def get_debug_bundle(run_id: str, *, most_events: int | None = None) -> RequestParts:
    """Get a run as one document for diagnosis."""
    return RequestParts(run_id, query={"maxEvents": most_events})


@operation("GET /v1/host/moot/runs/{run_id}/turns/{iteration}", dict)
def get_supervisor_turn(run_id: str, number: int) -> RequestParts:
    """Get what a supervisor knew when it decided in a turn."""
    return RequestParts(run_id, str(number))


@operation("GET /v1/runs/{run_id}/ancestry", runs.RunAncestry)
def get_ancestry(run_id: str) -> RequestParts:
    """Get the parent of a run, on this or another host."""
    return RequestParts(run_id)


# -- interrupts ----------------------------------------------------------------------------------


@operation("GET /v1/host/moot/inbox", interrupts.Inbox)
def get_inbox(
    *, limit: int = 100, revision: int | None = None, wait: int | None = None
) -> RequestParts:
    """Get all interrupts that wait for a person, the oldest first.

    With ``wait``, answer when the inbox has changed or after so many seconds.
    """
    seconds = None if wait is None else min(wait, LONGEST_INBOX_WAIT_S)
    query = {"limit": limit, "revision": revision, "wait": seconds}
    return RequestParts(query=query, seconds=float(seconds or 0))


@operation("GET /v1/host/moot/runs/{run_id}/interrupts", interrupts.QuestionList)
def list_questions(run_id: str) -> RequestParts:
    """List the open and answered questions of a run."""
    return RequestParts(run_id)


@operation("POST /v1/runs/{run_id}/interrupts/{node_id}", interrupts.AnswerResult)
def resolve_interrupt(run_id: str, node_id: str, value: Any) -> RequestParts:
    """Answer the interrupt of a node."""
    return RequestParts(run_id, node_id, body=interrupts.AnswerBody(resume_value=value))


class QuestionRef(Protocol):
    """An item of the inbox, or a question of a run."""

    @property
    def run_id(self) -> str: ...

    @property
    def node_id(self) -> str: ...


def _answer_request(where: str | QuestionRef, node: str | None, value: Any) -> RequestParts:
    """Return the answer to a node's question; without a node the run must have only one."""
    if isinstance(where, str):
        body = interrupts.RunAnswerBody(resume_value=value, node_id=node)
        return RequestParts(where, body=body)
    body = interrupts.RunAnswerBody(resume_value=value, node_id=where.node_id)
    return RequestParts(where.run_id, body=body)


@operation("POST /v1/runs/{run_id}:resolveInterrupt", interrupts.AnswerResult)
def resolve_question(
    where: str | QuestionRef, value: Any, *, node: str | None = None
) -> RequestParts:
    """Answer a question of a run or an item of the inbox with any value."""
    return _answer_request(where, node, value)


@operation("POST /v1/runs/{run_id}:resolveInterrupt", interrupts.AnswerResult)
def answer_question(
    where: str | QuestionRef,
    answers: Mapping[str, Any] | None = None,
    /,
    *,
    node: str | None = None,
    **named: Any,
) -> RequestParts:
    """Answer a clarification by the names of its questions."""
    return _answer_request(where, node, {"answers": {**(answers or {}), **named}})


@operation("POST /v1/runs/{run_id}:resolveInterrupt", interrupts.AnswerResult)
def approve_question(
    where: str | QuestionRef,
    *,
    comment: str | None = None,
    edited: Any = None,
    voter: str | None = None,
    override: str | None = None,
    node: str | None = None,
) -> RequestParts:
    """Approve, or with ``edited`` approve an edited version.

    ``override`` is the reason why an administrator decides in place of the approvers.
    """
    action = {"action": "accept"}
    if edited is not None:
        action = {"action": "edit-accept", "editedArtifactData": edited}
    return _answer_request(where, node, vote_value(action, comment, voter, override))


@operation("POST /v1/runs/{run_id}:resolveInterrupt", interrupts.AnswerResult)
def reject_question(
    where: str | QuestionRef,
    *,
    comment: str | None = None,
    refine: str | None = None,
    voter: str | None = None,
    override: str | None = None,
    node: str | None = None,
) -> RequestParts:
    """Reject, or with ``refine`` send it back with this feedback."""
    return _answer_request(where, node, rejection_value(refine, comment, voter, override))


def rejection_value(
    refine: str | None, comment: str | None, voter: str | None, override: str | None
) -> dict[str, object]:
    """Return the answer that rejects, or sends back with feedback."""
    if refine is None:
        return vote_value({"action": "reject"}, comment, voter, override)
    feedback = {"scope": "whole", "text": refine}
    return vote_value({"action": "refine", "refineFeedback": feedback}, comment, voter, override)


def vote_value(
    action: Mapping[str, object], comment: str | None, voter: str | None, override: str | None
) -> dict[str, object]:
    """Return the answer that decides; ``override`` is the reason of an administrator."""
    is_override = None if override is None else True
    more = without_none(comment=comment, voter=voter, reason=override, override=is_override)
    return {**action, **more}


@operation("GET /v1/interrupts/{token}", interrupts.LinkedQuestion)
def get_question_by_link(token: str) -> RequestParts:
    """Get a question by its link, without a key."""
    return RequestParts(token)


@operation("POST /v1/interrupts/{token}", interrupts.AnswerResult)
def answer_question_by_link(token: str, value: Any) -> RequestParts:
    """Answer a question by its link, without a key."""
    return RequestParts(token, body=interrupts.AnswerBody(resume_value=value))
