"""Items that came in: their content, and the inputs of a run that gets one."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from moot.core.errors import Conflict, NotFound, WorkflowNotFound
from moot.core.events import decode
from moot.core.payloads.runs import RunStarted
from moot.core.secrets import mask_sealed
from moot.core.triggers.subscriptions import (
    Arrival,
    TriggerSubscription,
    input_paths,
    inputs_from_event,
    remove_content,
    secrets_from_event,
    trigger_event,
)
from moot.core.workflows.flow import Flow
from moot.engine.host import Host
from moot.store.records import Delivery
from moot.triggers.inbound.subscriptions import SubscriptionService

#: sources of inbound deliveries; schedules and outbound webhooks have their own
INBOUND_SOURCES = ("webhook", "queue")

#: the field of an item that lists show
SUBJECT = ("queue", "subject")

decode_arrival = msgspec.json.Decoder(Arrival).decode


class RunInput(Struct, frozen=True):
    """The inputs and the trigger event of a run that gets an item."""

    inputs: dict[str, object]
    trigger: dict[str, object]
    #: the subject that lists may show
    subject: str = ""


def run_input_from_item(
    subscription: TriggerSubscription, row: Delivery, arrival: Arrival, flow: Flow
) -> RunInput:
    """Build the inputs of a run. The content that fills a secret input is not in the log anywhere
    else."""
    event = trigger_event(subscription, arrival, row.delivery_id, row.key, row.received_at)
    declared = [variable.name for variable in flow.definition.variables]
    mapping = subscription.input_mapping
    inputs = inputs_from_event(event, mapping, declared, flow.sensitive, flow.masking)
    if flow.sensitive.isdisjoint(inputs):
        return RunInput(inputs, event, row.subject)
    subject = visible_subject(subscription, event, flow, row.subject)
    return RunInput(inputs, remove_content(event), subject)


def visible_subject(
    subscription: TriggerSubscription, event: Mapping[str, object], flow: Flow, subject: str
) -> str:
    """Return the subject without secrets, or nothing when a secret input is filled from it or from
    an object that holds it."""
    declared = [variable.name for variable in flow.definition.variables]
    places = input_paths(event, subscription.input_mapping, declared)
    hidden = [path for name, path in places.items() if name in flow.sensitive]
    if any(path == SUBJECT[: len(path)] for path in hidden):
        return ""
    secrets = secrets_from_event(event, places, flow.sensitive)
    return str(mask_sealed(subject, secrets, flow.masking))


class ItemService:
    """Reads inbound items and what runs get of them."""

    def __init__(self, host: Host, subscriptions: SubscriptionService) -> None:
        self._host, self._subscriptions = host, subscriptions

    async def must_find(self, tenant: str, name: str) -> Delivery:
        delivery = await self._host.store.delivery_by_id(tenant, name)
        if delivery is None or delivery.source not in INBOUND_SOURCES:
            raise NotFound("There is no such item; see the list of them.", id=name[:128])
        return delivery

    async def stored_arrival(self, row: Delivery) -> Arrival | None:
        """Return the content of an item: from its row until a run has it, then from the first
        event of that run. Return None when it was dropped or held a secret."""
        if row.body:
            return decode_arrival(row.body)
        if row.run_id is None:
            return None
        log = await self._host.store.read(row.tenant, row.run_id, -1, 1)
        start = decode(log[0]).payload if log else None
        trigger = (start.trigger or {}) if isinstance(start, RunStarted) else {}
        content = _item_content(trigger, row)
        if content is None:
            return None
        if not content and (await self._host.view(row.tenant, row.run_id)).flow.sensitive:
            return None
        return Arrival(content=content, verified=trigger.get("verified"))

    async def content(self, row: Delivery) -> Mapping[str, object] | None:
        """Return the content for callers who may see the runs it leads to."""
        arrival = await self.stored_arrival(row)
        version = await self._subscriptions.find(row.tenant, row.subscription)
        if arrival is None or version is None or version.it.workflow_id is None:
            return None if arrival is None else arrival.content
        try:
            flow = await self._host.flows.newest(row.tenant, version.it.workflow_id)
        except WorkflowNotFound:
            return arrival.content
        return None if flow.sensitive else arrival.content

    async def given(self, tenant: str, name: str, workflow_id: str) -> RunInput:
        """Return the input that a run of this workflow would get now.

        Raise NotFound or WorkflowNotFound, and Conflict when the content is not stored any more."""
        row = await self.must_find(tenant, name)
        arrival = await self.stored_arrival(row)
        if arrival is None:
            message = "What it said is not kept any more; give the inputs instead."
            raise Conflict(message, id=row.delivery_id, state=row.state)
        flow = await self._host.flows.newest(tenant, workflow_id)
        subscription = await self._subscription_for(row, workflow_id)
        return run_input_from_item(subscription, row, arrival, flow)

    async def _subscription_for(self, row: Delivery, workflow_id: str) -> TriggerSubscription:
        """Return the subscription of the item if it leads to this workflow, because an input
        mapping fits one workflow. Otherwise return a plain one."""
        version = await self._subscriptions.find(row.tenant, row.subscription)
        if version is not None and version.it.workflow_id == workflow_id:
            return version.it
        source: Any = row.source
        return TriggerSubscription(subscription_id=row.subscription, source=source)


def _item_content(trigger: dict[str, Any], row: Delivery) -> Mapping[str, object] | None:
    """Return the content from the trigger of a run: the only item, or one of those that a schedule
    took."""
    if row.source in trigger:
        content: Mapping[str, object] = trigger[row.source]
        return content
    items = trigger.get("schedule", {}).get("items", [])
    return next((item.get("item") for item in items if item["itemId"] == row.delivery_id), None)


REDELIVERED = "redelivered"


def count_tries(row: Delivery) -> int:
    """Count the tries since a person last asked for one."""
    count = 0
    for attempt in row.attempts:
        count = 0 if attempt.outcome == REDELIVERED else count + 1
    return count
