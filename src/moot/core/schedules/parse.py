"""Schedules as people write them, checked before anything is kept."""

import re
from typing import Any

import msgspec

from moot.core.errors import BadRequest
from moot.core.errors.schedules import ScheduleHorizonExceeded, ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.calendar import duration_from
from moot.core.schedules.model import HORIZON, Schedule, ScheduleDraft
from moot.core.schedules.slots import timing_of
from moot.core.text.nearest import nearest

#: what says when, and the kind it belongs to
TIMES = {"cronExpr": "cron", "intervalSeconds": "interval", "at": "once", "words": "words"}

CHOICES = {
    "kind": tuple(TIMES.values()),
    "overlap": ("skip", "buffer-one", "buffer-all", "cancel-other", "allow"),
    "catchUp": ("one", "none", "all-within-window"),
}

_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(ScheduleDraft))
_PLACE = re.compile(r" - at `\$\.?([A-Za-z]*)")


def read_schedule(
    body: bytes | dict[str, Any], schedule_id: str, now: int, horizon: str = HORIZON
) -> Schedule:
    """A new schedule. ``horizon`` is the host's; a schedule may have a shorter one.

    Raises ScheduleRefused and ScheduleHorizonExceeded.
    """
    said = _object(body)
    draft = _draft(said)
    _check_horizon(draft, now, horizon)
    return _schedule(said, schedule_id, iso(now * 1000))


def edit_schedule(
    spec: Schedule, patch: bytes | dict[str, Any], now: int, horizon: str = HORIZON
) -> Schedule:
    """The schedule with what the patch says; null takes a field back to its default.

    A patch that names other times replaces those the schedule had. Raises as reading does.
    """
    said = _object(patch)
    was = msgspec.to_builtins(spec)
    kept = {key: value for key, value in was.items() if key in _FIELDS}
    named = [field for field in TIMES if said.get(field) is not None]
    if named or said.get("kind", spec.kind) != spec.kind:
        kept = {key: value for key, value in kept.items() if key not in TIMES}
    if len(named) == 1:
        kept["kind"] = TIMES[named[0]]
    merged = {key: value for key, value in {**kept, **said}.items() if value is not None}
    draft = _draft(merged)
    if retimes(spec, draft):
        _check_horizon(draft, now, horizon)
    return _schedule(merged, spec.schedule_id, spec.created_at)


def retimes(before: ScheduleDraft, after: ScheduleDraft) -> bool:
    """Whether the slots of one are not those of the other; then the ledger is ``retimed``."""
    return timing_of(before) != timing_of(after)


def _object(body: bytes | dict[str, Any]) -> dict[str, Any]:
    try:
        said = msgspec.json.decode(body) if isinstance(body, bytes) else body
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The schedule is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadRequest("A schedule is an object.")
    for field in said:
        if field not in _FIELDS:
            message = f"'{field[:64]}' is not a field of a schedule."
            raise ScheduleRefused(field[:64], message, nearest(field, _FIELDS))
    return said


def _draft(said: dict[str, Any]) -> ScheduleDraft:
    for field, choices in CHOICES.items():
        value = said.get(field)
        if isinstance(value, str) and value not in choices:
            message = f"'{value[:64]}' is none of {', '.join(choices)}."
            raise ScheduleRefused(field, message, nearest(value, choices))
    if "kind" not in said:
        given = [kind for field, kind in TIMES.items() if field in said]
        message = f"A schedule has a 'kind', one of {', '.join(CHOICES['kind'])}."
        raise ScheduleRefused("kind", message, given[0] if len(given) == 1 else None)
    try:
        draft = msgspec.convert(said, ScheduleDraft)
    except msgspec.ValidationError as error:
        raise _misfit(str(error)) from None
    timing_of(draft)
    condition = draft.condition
    if condition is not None and (condition.expression is None) == (condition.queue is None):
        message = "A condition has either an 'expression' or a 'queue'."
        raise ScheduleRefused("condition", message)
    if condition is not None and condition.on_change and condition.expression is None:
        raise ScheduleRefused("condition", "Only an 'expression' can be looked at 'onChange'.")
    return draft


def _misfit(said: str) -> ScheduleRefused:
    found = _PLACE.search(said)
    if found and found[1]:
        return ScheduleRefused(found[1], f"'{found[1]}' does not fit: {said[: found.start()]}.")
    missing = re.search(r"`(\w+)`", said)
    field = missing[1] if missing else "schedule"
    return ScheduleRefused(field, f"The schedule does not fit: {said}.")


def _check_horizon(draft: ScheduleDraft, now: int, horizon: str) -> None:
    own = duration_from(draft.horizon, "horizon")
    if draft.horizon != HORIZON and own > duration_from(horizon, "horizon"):
        raise ScheduleHorizonExceeded("horizon", horizon)
    limit, name = min((duration_from(horizon, "horizon"), horizon), (own, draft.horizon))
    at = timing_of(draft).at
    if at is None:
        return
    if at <= now:
        raise ScheduleRefused("at", f"'{draft.at}' has passed; name a time to come, or run it now.")
    if at > now + limit:
        raise ScheduleHorizonExceeded("at", name)


def _schedule(said: dict[str, Any], schedule_id: str, created_at: str) -> Schedule:
    given = {**said, "scheduleId": schedule_id, "createdAt": created_at}
    return msgspec.convert(given, Schedule)
