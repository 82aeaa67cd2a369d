"""Schedules that a workflow declares in its triggers of type ``schedule``."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moot.clock import Clock
from moot.core.errors import BadRequest, NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.ids import derived_id
from moot.core.schedules.model import Schedule, ScheduleDraft
from moot.core.schedules.parse import TIME_FIELDS, edit_schedule, parse_schedule
from moot.core.workflows.flow import Flow
from moot.core.workflows.schema import TriggerDef
from moot.engine.workflows.registry import WorkflowRegistry
from moot.store.protocol import Store
from moot.triggers.schedules.service import ScheduleService

#: fields that follow from the trigger
TRIGGER_FIELDS = {"workflowId", "enabled"}
_FIELDS = [field.encode_name for field in msgspec.structs.fields(ScheduleDraft)]


class TriggerDeclarations(Struct):
    """The triggers of a stored definition. The rest may be in an older format."""

    triggers: list[Mapping[str, object]] = []


class DeclaredSchedules:
    """Keeps the schedules of a workflow in step with its triggers. A manual change stays until the
    trigger changes; a schedule ends with its trigger."""

    def __init__(
        self, store: Store, clock: Clock, flows: WorkflowRegistry, schedules: ScheduleService
    ) -> None:
        self._store, self._clock, self._flows = store, clock, flows
        self._schedules = schedules

    async def register(self, tenant: str, body: bytes, by: str, source: str = "api") -> Flow:
        """Store a definition and its schedules. Raise before anything is stored."""
        flow = self._flows.compile(body)
        workflow_id = flow.definition.id
        old_triggers = await self._old_triggers(tenant, workflow_id)
        scheduled = [each for each in flow.definition.triggers if each.type == "schedule"]
        triggers = {trigger.id: trigger for trigger in scheduled}
        for trigger in list(triggers.values()):
            try:
                await self._check(tenant, flow, trigger)
            except BadRequest:
                if trigger.enabled:
                    raise
                del triggers[trigger.id]  # it is disabled, and may be for another host
        flow = await self._flows.register(tenant, body, source)
        for trigger in triggers.values():
            await self._update(tenant, workflow_id, trigger, by, old_triggers.get(trigger.id))
        for name in old_triggers.keys() - triggers.keys():
            await self._remove(tenant, declared_schedule_id(workflow_id, name), by)
        return flow

    async def _old_triggers(self, tenant: str, workflow_id: str) -> dict[str, Mapping[str, object]]:
        definition = await self._store.definition(tenant, workflow_id)
        if definition is None:
            return {}
        triggers = msgspec.json.decode(definition.body, type=TriggerDeclarations).triggers
        return {str(each["id"]): each for each in triggers if each.get("type") == "schedule"}

    async def _check(self, tenant: str, flow: Flow, trigger: TriggerDef) -> None:
        workflow_id, now = flow.definition.id, self._clock.millis()
        name = declared_schedule_id(workflow_id, trigger.id)
        body = schedule_body_from_trigger(workflow_id, trigger)
        existing = await self._find_schedule(tenant, name)
        try:
            if existing is not None:
                spec = edit_schedule(existing, {**dict.fromkeys(_FIELDS), **body}, now)
            else:
                spec = parse_schedule(body, name, now)
            await self._schedules.check(tenant, spec, flow)
        except BadRequest as refusal:
            raise _trigger_error(trigger, refusal) from None

    async def _update(
        self, tenant: str, workflow_id: str, trigger: TriggerDef, by: str, old_trigger: Any
    ) -> None:
        name = declared_schedule_id(workflow_id, trigger.id)
        body = schedule_body_from_trigger(workflow_id, trigger)
        if await self._find_schedule(tenant, name) is None:
            await self._schedules.make(tenant, msgspec.json.encode(body), by, name)
        elif _has_changed(old_trigger, trigger):
            patch = msgspec.json.encode({**dict.fromkeys(_FIELDS), **body})
            await self._schedules.change(tenant, name, patch, by)

    async def _find_schedule(self, tenant: str, name: str) -> Schedule | None:
        try:
            return (await self._schedules.find(tenant, name)).plan.spec
        except NotFound:
            return None

    async def _remove(self, tenant: str, name: str, by: str) -> None:
        if await self._find_schedule(tenant, name) is not None:
            await self._schedules.remove(tenant, name, by)


def declared_schedule_id(workflow_id: str, trigger_id: str) -> str:
    """Return the id of the schedule, the same for every version of the workflow."""
    return derived_id("sch_", "trigger", workflow_id, trigger_id)


def schedule_body_from_trigger(workflow_id: str, trigger: TriggerDef) -> dict[str, object]:
    """Return the body of the schedule. Its kind follows from the one time field that is set."""
    for name in trigger.config.keys() & TRIGGER_FIELDS:
        message = f"'{name}' of a schedule follows from its trigger; leave it out of the config."
        raise _trigger_error(trigger, ScheduleRefused(name, message))
    kinds = [kind for field, kind in TIME_FIELDS.items() if field in trigger.config]
    kind = {"kind": kinds[0]} if len(kinds) == 1 else {}
    return {**kind, **trigger.config, "workflowId": workflow_id, "enabled": trigger.enabled}


def _has_changed(old_trigger: Mapping[str, object] | None, trigger: TriggerDef) -> bool:
    """Return whether the trigger has another config or is switched on or off."""
    old = old_trigger or {}
    return (old.get("config", {}), old.get("enabled", True)) != (trigger.config, trigger.enabled)


def _trigger_error(trigger: TriggerDef, refusal: BadRequest) -> BadRequest:
    field = f"triggers.{trigger.id}"
    return BadRequest(f"Trigger '{trigger.id}': {refusal.message}", field=field)
