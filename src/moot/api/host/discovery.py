"""The discovery document: what this host claims to support.

Claims follow from what is installed. A test probes each of them.
"""

from msgspec import to_builtins

from moot import __version__
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.replay import forks
from moot.api.runs.create import configurable_keys
from moot.api.runs.routes import MOST_CANCELS
from moot.api.services import Services
from moot.api.triggers import ingest
from moot.core import memory
from moot.core.agents import deployments, events
from moot.core.conversations import participants
from moot.core.events import ENGINE_VERSION, LOG_SCHEMA_VERSION
from moot.core.interrupts import escalations
from moot.core.schedules.model import DEFAULT_HORIZON
from moot.core.triggers import subscriptions
from moot.core.workflows import turn_inputs
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.schedules import records
from moot.wire import discovery

PROTOCOL_VERSION = "1.1"
#: The level covers loop, handoff, confidence, memory, causes across hosts, determinism and turns.
EXECUTION_MODEL = 5


async def read_discovery(request: Request) -> Reply:
    return Reply(
        discovery_document(request.services), 200, {"Cache-Control": "public, max-age=300"}
    )


def discovery_document(services: Services) -> dict[str, object]:
    """Return the claims. A test may have switched some of them."""
    return services.seams.change_claims(to_builtins(_host_claims(services)))


def _host_claims(services: Services) -> discovery.Discovery:
    return discovery.Discovery(
        protocol_version=PROTOCOL_VERSION,
        protocol_versions=[PROTOCOL_VERSION],
        implementation=discovery.Implementation(name="moot", version=__version__, vendor="moot"),
        engine_version=ENGINE_VERSION,
        event_log_schema_version=LOG_SCHEMA_VERSION,
        min_client_version="1.0",
        supported_transports=["rest"],
        supported_envelopes=["clarification.request"],
        schema_versions={"clarification.request": 1},
        limits=_limit_claims(services),
        conversation_primitive=True,
        multi_party_conversation=CONVERSATIONS,
        interrupts=discovery.InterruptSupport(kinds=INTERRUPT_KINDS),
        replay=REPLAY,
        agents=_agent_claims(services),
        dispatch=DISPATCH,
        multi_agent=discovery.MultiAgentSupport(execution_model=_execution_model(services)),
        memory=MEMORY,
        configurable=configurable_keys(services),
        runs=RUNS,
        rest_transport=discovery.RestTransport(conditional_run_get=True),
        debug_bundle=discovery.Supported(supported=True),
        sub_workflow=discovery.SubWorkflowSupport(input_mapping=True),
        scheduling=SCHEDULING,
        dead_letter=discovery.Supported(supported=True),
        webhooks=discovery.WebhookSupport(
            supported=True, signature_algorithms=["v1"], durable=True
        ),
        trigger_bridge=_trigger_claims(),
        idempotency=_idempotency_claims(services),
        compliance=discovery.ComplianceSupport(default_mode="mask"),
        runtime_capabilities=[],
    )


INTERRUPT_KINDS = [
    "approval", "clarification", "external-event", "custom", "conversation", "conversation.start",
    "conversation.exchange", "conversation.close", "low-confidence",
]  # fmt: skip
CONVERSATIONS = discovery.ConversationSupport(
    supported=True, max_participants=participants.MOST_PARTICIPANTS
)
REPLAY = discovery.ReplaySupport(
    supported=True, modes=list(forks.MODES), side_effect_suppression="recorded-outcome"
)
SCHEDULING = discovery.SchedulingSupport(
    supported=True, cron=True, delayed=True, max_future_horizon=DEFAULT_HORIZON
)
DISPATCH = discovery.DispatchSupport(
    supported=True,
    models=["child-run"],
    fan_out_supported=True,
    fan_out_policies=["sequential", "reject", "parallel"],
    join_modes=["wait-all", "quorum", "first", "race"],
    on_child_failure_modes=["collect", "fail-fast", "absorb"],
    ask_user_routings=["conversation", "clarification", "auto"],
)
MEMORY = discovery.MemorySupport(
    supported=True,
    max_entry_size_bytes=memory.LARGEST_CONTENT,
    ttl_supported=True,
    attribution=discovery.MemoryAttribution(supported=True, emits_write_events=True),
    retention=discovery.MemoryRetention(ttl=True, forget=True),
)
RUNS = discovery.RunSupport(
    pause_resume=discovery.PauseSupport(
        supported=True, drain_policies=["immediate", "drain-current-node"]
    ),
    bulk_cancel=discovery.BulkCancelSupport(supported=True, max_run_ids=MOST_CANCELS),
)


def _agent_claims(services: Services) -> discovery.AgentSupport:
    sources = sorted(services.triggers.sources)
    roster = discovery.RosterSupport(
        supported=True, install_scope="tenant", portfolio_trigger_sources=sources
    )
    return discovery.AgentSupport(
        supported=True,
        orchestrator=True,
        dispatch=True,
        dispatch_mapping=True,
        reasoning=discovery.ReasoningSupport(
            verbosity=events.DEFAULT_VERBOSITY, token_limit=events.TOKEN_LIMIT, streaming=True
        ),
        sub_run_attestation=True,
        manifest_runtime=discovery.ManifestRuntime(supported=True, install_scope="tenant"),
        live_runtime=discovery.LiveRuntime(
            supported=True,
            confidence_escalation=True,
            sources=["workflow-node", "run-api", "chat-mention"],
        ),
        deployment=discovery.DeploymentSupport(
            supported=True,
            channels=list(deployments.CHANNELS),
            canary=True,
            rollback=True,
            states=list(deployments.STATES),
        ),
        memory_backends=["long-term"],
        roster=roster if services.settings.roster else None,
    )


def _execution_model(services: Services) -> discovery.ExecutionModel:
    host_id = services.host.peers.host_id
    causation = discovery.CrossHostCausation(
        supported=True, host_id=host_id, ancestry_endpoint_supported=True
    )
    return discovery.ExecutionModel(
        supported=True,
        version=EXECUTION_MODEL,
        replay_determinism=discovery.ReplayDeterminism(
            supported=True, llm_cache_key_recipe="spec-rfc-0041", refusal_divergence_emission=True
        ),
        confidence_escalation_floor=escalations.FLOOR,
        confidence_escalation_interrupt_kind=escalations.ESCALATION_KIND,
        stateful_resume=True,
        transcript_window=turn_inputs.WINDOW,
        cross_child_memory_concurrency="strict",
        # a store that is only read has no host id
        cross_host_causation=causation if host_id else None,
    )


def _trigger_claims() -> discovery.TriggerSupport:
    usual = subscriptions.RetryPolicy()
    return discovery.TriggerSupport(
        supported=True,
        subscription_states=list(subscriptions.STATES),
        dedup=True,
        retry_policy=discovery.DefaultRetries(
            max_attempts=usual.max_attempts, backoff=usual.backoff
        ),
        sources=[*INBOUND_SOURCES, records.SCHEDULE_SOURCE],
        ingestion=discovery.IngestionSupport(
            external_sources=["webhook"],
            max_body_bytes=ingest.LARGEST_BODY,
            verification=["webhook-signature"],
            registration_endpoint=True,
        ),
    )


def _idempotency_claims(services: Services) -> discovery.IdempotencySupport:
    return discovery.IdempotencySupport(
        supported=True,
        retention_seconds=services.settings.receipt_hours * 3600,
        cross_region="single-region",
    )


def _limit_claims(services: Services) -> discovery.HostLimits:
    limits = services.host.limits
    return discovery.HostLimits(
        clarification_rounds=3,
        schema_rounds=2,
        envelopes_per_turn=5,
        max_node_executions=limits.node_executions,
        max_run_duration_ms=limits.duration_ms,
        max_loop_iterations=limits.loops,
        max_request_body_bytes=services.settings.max_body_bytes,
    )


DISCOVERY_ENDPOINTS = (
    Endpoint("GET", "/.well-known/openwop", read_discovery, public=True,
             answer=discovery.Discovery),
)  # fmt: skip
