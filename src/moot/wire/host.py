"""Answers about the host itself."""

from moot.wire.json import JsonObject, WireStruct


class Implementation(WireStruct, frozen=True):
    """The program that runs this host."""

    name: str
    version: str
    vendor: str


class HostLimits(WireStruct, frozen=True):
    """Limits of runs and requests."""

    clarification_rounds: int
    schema_rounds: int
    envelopes_per_turn: int
    max_node_executions: int
    max_run_duration_ms: int
    max_loop_iterations: int
    max_request_body_bytes: int


class OptionRule(WireStruct, frozen=True):
    """The type and the bounds of an option of runs."""

    type: str
    min: float | None = None
    max: float | None = None
    enum: list[str] | None = None


class Discovery(WireStruct, frozen=True):
    """The capabilities of this host. Further fields name optional parts of the protocol."""

    protocol_version: str
    protocol_versions: list[str]
    implementation: Implementation
    engine_version: int
    event_log_schema_version: int
    min_client_version: str
    supported_transports: list[str]
    supported_envelopes: list[str]
    schema_versions: dict[str, int]
    limits: HostLimits
    interrupts: JsonObject
    replay: JsonObject
    agents: JsonObject
    dispatch: JsonObject
    multi_agent: JsonObject
    memory: JsonObject
    configurable: dict[str, OptionRule]
    runs: JsonObject
    scheduling: JsonObject
    webhooks: JsonObject
    trigger_bridge: JsonObject
    idempotency: JsonObject


class OpenApiDocument(WireStruct, frozen=True):
    """This API as an OpenAPI document."""

    openapi: str
    info: JsonObject
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
