"""Fork a run: replay its record, or branch off at an event."""

from collections.abc import Callable

from msgspec import UNSET

from moot.api.access.auth import speaker_from_request
from moot.api.http.idempotency import reply_from_refusal
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.runs import create_options
from moot.core.errors import BadRequest, Forbidden, ReplayDivergedAtRefusal
from moot.core.errors.triggers import MemberOffDuty
from moot.core.events import decode
from moot.core.replay import edits
from moot.core.replay.edits import edited_turn
from moot.core.state.run import Run
from moot.engine.head import Head
from moot.engine.replay.fork import ForkRequest, fork_run, past_end_error
from moot.engine.replay.replay import replay_run
from moot.engine.start import check_rosters
from moot.store.records import Guard
from moot.wire.replay import ForkEdit, ForkedRun, ForkRun, ForkRunEdited, RunOptionsOverlay
from moot.wire.runs import CreateRun

MODES = ("replay", "branch")
ANSWER_SCOPE = "approvals:respond"


async def create_fork(request: Request) -> Reply:
    host, tenant = request.services.host, request.caller.tenant
    source = await host.view(tenant, request.params["run_id"])
    body = await request.read(ForkRun)
    _check_fork(request, body)
    from_seq = body.from_seq or 0
    _check_position(request, source.run, from_seq)
    reply = _refuse_divergence(request, _fork_reply(source.run, from_seq, body.mode))
    answer = request.record_reply(reply)
    if body.mode == "replay":
        await replay_run(host, tenant, source.run.run_id, from_seq, answer)
    else:
        _check_may_reuse_answers(request, source.run)
        wanted = await _branch_options(
            request, source, from_seq, body.run_options_overlay or RunOptionsOverlay()
        )
        await fork_run(host, tenant, source.run.run_id, wanted, answer)
    return request.reply


async def create_edited_fork(request: Request) -> Reply:
    """Branch off with an edited event. The protocol's own route takes no edits."""
    host, tenant = request.services.host, request.caller.tenant
    source = await host.view(tenant, request.params["run_id"])
    body = await request.read(ForkRunEdited)
    _check_position(request, source.run, body.from_seq)
    edit = _event_edit(body.edit)
    _check_may_answer(request, edit)
    await _check_may_edit(request, source, edit, body.from_seq)
    _check_may_reuse_answers(request, source.run)
    wanted = await _branch_options(request, source, body.from_seq, RunOptionsOverlay())
    wanted.edit, wanted.note = edit, body.note
    if edit.inputs is not UNSET:
        check_rosters(source.flow, edit.inputs)
    answer = _fork_reply(source.run, body.from_seq, "branch", body.note)
    await fork_run(host, tenant, source.run.run_id, wanted, request.record_reply(answer))
    return request.reply


def _event_edit(edit: ForkEdit) -> edits.HistoryEdit:
    turn = UNSET if edit.turn is UNSET else edits.TurnReplacement(edit.turn.content)
    return edits.HistoryEdit(
        variables=edit.variables,
        inputs=edit.inputs,
        turn=turn,
        decision=edit.decision,
        answer=edit.answer,
        models=edit.models,
    )


def _fork_reply(
    source: Run, from_seq: int, mode: str, note: str | None = None
) -> Callable[[Run], Reply]:
    def reply(run: Run) -> Reply:
        url = f"/v1/runs/{run.run_id}"
        forked = ForkedRun(
            run_id=run.run_id,
            source_run_id=source.run_id,
            from_seq=from_seq,
            mode=mode,
            status="pending",
            events_url=f"{url}/events",
            note=note,
        )
        return Reply(forked, 201, {"Location": url})

    return reply


async def _branch_options(
    request: Request, source: Head, from_seq: int, overlay: RunOptionsOverlay
) -> ForkRequest:
    """Return the options of a branch, checked like those of a new run."""
    tags = None if overlay.tags is UNSET else overlay.tags
    speaker = speaker_from_request(request)
    if overlay.configurable and not speaker.speaks_for_people:
        raise Forbidden("What a run may do is a person's to change; this is an agent's key.")
    options = CreateRun(
        configurable=overlay.configurable, tags=tags or [], metadata=overlay.metadata
    )
    before = source.run.configurable
    create_options.check_run_options(request.services, request, options, source.flow, before)
    return ForkRequest(
        from_seq=from_seq,
        by=speaker,
        answers=speaker.speaks_for_people and _has_scope(request, ANSWER_SCOPE),
        configurable=overlay.configurable,
        tags=tags,
        metadata=overlay.metadata,
        guards=await _check_on_duty(request, source),
    )


async def _check_on_duty(request: Request, source: Head) -> list[Guard]:
    """Raise MemberOffDuty when a standing agent of the branch is away.

    A dismissed agent keeps its name in the record and is not asked.
    """
    run, guards = source.run, []
    names = set(run.members)
    if run.member is not None:
        names.add(run.member.roster_id)
    for name in sorted(names):
        member = await request.services.roster.find(run.tenant, name)
        if member is None:
            continue
        if reason := member.hired.off_duty(request.services.clock.millis()):
            raise MemberOffDuty(name, reason)
        guards.append(member.guard)
    return guards


def _refuse_divergence(request: Request, answer: Callable[[Run], Reply]) -> Callable[[Run], Reply]:
    """Return a reply function that refuses a replay which diverged at a model's refusal.

    The diverged run stays readable.
    """

    def reply(run: Run) -> Reply:
        error = run.error
        if error is None or error.code != ReplayDivergedAtRefusal.code:
            return answer(run)
        refusal = ReplayDivergedAtRefusal(error.message, runId=run.run_id, **error.details)
        return reply_from_refusal(refusal, request.services)

    return reply


def _check_fork(request: Request, body: ForkRun) -> None:
    if body.mode not in MODES:
        raise BadRequest(f"mode must be one of {', '.join(MODES)}.", field="mode")
    if body.mode == "branch" and body.from_seq is None:
        raise BadRequest("A branch needs fromSeq.", field="fromSeq")
    overlay = body.run_options_overlay
    if body.mode == "replay" and overlay is not None and not overlay.empty:
        raise BadRequest("A replay takes no overlay.", field="runOptionsOverlay")


def _check_position(request: Request, source: Run, from_seq: int) -> None:
    if not _has_scope(request, "runs:read"):
        raise Forbidden("A fork reads its source: runs:read is needed.", scopeRequired="runs:read")
    if from_seq < 0:
        raise BadRequest("fromSeq must be a whole number from 0.", field="fromSeq")
    if from_seq > source.next_sequence:
        raise past_end_error(source, from_seq)


def _check_may_reuse_answers(request: Request, source: Run) -> None:
    """Raise Forbidden when the run contains answers and the caller may not answer.

    A fork uses these approvals again.
    """
    if source.answered and not _has_scope(request, ANSWER_SCOPE):
        raise Forbidden(
            f"Somebody was asked in this run: to take it up again, {ANSWER_SCOPE} is needed.",
            scopeRequired=ANSWER_SCOPE,
        )


def _check_may_answer(request: Request, edit: edits.HistoryEdit) -> None:
    """Raise Forbidden when the edit answers a question and the caller may not."""
    speaks = edit.answer is not UNSET or edit.turn is not UNSET or edit.decision is not UNSET
    if speaks and not _has_scope(request, ANSWER_SCOPE):
        raise Forbidden(f"This edit answers: {ANSWER_SCOPE} is needed.", scopeRequired=ANSWER_SCOPE)


def _has_scope(request: Request, scope: str) -> bool:
    return request.caller.admin or scope in request.caller.scopes


async def _check_may_edit(
    request: Request, source: Head, edit: edits.HistoryEdit, from_seq: int
) -> None:
    """Raise Forbidden unless the caller may make this edit.

    An agent's key edits only its own turns and no limits. Models must be known to this host.
    """
    if edit.models:
        create_options.check_models(request.services, edit.models, "edit.models")
    caller, kinds = speaker_from_request(request), set(edit.kinds)
    if caller.speaks_for_people or kinds <= {"models"}:
        return
    speaker = await _speaker_at(request, source, from_seq)
    if kinds <= {"models", "turn"} and speaker in caller.names:
        return
    raise Forbidden(
        "An agent's key edits its own turns only; for anything else a person's key is needed.",
        participant=caller.person,
    )


async def _speaker_at(request: Request, source: Head, sequence: int) -> str | None:
    """Return the speaker of the turn at this sequence."""
    run = source.run
    rows = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    event = decode(rows[0]) if rows else None
    turn = edited_turn(event.payload) if event is not None else None
    return turn.speaker_id if turn is not None else None


FORK_ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:fork", call=create_fork, scope="runs:create",
        body=ForkRun,
        status=201, summary="Say a run again from its record, or take it up at an event",
        errors=(404, 409, 422),
        tag="Replay", operation_id="forkRun", answer=ForkedRun,
        description="Replays a run from its log, or branches off before an event with other "
        "options. A replay calls no model, tool or peer. Refuses a position after the "
        "end of the log with 422, and a replay that diverges at a refusal of a model "
        "with 409.",
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/runs/{run_id}:fork", call=create_edited_fork,
        scope="runs:create", body=ForkRunEdited, status=201,
        summary="Take a run up at an event and say that event otherwise", errors=(404, 409, 422),
        tag="Replay", operation_id="forkRunEdited", answer=ForkedRun,
        description="Branches off before an event and replaces that event: the inputs, a turn, a "
        "decision or an answer; or changes variables and models from there on. An "
        "edit that answers needs the scope approvals:respond. Refuses an edit that "
        "does not fit the event with 422.",
    ),
)  # fmt: skip
