"""The discovery document: what this host claims to support.

Claims follow from what is installed. A test probes each of them.
"""

from typing import Any

from moot import __version__
from moot.api.access.auth import TEST_PREFIX
from moot.api.http.request import Endpoint, Reply, Request
from moot.api.replay import forks
from moot.api.runs import create_options
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
from moot.engine.nodes.registry import MOCK_PROVIDERS
from moot.triggers.inbound.items import INBOUND_SOURCES
from moot.triggers.schedules import records
from moot.wire.host import Discovery

PROTOCOL_VERSION = "1.1"
#: The level covers loop, handoff, confidence, memory, causes across hosts, determinism and turns.
EXECUTION_MODEL = 5


async def read_discovery(request: Request) -> Reply:
    return Reply(
        discovery_document(request.services), 200, {"Cache-Control": "public, max-age=300"}
    )


def discovery_document(services: Services) -> dict[str, Any]:
    settings = services.settings
    claims: dict[str, Any] = {
        "protocolVersion": PROTOCOL_VERSION,
        "protocolVersions": [PROTOCOL_VERSION],
        "implementation": {"name": "moot", "version": __version__, "vendor": "moot"},
        "engineVersion": ENGINE_VERSION,
        "eventLogSchemaVersion": LOG_SCHEMA_VERSION,
        "minClientVersion": "1.0",
        "supportedTransports": ["rest"],
        "supportedEnvelopes": ["clarification.request"],
        "schemaVersions": {"clarification.request": 1},
        "limits": _limit_claims(services),
        **_interrupt_claims(),
        **_orchestration_claims(services),
        "memory": _memory_claims(),
        "configurable": create_options.configurable_keys(services),
        "runs": {
            "pauseResume": {
                "supported": True,
                "drainPolicies": ["immediate", "drain-current-node"],
            },
            "bulkCancel": {"supported": True, "maxRunIds": MOST_CANCELS},
        },
        "restTransport": {"conditionalRunGet": True},
        "debugBundle": {"supported": True},
        "subWorkflow": {"inputMapping": True},
        **_schedule_claims(),
        "webhooks": {"supported": True, "signatureAlgorithms": ["v1"], "durable": True},
        "triggerBridge": _trigger_claims(),
        "idempotency": {
            "supported": True,
            "layer1RetentionSeconds": settings.receipt_hours * 3600,
            "crossRegion": "single-region",
        },
        "compliance": {"defaultMode": "mask"},
        "runtimeCapabilities": [],
    }
    if settings.conformance:
        claims |= _conformance_claims(services)
    return _apply_overlay(claims, services.overlay)


def _schedule_claims() -> dict[str, Any]:
    return {
        "scheduling": {
            "supported": True, "cron": True, "delayed": True, "maxFutureHorizon": DEFAULT_HORIZON,
        },
        "deadLetter": {"supported": True},
    }  # fmt: skip


def _interrupt_claims() -> dict[str, Any]:
    return {
        "conversationPrimitive": True,
        "multiPartyConversation": {
            "supported": True,
            "maxParticipants": participants.MOST_PARTICIPANTS,
        },
        "interrupts": {
            "kinds": [
                "approval",
                "clarification",
                "external-event",
                "custom",
                "conversation",
                "conversation.start",
                "conversation.exchange",
                "conversation.close",
                "low-confidence",
            ]
        },
    }


def _orchestration_claims(services: Services) -> dict[str, Any]:
    """Claims about replay, agents, dispatch and the execution model."""
    return {
        "replay": {
            "supported": True,
            "modes": list(forks.MODES),
            "sideEffectSuppression": "recorded-outcome",
        },
        "agents": _agent_claims(services),
        "dispatch": {
            "supported": True,
            "models": ["child-run"],
            "fanOutSupported": True,
            "fanOutPolicies": ["sequential", "reject", "parallel"],
            "joinModes": ["wait-all", "quorum", "first", "race"],
            "onChildFailureModes": ["collect", "fail-fast", "absorb"],
            "askUserRoutings": ["conversation", "clarification", "auto"],
        },
        "multiAgent": {
            "executionModel": {
                "supported": True,
                "version": EXECUTION_MODEL,
                "replayDeterminism": {
                    "supported": True,
                    "llmCacheKeyRecipe": "spec-rfc-0041",
                    "refusalDivergenceEmission": True,
                },
                "confidenceEscalationFloor": escalations.FLOOR,
                "confidenceEscalationInterruptKind": escalations.ESCALATION_KIND,
                "statefulResume": True,
                "transcriptWindow": turn_inputs.WINDOW,
                "crossChildMemoryConcurrency": "strict",
                **_causation_claims(services),
            }
        },
    }


def _agent_claims(services: Services) -> dict[str, Any]:
    return {
        "supported": True,
        "orchestrator": True,
        "dispatch": True,
        "dispatchMapping": True,
        "reasoning": {
            "verbosity": events.DEFAULT_VERBOSITY,
            "tokenLimit": events.TOKEN_LIMIT,
            "streaming": True,
        },
        "subRunAttestation": True,
        **_runtime_claims(),
        **_roster_claims(services),
        "memoryBackends": ["long-term"],
    }


def _runtime_claims() -> dict[str, Any]:
    return {
        "manifestRuntime": {"supported": True, "installScope": "tenant"},
        "liveRuntime": {
            "supported": True,
            "confidenceEscalation": True,
            "sources": ["workflow-node", "run-api", "chat-mention"],
        },
        "deployment": {
            "supported": True,
            "channels": list(deployments.CHANNELS),
            "canary": True,
            "rollback": True,
            "states": list(deployments.STATES),
        },
    }


def _roster_claims(services: Services) -> dict[str, Any]:
    if not services.settings.roster:
        return {}
    sources = sorted(services.triggers.sources)
    return {
        "roster": {
            "supported": True,
            "installScope": "tenant",
            "portfolioTriggerSources": sources,
        }
    }


def _trigger_claims() -> dict[str, Any]:
    usual = subscriptions.RetryPolicy()
    return {
        "supported": True,
        "subscriptionStates": list(subscriptions.STATES),
        "dedup": True,
        "retryPolicy": {"maxAttempts": usual.max_attempts, "backoff": usual.backoff},
        "sources": [*INBOUND_SOURCES, records.SCHEDULE_SOURCE],
        "ingestion": {
            "externalSources": ["webhook"],
            "maxBodyBytes": ingest.LARGEST_BODY,
            "verification": ["webhook-signature"],
            "registrationEndpoint": True,
        },
    }


def _memory_claims() -> dict[str, Any]:
    return {
        "supported": True,
        "maxEntrySizeBytes": memory.LARGEST_CONTENT,
        "ttlSupported": True,
        "attribution": {"supported": True, "emitsWriteEvents": True},
        "retention": {"ttl": True, "forget": True},
    }


def _causation_claims(services: Services) -> dict[str, Any]:
    """Claims about causes across hosts.

    A store that is only read has no host id and claims nothing.
    """
    host_id = services.host.peers.host_id
    if not host_id:  # a store that is only read
        return {}
    return {
        "crossHostCausation": {
            "supported": True,
            "hostId": host_id,
            "ancestryEndpointSupported": True,
        }
    }


def _limit_claims(services: Services) -> dict[str, int]:
    limits = services.host.limits
    return {
        "clarificationRounds": 3,
        "schemaRounds": 2,
        "envelopesPerTurn": 5,
        "maxNodeExecutions": limits.node_executions,
        "maxRunDurationMs": limits.duration_ms,
        "maxLoopIterations": limits.loops,
        "maxRequestBodyBytes": services.settings.max_body_bytes,
    }


def _conformance_claims(services: Services) -> dict[str, Any]:
    low, high = create_options.FORCEABLE_VERSIONS
    return {
        "fixtures": services.fixtures,
        "conformance": {"mockAgent": True},
        "testing": {
            "mockProviders": list(MOCK_PROVIDERS),
            "testKeyPrefix": TEST_PREFIX,
            "forceEngineVersionRange": {"min": low, "max": high},
        },
    }


def _apply_overlay(claims: dict[str, Any], overlay: dict[str, bool]) -> dict[str, Any]:
    """Apply the claims that a test has switched, by dotted name. Only a host under test has any."""
    for name, value in overlay.items():
        place = claims
        *path, last = name.split(".")
        for word in path:
            step = place.setdefault(word, {})
            place = step if isinstance(step, dict) else {}
        if not isinstance(place.get(last), dict):
            place[last] = value
        elif not value:  # a host without the capability leaves it out
            del place[last]
    return claims


DISCOVERY_ENDPOINTS = (
    Endpoint(
        method="GET", path="/.well-known/openwop", call=read_discovery, public=True,
        summary="What this host can do", published="capabilities",
        tag="Host", operation_id="readDiscovery", answer=Discovery,
        description="Returns the capabilities of this host in the form of the protocol: versions, "
        "limits, and each optional part that it supports.",
    ),
)  # fmt: skip
