"""Answers about the host itself."""

from moot.wire.json import WireStruct


class Health(WireStruct, frozen=True):
    """The state of the server."""

    status: str
    version: str | None = None


class HostIndex(WireStruct, frozen=True):
    """The links to the parts of the API."""

    name: str
    version: str
    links: dict[str, str]
