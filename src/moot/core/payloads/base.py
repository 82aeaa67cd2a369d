"""The base of all payloads, and the payload that this host cannot read."""

from typing import Any, ClassVar

from msgspec import Raw, Struct


class Payload(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The payload of events of one type. Fields are written in the order of the class.

    An optional field is None when it is absent. It is UNSET where null is another value.
    """

    event_type: ClassVar[str]


class RecordedError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason of a failure. A retry cannot help when it is not retryable."""

    code: str
    message: str
    details: dict[str, Any] = {}
    retryable: bool = True


class OpaquePayload:
    """A payload of an unknown type, or one that does not fit its type: only its bytes."""

    __slots__ = ("event_type", "raw")

    def __init__(self, event_type: str, raw: Raw) -> None:
        self.event_type, self.raw = event_type, raw
