"""The published schemas, and which of them an answer must fit."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs

#: route -> what its answer is; the first that matches
ANSWERS: tuple[tuple[str, str], ...] = (
    (r"/v1/trigger-subscriptions", "subscriptions"),
    (r"/v1/trigger-subscriptions/[^/]+", "subscription"),
    (r"/\.well-known/openwop", "discovery"),
    (r"/v1/workflows/[^/]+", "workflow"),
    (r"/v1/runs/[^/:]+", "snapshot"),
    (r"/v1/runs/[^/]+/events(/poll)?", "events"),
    (r"/v1/host/sample/test/runs/[^/]+/events", "events"),
    (r"/v1/runs/[^/]+/debug-bundle", "bundle"),
    (r"/v1/runs/[^/]+:diff", "diff"),
    (r"/v1/runs/[^/]+/ancestry", "ancestry"),
)


class Unfit(AssertionError):
    """The host sent what the published schema does not allow."""


#: events of a text (RFC 0118) that is younger than the published catalogue, and their closed keys
LATER = {
    "core.dispatch.fanOut": {"fanOutPolicy", "childCount", "maxConcurrency", "joinMode"},
    "core.dispatch.join": {
        "joinOutcome", "completedCount", "failedCount", "cancelledCount", "mergeOrder"
    },
}  # fmt: skip


class Published:
    """Validators by name. Relative and absolute references are looked up in the folder."""

    def __init__(self, folder: Path) -> None:
        self._documents = {
            file.name: json.loads(file.read_bytes())
            for file in sorted((folder / "schemas").rglob("*.json"))
        }
        resources = [(found["$id"], found) for found in self._documents.values() if "$id" in found]
        self._registry = jsonschema_rs.Registry(resources)
        self._made: dict[str, Any] = {}
        payloads = self._documents["run-event-payloads.schema.json"]
        index = payloads["$defs"]["_typeIndex"]["properties"]
        self._payload_refs = {
            name: payloads["$id"] + entry["$ref"] for name, entry in index.items()
        }

    @property
    def payload_types(self) -> set[str]:
        return set(self._payload_refs)

    def check(self, kind: str, document: Any) -> None:
        """Raises Unfit when the document is not what its kind must be."""
        getattr(self, kind)(document)

    def error(self, document: Any) -> None:
        self.document("error-envelope", document)

    def discovery(self, document: Any) -> None:
        self.document("capabilities", document)

    def workflow(self, document: Any) -> None:
        self.document("workflow-definition", document)

    def snapshot(self, document: Any) -> None:
        self.document("run-snapshot", document)

    def event(self, document: Any) -> None:
        """The envelope, and the payload by its type."""
        type_ = document["type"]
        if type_ in LATER:
            assert set(document["payload"]) <= LATER[type_]
            document = {**document, "type": "later.event"}
        self.document("run-event", document)
        if type_ == "state.snapshot":
            self.snapshot(document["payload"])
        reference = self._payload_refs.get("output.chunk" if type_ == CHUNK else type_)
        if reference is not None:
            self._fits_reference(reference, document["payload"], type_)
        if type_ in STRICT:
            closed = self._documents["conversation-event.schema.json"]["$id"]
            reference = f"{closed}#/$defs/{STRICT[type_]}"
            self._fits_reference(reference, document["payload"], type_)

    def events(self, document: Any) -> None:
        for event in document["events"]:
            self.event(event)

    def diff(self, document: Any) -> None:
        self.document("run-diff-response", document)
        for each in document["eventDiffs"]:
            for side in ("aEvent", "bEvent"):
                if side in each:
                    self.event(each[side])

    def bundle(self, document: Any) -> None:
        self.document("debug-bundle", document)
        self.events(document)
        assert document["metrics"]["eventCount"] == len(document["events"])
        assert not (document["redactionApplied"] and document["redactionMode"] == "passthrough")

    def ancestry(self, document: Any) -> None:
        self.document("run-ancestry-response", document)

    def trigger_event(self, document: Any) -> None:
        self.document("trigger-event", document)

    def subscriptions(self, document: Any) -> None:
        for each in document["subscriptions"]:
            self.document("trigger-subscription", each)

    def subscription(self, document: Any) -> None:
        """Also what it tells of deliveries and states, which stands in no run's log."""
        self.document("trigger-subscription", document["subscription"])
        for row in document["deliveries"]:
            for each in row["attempts"]:
                if "payload" in each:
                    self._payload("trigger.delivery.attempted", each["payload"])
        for change in document["stateChanges"]:
            self._payload("trigger.subscription.state.changed", change["payload"])

    def _payload(self, type_: str, document: Any) -> None:
        self._fits_reference(self._payload_refs[type_], document, type_)

    def document(self, name: str, document: Any) -> None:
        found = self._documents[f"{name}.schema.json"]
        self._fits_reference(found["$id"], document, name)

    def _fits_reference(self, reference: str, document: Any, name: str) -> None:
        validator = self._made.get(reference)
        if validator is None:
            validator = self._made[reference] = jsonschema_rs.Draft202012Validator(
                {"$ref": reference}, registry=self._registry, validate_formats=True
            )
        for error in validator.iter_errors(document):
            place = "/".join(map(str, error.instance_path))
            raise Unfit(f"{name}: at '{place}': {error.message}\n{json.dumps(document)[:2000]}")


CHUNK = "ai.message.chunk"

#: events that a schema of their own describes more closely than the list of payloads
STRICT = {
    "conversation.opened": "ConversationOpenedPayload",
    "conversation.exchanged": "ConversationExchangedPayload",
    "conversation.closed": "ConversationClosedPayload",
}


def kind_of(path: str) -> str | None:
    """What the answer of this path is, if the protocol says."""
    return next((kind for route, kind in ANSWERS if re.fullmatch(route, path)), None)
