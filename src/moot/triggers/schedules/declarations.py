"""Schedules that a workflow declares itself: its triggers of type ``schedule``."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.clock import Clock
from moot.core.errors import BadRequest, NotFound
from moot.core.errors.schedules import ScheduleRefused
from moot.core.ids import derived_id
from moot.core.schedules.model import Schedule, ScheduleDraft
from moot.core.schedules.parse import TIMES, edit_schedule, read_schedule
from moot.core.workflows.graph import Flow
from moot.core.workflows.schema import TriggerDef
from moot.engine.workflows.registry import Flows
from moot.store.protocol import Store
from moot.triggers.schedules.service import Schedules

#: what a trigger says by itself
OWN = {"workflowId", "enabled"}
_FIELDS = [field.encode_name for field in msgspec.structs.fields(ScheduleDraft)]


class Declaring(Struct):
    """What is read of the definition before; others of its parts may be strange by now."""

    triggers: list[dict[str, Any]] = []


class Declared:
    """A schedule follows its trigger. What is changed in it by hand stays until the trigger itself
    is changed; without its trigger it ends."""

    def __init__(self, store: Store, clock: Clock, flows: Flows, schedules: Schedules) -> None:
        self._store, self._clock, self._flows = store, clock, flows
        self._schedules = schedules

    async def register(self, tenant: str, body: bytes, by: str, source: str = "api") -> Flow:
        """Keeps a definition, and its schedules. Raises before anything is kept."""
        flow = self._flows.compile(body)
        workflow_id = flow.definition.id
        before = await self._before(tenant, workflow_id)
        wanted = {
            trigger.id: trigger
            for trigger in flow.definition.triggers
            if trigger.type == "schedule"
        }
        for trigger in list(wanted.values()):
            try:
                await self._check(tenant, flow, trigger)
            except BadRequest:
                if trigger.enabled:
                    raise
                del wanted[trigger.id]  # it is off, and may be meant for another host
        flow = await self._flows.register(tenant, body, source)
        for trigger in wanted.values():
            await self._follow(tenant, workflow_id, trigger, by, before.get(trigger.id))
        for name in before.keys() - wanted.keys():
            await self._end(tenant, schedule_id(workflow_id, name), by)
        return flow

    async def _before(self, tenant: str, workflow_id: str) -> dict[str, dict[str, Any]]:
        found = await self._store.definition(tenant, workflow_id)
        if found is None:
            return {}
        triggers = msgspec.json.decode(found.body, type=Declaring).triggers
        return {each["id"]: each for each in triggers if each.get("type") == "schedule"}

    async def _check(self, tenant: str, flow: Flow, trigger: TriggerDef) -> None:
        workflow_id, now = flow.definition.id, self._clock.millis()
        name, said = schedule_id(workflow_id, trigger.id), body_of(workflow_id, trigger)
        known = await self._known(tenant, name)
        try:
            if known is not None:
                spec = edit_schedule(known, {**dict.fromkeys(_FIELDS), **said}, now)
            else:
                spec = read_schedule(said, name, now)
            await self._schedules.check(tenant, spec, flow)
        except BadRequest as refusal:
            raise _of_trigger(trigger, refusal) from None

    async def _follow(
        self, tenant: str, workflow_id: str, trigger: TriggerDef, by: str, before: Any
    ) -> None:
        name, said = schedule_id(workflow_id, trigger.id), body_of(workflow_id, trigger)
        if await self._known(tenant, name) is None:
            await self._schedules.make(tenant, msgspec.json.encode(said), by, name)
        elif _differs(before, trigger):
            patch = msgspec.json.encode({**dict.fromkeys(_FIELDS), **said})
            await self._schedules.change(tenant, name, patch, by)

    async def _known(self, tenant: str, name: str) -> Schedule | None:
        try:
            return (await self._schedules.find(tenant, name)).plan.spec
        except NotFound:
            return None

    async def _end(self, tenant: str, name: str, by: str) -> None:
        if await self._known(tenant, name) is not None:
            await self._schedules.remove(tenant, name, by)


def schedule_id(workflow_id: str, trigger_id: str) -> str:
    """The same for every version of a workflow."""
    return derived_id("sch_", "trigger", workflow_id, trigger_id)


def body_of(workflow_id: str, trigger: TriggerDef) -> dict[str, Any]:
    """A schedule as it would be written; its kind follows from the time that is named."""
    for name in trigger.config.keys() & OWN:
        message = f"'{name}' of a schedule follows from its trigger; leave it out of the config."
        raise _of_trigger(trigger, ScheduleRefused(name, message))
    kinds = [kind for field, kind in TIMES.items() if field in trigger.config]
    kind = {"kind": kinds[0]} if len(kinds) == 1 else {}
    return {**kind, **trigger.config, "workflowId": workflow_id, "enabled": trigger.enabled}


def _differs(before: dict[str, Any] | None, trigger: TriggerDef) -> bool:
    """Whether it says something else about times than the trigger before it."""
    was = before or {}
    return (was.get("config", {}), was.get("enabled", True)) != (trigger.config, trigger.enabled)


def _of_trigger(trigger: TriggerDef, refusal: BadRequest) -> BadRequest:
    field = f"triggers.{trigger.id}"
    return BadRequest(f"Trigger '{trigger.id}': {refusal.message}", field=field)
