"""Something that came in, looked at again: what it said, and what a run of it is given."""

from typing import Any

import msgspec
from msgspec import Struct

from moot.core.errors import Conflict, NotFound, WorkflowNotFound
from moot.core.events import decode
from moot.core.secrets import redacted
from moot.core.triggers.subscriptions import (
    Arrival,
    Subscription,
    inputs_of,
    places_of,
    secrets_of,
    trigger_event,
    without_content,
)
from moot.core.workflows.graph import Flow
from moot.engine.host import Host
from moot.store.records import Delivery
from moot.triggers.inbound.subscriptions import Subscriptions

#: what came in from outside; schedules and webhooks that go out have rows of their own kind
SOURCES = ("webhook", "queue")

#: what is shown of an item in lists
SUBJECT = ("queue", "subject")

arrival_of = msgspec.json.Decoder(Arrival).decode


class Given(Struct, frozen=True):
    """What a run is given of something that came in."""

    inputs: dict[str, Any]
    trigger: dict[str, Any]
    #: what is shown of its subject
    subject: str = ""


def given_of(it: Subscription, row: Delivery, arrival: Arrival, flow: Flow) -> Given:
    """What a secret input is filled from stands in the log by no other way."""
    event = trigger_event(it, arrival, row.delivery_id, row.key, row.received_at)
    declared = [variable.name for variable in flow.definition.variables]
    inputs = inputs_of(event, it.input_mapping, declared, flow.sensitive, flow.masking)
    if flow.sensitive.isdisjoint(inputs):
        return Given(inputs, event, row.subject)
    return Given(inputs, without_content(event), shown_subject(it, event, flow, row.subject))


def shown_subject(it: Subscription, event: dict[str, Any], flow: Flow, subject: str) -> str:
    """Nothing of one that a secret input would be filled from, or from what it is a part of; else
    without what such an input is filled from."""
    declared = [variable.name for variable in flow.definition.variables]
    places = places_of(event, it.input_mapping, declared)
    hidden = [path for name, path in places.items() if name in flow.sensitive]
    if any(path == SUBJECT[: len(path)] for path in hidden):
        return ""
    return str(redacted(subject, secrets_of(event, places, flow.sensitive), flow.masking))


class Items:
    def __init__(self, host: Host, subscriptions: Subscriptions) -> None:
        self._host, self._subscriptions = host, subscriptions

    async def must_find(self, tenant: str, name: str) -> Delivery:
        found = await self._host.store.delivery_by_id(tenant, name)
        if found is None or found.source not in SOURCES:
            raise NotFound("There is no such item; see the list of them.", id=name[:128])
        return found

    async def kept(self, row: Delivery) -> Arrival | None:
        """What it said: kept with it until a run has it, then in the beginning of that run. None:
        it was dropped, or came with a secret that stands nowhere else."""
        if row.body:
            return arrival_of(row.body)
        if row.run_id is None:
            return None
        log = await self._host.store.read(row.tenant, row.run_id, -1, 1)
        told: dict[str, Any] = decode(log[0]).payload.get("trigger", {}) if log else {}
        content = _content(told, row)
        if content is None:
            return None
        if not content and (await self._host.view(row.tenant, row.run_id)).flow.sensitive:
            return None
        return Arrival(content=content, verified=told.get("verified"))

    async def content(self, row: Delivery) -> dict[str, Any] | None:
        """What it said, for everybody who may see the runs it leads to."""
        arrival = await self.kept(row)
        seen = await self._subscriptions.find(row.tenant, row.subscription)
        if arrival is None or seen is None or seen.it.workflow_id is None:
            return None if arrival is None else arrival.content
        try:
            flow = await self._host.flows.newest(row.tenant, seen.it.workflow_id)
        except WorkflowNotFound:
            return arrival.content
        return None if flow.sensitive else arrival.content

    async def given(self, tenant: str, name: str, workflow_id: str) -> Given:
        """What a run of this workflow would be given of it, now. Raises NotFound, WorkflowNotFound;
        Conflict when what it said is not kept."""
        row = await self.must_find(tenant, name)
        arrival = await self.kept(row)
        if arrival is None:
            raise Conflict(
                "What it said is not kept any more; give the inputs instead.",
                id=row.delivery_id,
                state=row.state,
            )
        flow = await self._host.flows.newest(tenant, workflow_id)
        return given_of(await self._read_by(row, workflow_id), row, arrival, flow)

    async def _read_by(self, row: Delivery, workflow_id: str) -> Subscription:
        """Its own subscription, if that leads to this workflow: a mapping is about one workflow."""
        seen = await self._subscriptions.find(row.tenant, row.subscription)
        if seen is not None and seen.it.workflow_id == workflow_id:
            return seen.it
        source: Any = row.source
        return Subscription(subscription_id=row.subscription, source=source)


def _content(told: dict[str, Any], row: Delivery) -> dict[str, Any] | None:
    """What a run was told of it: alone, or among the items that a schedule took."""
    if row.source in told:
        content: dict[str, Any] = told[row.source]
        return content
    taken = told.get("schedule", {}).get("items", [])
    return next((each.get("item") for each in taken if each["itemId"] == row.delivery_id), None)
