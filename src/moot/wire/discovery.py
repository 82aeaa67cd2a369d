"""The discovery document: the capabilities of a host in the form of the protocol."""

from msgspec import field

from moot.wire.json import WireStruct


class Supported(WireStruct, frozen=True):
    """A capability without further fields."""

    supported: bool


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


class ConversationSupport(Supported, frozen=True, kw_only=True):
    """Conversations of several participants."""

    max_participants: int


class InterruptSupport(WireStruct, frozen=True):
    """The kinds of questions."""

    kinds: list[str]


class ReplaySupport(Supported, frozen=True, kw_only=True):
    """Forks and replays."""

    modes: list[str]
    side_effect_suppression: str


class ReasoningSupport(WireStruct, frozen=True):
    """Events about the reasoning of agents."""

    verbosity: str
    token_limit: int
    streaming: bool


class ManifestRuntime(Supported, frozen=True, kw_only=True):
    """Agents that are defined by manifests."""

    install_scope: str


class LiveRuntime(Supported, frozen=True, kw_only=True):
    """Agents that act during a run."""

    confidence_escalation: bool
    sources: list[str]


class DeploymentSupport(Supported, frozen=True, kw_only=True):
    """Versions of agents and the channels they serve."""

    channels: list[str]
    canary: bool
    rollback: bool
    states: list[str]


class RosterSupport(Supported, frozen=True, kw_only=True):
    """Standing agents."""

    install_scope: str
    portfolio_trigger_sources: list[str]


class AgentSupport(Supported, frozen=True, kw_only=True):
    """Agents."""

    orchestrator: bool
    dispatch: bool
    dispatch_mapping: bool
    reasoning: ReasoningSupport
    sub_run_attestation: bool
    manifest_runtime: ManifestRuntime
    live_runtime: LiveRuntime
    deployment: DeploymentSupport
    memory_backends: list[str]
    roster: RosterSupport | None = None


class DispatchSupport(Supported, frozen=True, kw_only=True):
    """Work that a supervisor hands to children."""

    models: list[str]
    fan_out_supported: bool
    fan_out_policies: list[str]
    join_modes: list[str]
    on_child_failure_modes: list[str]
    ask_user_routings: list[str]


class ReplayDeterminism(Supported, frozen=True, kw_only=True):
    """Replays that call no model."""

    llm_cache_key_recipe: str
    refusal_divergence_emission: bool


class CrossHostCausation(Supported, frozen=True, kw_only=True):
    """Causes of runs on other hosts."""

    host_id: str
    ancestry_endpoint_supported: bool


class ExecutionModel(Supported, frozen=True, kw_only=True):
    """The level of the execution model, and its parts."""

    version: int
    replay_determinism: ReplayDeterminism
    confidence_escalation_floor: float
    confidence_escalation_interrupt_kind: str
    stateful_resume: bool
    transcript_window: int
    cross_child_memory_concurrency: str
    cross_host_causation: CrossHostCausation | None = None


class MultiAgentSupport(WireStruct, frozen=True):
    """Runs of several agents."""

    execution_model: ExecutionModel


class MemoryAttribution(Supported, frozen=True, kw_only=True):
    """Events about written memory."""

    emits_write_events: bool


class MemoryRetention(WireStruct, frozen=True):
    """The ends of entries of memory."""

    ttl: bool
    forget: bool


class MemorySupport(Supported, frozen=True, kw_only=True):
    """The memory of agents."""

    max_entry_size_bytes: int
    ttl_supported: bool
    attribution: MemoryAttribution
    retention: MemoryRetention


class PauseSupport(Supported, frozen=True, kw_only=True):
    """Pauses of runs."""

    drain_policies: list[str]


class BulkCancelSupport(Supported, frozen=True, kw_only=True):
    """Cancellations of several runs at once."""

    max_run_ids: int


class RunSupport(WireStruct, frozen=True):
    """Operations on runs."""

    pause_resume: PauseSupport
    bulk_cancel: BulkCancelSupport


class RestTransport(WireStruct, frozen=True):
    """Optional parts of the HTTP transport."""

    conditional_run_get: bool


class SubWorkflowSupport(WireStruct, frozen=True):
    """Workflows within workflows."""

    input_mapping: bool


class SchedulingSupport(Supported, frozen=True, kw_only=True):
    """Runs that begin at times."""

    cron: bool
    delayed: bool
    max_future_horizon: str


class WebhookSupport(Supported, frozen=True, kw_only=True):
    """Outgoing webhooks."""

    signature_algorithms: list[str]
    durable: bool


class DefaultRetries(WireStruct, frozen=True):
    """The retries of a delivery, unless its subscription says otherwise."""

    max_attempts: int
    backoff: str


class IngestionSupport(WireStruct, frozen=True):
    """Signed requests that begin runs."""

    external_sources: list[str]
    max_body_bytes: int
    verification: list[str]
    registration_endpoint: bool


class TriggerSupport(Supported, frozen=True, kw_only=True):
    """Runs that begin by deliveries."""

    subscription_states: list[str]
    dedup: bool
    retry_policy: DefaultRetries
    sources: list[str]
    ingestion: IngestionSupport


class IdempotencySupport(Supported, frozen=True, kw_only=True):
    """Repeated requests."""

    retention_seconds: int = field(name="layer1RetentionSeconds")
    cross_region: str


class ComplianceSupport(WireStruct, frozen=True):
    """The treatment of sensitive values."""

    default_mode: str


class MockAgent(WireStruct, frozen=True):
    """Doubles of agents on a host under test."""

    mock_agent: bool


class VersionRange(WireStruct, frozen=True):
    """The engine versions that a test may force."""

    min: int
    max: int


class TestingSupport(WireStruct, frozen=True):
    """Doubles of models on a host under test."""

    mock_providers: list[str]
    test_key_prefix: str
    force_engine_version_range: VersionRange


class Discovery(WireStruct, frozen=True):
    """The capabilities of this host."""

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
    conversation_primitive: bool
    multi_party_conversation: ConversationSupport
    interrupts: InterruptSupport
    replay: ReplaySupport
    agents: AgentSupport
    dispatch: DispatchSupport
    multi_agent: MultiAgentSupport
    memory: MemorySupport
    configurable: dict[str, OptionRule]
    runs: RunSupport
    rest_transport: RestTransport
    debug_bundle: Supported
    sub_workflow: SubWorkflowSupport
    scheduling: SchedulingSupport
    dead_letter: Supported
    webhooks: WebhookSupport
    trigger_bridge: TriggerSupport
    idempotency: IdempotencySupport
    compliance: ComplianceSupport
    runtime_capabilities: list[str]
    #: only on a host under test
    fixtures: list[str] | None = None
    conformance: MockAgent | None = None
    testing: TestingSupport | None = None
