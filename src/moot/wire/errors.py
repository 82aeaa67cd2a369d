"""Refusals, in the form of the host and in the form of Agent Bridge."""

from moot.wire.json import JsonObject, WireStruct


class Error(WireStruct, frozen=True):
    """A refusal: its code, a sentence for people, and details for programs."""

    error: str
    message: str
    details: JsonObject = {}


class BridgeErrorDetails(WireStruct, frozen=True):
    """The code and the sentence of a refusal, its thread and its participant."""

    code: str
    message: str
    thread: str
    participant: str | None


class BridgeError(WireStruct, frozen=True):
    """A refusal in the form that Agent Bridge programs expect."""

    error: BridgeErrorDetails
