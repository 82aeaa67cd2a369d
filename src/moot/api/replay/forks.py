"""Forks: a run said again from its record, or taken up at an event and led elsewhere."""

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moot.api.http.idempotency import refused
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.interrupts import routes
from moot.api.runs import create_options
from moot.api.runs.create_options import CreateRun
from moot.core.errors import BadRequest, Forbidden, ReplayDivergedAtRefusal
from moot.core.errors.triggers import MemberOffDuty
from moot.core.events import decode
from moot.core.replay.edits import SPOKEN, Edit
from moot.core.state.run import Run
from moot.engine.head import Head
from moot.engine.replay.branch import Wanted, branch, past_the_end
from moot.engine.replay.replay import replay
from moot.store.protocol import Guard

MODES = ("replay", "branch")
ANSWERING = "approvals:respond"
Note = Annotated[str, Meta(min_length=1, max_length=500)]


class Overlay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of a run, each in the place of the source's."""

    configurable: dict[str, Any] = {}
    tags: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] = {}

    @property
    def empty(self) -> bool:
        return not self.configurable and self.tags is UNSET and not self.metadata


class Fork(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    mode: str
    from_seq: int | None = None
    run_options_overlay: Overlay | None = None


class EditedFork(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    from_seq: int
    edit: Edit = Edit()
    note: Note | None = None


async def fork(request: Request) -> Reply:
    host, tenant = request.services.host, request.caller.tenant
    source = await host.view(tenant, request.params["run_id"])
    asked = await request.read(Fork)
    _check(request, asked)
    from_seq = asked.from_seq or 0
    _check_place(request, source.run, from_seq)
    told = _unless_diverged(request, _answer(source.run, from_seq, asked.mode))
    answer = request.recording(told)
    if asked.mode == "replay":
        await replay(host, tenant, source.run.run_id, from_seq, answer)
    else:
        _check_may_pass(request, source.run)
        wanted = await _wanted(request, source, from_seq, asked.run_options_overlay or Overlay())
        await branch(host, tenant, source.run.run_id, wanted, answer)
    return request.made


async def edited_fork(request: Request) -> Reply:
    """Edits go this way; the protocol's own route takes what the protocol says."""
    host, tenant = request.services.host, request.caller.tenant
    source = await host.view(tenant, request.params["run_id"])
    asked = await request.read(EditedFork)
    _check_place(request, source.run, asked.from_seq)
    _check_may_answer(request, asked.edit)
    await _check_may_edit(request, source, asked)
    _check_may_pass(request, source.run)
    wanted = await _wanted(request, source, asked.from_seq, Overlay())
    wanted.edit, wanted.note = asked.edit, asked.note
    if asked.edit.inputs is not UNSET:
        create_options.check_rosters(source.flow, asked.edit.inputs)
    answer = _answer(source.run, asked.from_seq, "branch", asked.note)
    await branch(host, tenant, source.run.run_id, wanted, request.recording(answer))
    return request.made


def _answer(
    source: Run, from_seq: int, mode: str, note: str | None = None
) -> Callable[[Run], Reply]:
    def reply(run: Run) -> Reply:
        url = f"/v1/runs/{run.run_id}"
        body = {
            "runId": run.run_id,
            "sourceRunId": source.run_id,
            "fromSeq": from_seq,
            "mode": mode,
            "status": "pending",
            "eventsUrl": f"{url}/events",
        }
        if note is not None:
            body["note"] = note
        return Reply(body, 201, {"Location": url})

    return reply


async def _wanted(request: Request, source: Head, from_seq: int, overlay: Overlay) -> Wanted:
    """Options are checked as for a run that is started."""
    tags = None if overlay.tags is UNSET else overlay.tags
    who = routes.speaker(request)
    if overlay.configurable and not who.speaks_for_people:
        raise Forbidden("What a run may do is a person's to change; this is an agent's key.")
    asked = CreateRun(configurable=overlay.configurable, tags=tags or [], metadata=overlay.metadata)
    before = source.run.configurable
    create_options.check(request.services, request, asked, source.flow, before)
    return Wanted(
        from_seq=from_seq,
        by=who,
        answers=who.speaks_for_people and _may(request, ANSWERING),
        configurable=overlay.configurable,
        tags=tags,
        metadata=overlay.metadata,
        guards=await _on_duty(request, source),
    )


async def _on_duty(request: Request, source: Head) -> list[Guard]:
    """Who goes on with a branch must not be away. Who was let go stays who did it: nobody of that
    name is asked."""
    run, guards = source.run, []
    names = set(run.members)
    if run.member is not None:
        names.add(run.member.roster_id)
    for name in sorted(names):
        seat = await request.services.roster.find(run.tenant, name)
        if seat is None:
            continue
        if reason := seat.hired.off_duty(request.services.clock.millis()):
            raise MemberOffDuty(name, reason)
        guards.append(seat.guard)
    return guards


def _unless_diverged(request: Request, answer: Callable[[Run], Reply]) -> Callable[[Run], Reply]:
    """A replay whose model refused, or did not, is there to be looked at, and it is none."""

    def reply(run: Run) -> Reply:
        error = run.error or {}
        if error.get("code") != ReplayDivergedAtRefusal.code:
            return answer(run)
        told = ReplayDivergedAtRefusal(error["message"], runId=run.run_id, **error["details"])
        return refused(told, request.services)

    return reply


def _check(request: Request, asked: Fork) -> None:
    if asked.mode not in MODES:
        raise BadRequest(f"mode must be one of {', '.join(MODES)}.", field="mode")
    if asked.mode == "branch" and asked.from_seq is None:
        raise BadRequest("A branch needs fromSeq.", field="fromSeq")
    overlay = asked.run_options_overlay
    if asked.mode == "replay" and overlay is not None and not overlay.empty:
        raise BadRequest("A replay takes no overlay.", field="runOptionsOverlay")


def _check_place(request: Request, source: Run, from_seq: int) -> None:
    if not _may(request, "runs:read"):
        raise Forbidden("A fork reads its source: runs:read is needed.", scopeRequired="runs:read")
    if from_seq < 0:
        raise BadRequest("fromSeq must be a whole number from 0.", field="fromSeq")
    if from_seq > source.next_sequence:
        raise past_the_end(source, from_seq)


def _check_may_pass(request: Request, source: Run) -> None:
    """What waits behind a question was allowed once: who lets it happen again must be one who may
    answer."""
    if source.answered and not _may(request, ANSWERING):
        raise Forbidden(
            f"Somebody was asked in this run: to take it up again, {ANSWERING} is needed.",
            scopeRequired=ANSWERING,
        )


def _check_may_answer(request: Request, edit: Edit) -> None:
    """What needs a right in a living run needs the same in a fork, which goes on for real."""
    speaks = edit.answer is not UNSET or edit.turn is not UNSET or edit.decision is not UNSET
    if speaks and not _may(request, ANSWERING):
        raise Forbidden(f"This edit answers: {ANSWERING} is needed.", scopeRequired=ANSWERING)


def _may(request: Request, scope: str) -> bool:
    return request.caller.admin or scope in request.caller.scopes


async def _check_may_edit(request: Request, source: Head, asked: EditedFork) -> None:
    """The key of an agent puts words into nobody's mouth but its own, and changes nothing of what
    binds it. A model that is not here is no model."""
    if asked.edit.models:
        create_options.check_models(request.services, asked.edit.models, "edit.models")
    who, kinds = routes.speaker(request), set(asked.edit.kinds)
    if who.speaks_for_people or kinds <= {"models"}:
        return
    speaker = await _speaker_at(request, source, asked.from_seq)
    if kinds <= {"models", "turn"} and speaker in who.names:
        return
    raise Forbidden(
        "An agent's key edits its own turns only; for anything else a person's key is needed.",
        participant=who.person,
    )


async def _speaker_at(request: Request, source: Head, sequence: int) -> str | None:
    """Who said the turn that stands there."""
    run = source.run
    rows = await request.services.store.read(run.tenant, run.run_id, sequence - 1, 1)
    event = decode(rows[0]) if rows else None
    turn = event.payload.get(SPOKEN.get(event.type, "")) if event is not None else None
    return turn.get("speakerId") if isinstance(turn, dict) else None


ENDPOINTS = (
    Endpoint(
        method="POST", path="/v1/runs/{run_id}:fork", call=fork, scope="runs:create", body=Fork,
        status=201, summary="Say a run again from its record, or take it up at an event",
        errors=(404, 409, 422),
    ),
    Endpoint(
        method="POST", path="/v1/host/moot/runs/{run_id}:fork", call=edited_fork,
        scope="runs:create", body=EditedFork, status=201,
        summary="Take a run up at an event and say that event otherwise", errors=(404, 409, 422),
    ),
)  # fmt: skip
