"""Parse and check schedules as people write them."""

import re
from collections.abc import Mapping

import msgspec

from moot.core.errors import BadRequest
from moot.core.errors.schedules import ScheduleHorizonExceeded, ScheduleRefused
from moot.core.events import iso
from moot.core.schedules.calendar import parse_duration
from moot.core.schedules.model import DEFAULT_HORIZON, Schedule, ScheduleDraft
from moot.core.schedules.slots import timing_from_spec
from moot.core.text.nearest import nearest_word

#: field with the times -> kind of schedule
TIME_FIELDS = {"cronExpr": "cron", "intervalSeconds": "interval", "at": "once", "words": "words"}

CHOICES = {
    "kind": tuple(TIME_FIELDS.values()),
    "overlap": ("skip", "buffer-one", "buffer-all", "cancel-other", "allow"),
    "catchUp": ("one", "none", "all-within-window"),
}

_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(ScheduleDraft))
_PLACE = re.compile(r" - at `\$\.?([A-Za-z]*)")


def parse_schedule(body: bytes | Mapping[str, object], schedule_id: str, now: int) -> Schedule:
    """Parse a new schedule. Raise ScheduleRefused or ScheduleHorizonExceeded."""
    fields = _parse_object(body)
    draft = _parse_draft(fields)
    _check_horizon(draft, now)
    return _build_schedule(fields, schedule_id, iso(now * 1000))


def edit_schedule(spec: Schedule, patch: bytes | Mapping[str, object], now: int) -> Schedule:
    """Return the schedule with the fields of the patch. Null resets a field to its default.

    A patch with other times replaces the old times. Raise like ``parse_schedule``.
    """
    changes = _parse_object(patch)
    fields = msgspec.to_builtins(spec)
    unchanged = {key: value for key, value in fields.items() if key in _FIELDS}
    time_fields = [field for field in TIME_FIELDS if changes.get(field) is not None]
    if time_fields or changes.get("kind", spec.kind) != spec.kind:
        unchanged = {key: value for key, value in unchanged.items() if key not in TIME_FIELDS}
    if len(time_fields) == 1:
        unchanged["kind"] = TIME_FIELDS[time_fields[0]]
    merged = {key: value for key, value in {**unchanged, **changes}.items() if value is not None}
    draft = _parse_draft(merged)
    if has_new_times(spec, draft):
        _check_horizon(draft, now)
    return _build_schedule(merged, spec.schedule_id, spec.created_at)


def has_new_times(before: ScheduleDraft, after: ScheduleDraft) -> bool:
    """Return whether the slots differ; then the ledger needs ``retime_ledger``."""
    return timing_from_spec(before) != timing_from_spec(after)


def _parse_object(body: bytes | Mapping[str, object]) -> dict[str, object]:
    try:
        fields = msgspec.json.decode(body) if isinstance(body, bytes) else body
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The schedule is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadRequest("A schedule is an object.")
    for field in fields:
        if field not in _FIELDS:
            message = f"'{field[:64]}' is not a field of a schedule."
            raise ScheduleRefused(field[:64], message, nearest_word(field, _FIELDS))
    return fields


def _parse_draft(fields: Mapping[str, object]) -> ScheduleDraft:
    for field, choices in CHOICES.items():
        value = fields.get(field)
        if isinstance(value, str) and value not in choices:
            message = f"'{value[:64]}' is none of {', '.join(choices)}."
            raise ScheduleRefused(field, message, nearest_word(value, choices))
    if "kind" not in fields:
        kinds = [kind for field, kind in TIME_FIELDS.items() if field in fields]
        message = f"A schedule has a 'kind', one of {', '.join(CHOICES['kind'])}."
        raise ScheduleRefused("kind", message, kinds[0] if len(kinds) == 1 else None)
    try:
        draft = msgspec.convert(fields, ScheduleDraft)
    except msgspec.ValidationError as error:
        raise _schema_mistake(str(error)) from None
    timing_from_spec(draft)
    condition = draft.condition
    if condition is not None and (condition.expression is None) == (condition.queue is None):
        message = "A condition has either an 'expression' or a 'queue'."
        raise ScheduleRefused("condition", message)
    if condition is not None and condition.on_change and condition.expression is None:
        raise ScheduleRefused("condition", "Only an 'expression' can be looked at 'onChange'.")
    return draft


def _schema_mistake(error: str) -> ScheduleRefused:
    match = _PLACE.search(error)
    if match and match[1]:
        return ScheduleRefused(match[1], f"'{match[1]}' does not fit: {error[: match.start()]}.")
    missing = re.search(r"`(\w+)`", error)
    field = missing[1] if missing else "schedule"
    return ScheduleRefused(field, f"The schedule does not fit: {error}.")


def _check_horizon(draft: ScheduleDraft, now: int) -> None:
    """Check the time of a one-shot. The horizon of a schedule may only be the shorter one."""
    limit = parse_duration(draft.horizon, "horizon")
    if limit > parse_duration(DEFAULT_HORIZON, "horizon"):
        raise ScheduleHorizonExceeded("horizon", DEFAULT_HORIZON)
    at = timing_from_spec(draft).at
    if at is None:
        return
    if at <= now:
        raise ScheduleRefused("at", f"'{draft.at}' has passed; name a time to come, or run it now.")
    if at > now + limit:
        raise ScheduleHorizonExceeded("at", draft.horizon)


def _build_schedule(fields: Mapping[str, object], schedule_id: str, created_at: str) -> Schedule:
    values = {**fields, "scheduleId": schedule_id, "createdAt": created_at}
    return msgspec.convert(values, Schedule)
