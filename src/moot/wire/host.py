"""Answers about the host itself."""

from moot.wire.json import JsonObject, WireStruct


class OpenApiDocument(WireStruct, frozen=True):
    """This API as an OpenAPI document."""

    openapi: str
    info: dict[str, str]
    tags: list[JsonObject]
    paths: dict[str, JsonObject]
    components: JsonObject


class Health(WireStruct, frozen=True):
    """The state of the server."""

    status: str
    version: str | None = None


class HostIndex(WireStruct, frozen=True):
    """The links to the parts of the API."""

    name: str
    version: str
    links: dict[str, str]
