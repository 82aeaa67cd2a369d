"""Discovery: each claim is made from what is installed; a test probes each of them."""

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
from moot.core.schedules.model import HORIZON
from moot.core.triggers import subscriptions
from moot.core.workflows import turn_inputs
from moot.engine.nodes.registry import MOCK_PROVIDERS
from moot.triggers.inbound.items import SOURCES
from moot.triggers.schedules.records import SOURCE as SCHEDULE

PROTOCOL_VERSION = "1.1"
#: loop and handoff, confidence and memory, causes across hosts, determinism, turns with a number
EXECUTION_MODEL = 5


async def discovery(request: Request) -> Reply:
    return Reply(document(request.services), 200, {"Cache-Control": "public, max-age=300"})


def document(services: Services) -> dict[str, Any]:
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
        "limits": _limits(services),
        **_asking(),
        **_orchestrating(services),
        "memory": _memory(),
        "configurable": create_options.advertised(services),
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
        **_timely(),
        "webhooks": {"supported": True, "signatureAlgorithms": ["v1"], "durable": True},
        "triggerBridge": _bridge(),
        "idempotency": {
            "supported": True,
            "layer1RetentionSeconds": settings.receipt_hours * 3600,
            "crossRegion": "single-region",
        },
        "compliance": {"defaultMode": "mask"},
        "runtimeCapabilities": [],
    }
    if settings.conformance:
        claims |= _conformance(services)
    return _overlaid(claims, services.overlay)


def _timely() -> dict[str, Any]:
    """What begins by itself, and what is given up after all attempts."""
    return {
        "scheduling": {
            "supported": True, "cron": True, "delayed": True, "maxFutureHorizon": HORIZON,
        },
        "deadLetter": {"supported": True},
    }  # fmt: skip


def _asking() -> dict[str, Any]:
    """What may wait for people, and who may speak."""
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


def _orchestrating(services: Services) -> dict[str, Any]:
    """Supervisors, the handoff to their workers, how waves of them come together, and how a run is
    said again or led elsewhere."""
    return {
        "replay": {
            "supported": True,
            "modes": list(forks.MODES),
            "sideEffectSuppression": "recorded-outcome",
        },
        "agents": _agents(services),
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
                "confidenceEscalationInterruptKind": escalations.INTERRUPT,
                "statefulResume": True,
                "transcriptWindow": turn_inputs.WINDOW,
                "crossChildMemoryConcurrency": "strict",
                **_across_hosts(services),
            }
        },
    }


def _agents(services: Services) -> dict[str, Any]:
    return {
        "supported": True,
        "orchestrator": True,
        "dispatch": True,
        "dispatchMapping": True,
        "reasoning": {
            "verbosity": events.VERBOSITY,
            "tokenLimit": events.TOKEN_LIMIT,
            "streaming": True,
        },
        "subRunAttestation": True,
        **_living(),
        **_standing(services),
        "memoryBackends": ["long-term"],
    }


def _living() -> dict[str, Any]:
    """Agents of this host: who they are, how they are asked, which version serves whom."""
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


def _standing(services: Services) -> dict[str, Any]:
    """Standing agents, and what wakes them here."""
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


def _bridge() -> dict[str, Any]:
    """What comes in and becomes runs."""
    usual = subscriptions.RetryPolicy()
    return {
        "supported": True,
        "subscriptionStates": list(subscriptions.STATES),
        "dedup": True,
        "retryPolicy": {"maxAttempts": usual.max_attempts, "backoff": usual.backoff},
        "sources": [*SOURCES, SCHEDULE],
        "ingestion": {
            "externalSources": ["webhook"],
            "maxBodyBytes": ingest.LARGEST,
            "verification": ["webhook-signature"],
            "registrationEndpoint": True,
        },
    }


def _memory() -> dict[str, Any]:
    return {
        "supported": True,
        "maxEntrySizeBytes": memory.LARGEST,
        "ttlSupported": True,
        "attribution": {"supported": True, "emitsWriteEvents": True},
        "retention": {"ttl": True, "forget": True},
    }


def _across_hosts(services: Services) -> dict[str, Any]:
    """How other hosts call this one, and that a run here says where it comes from."""
    host_id = services.host.peers.host_id
    if not host_id:  # a file that is only read is no host
        return {}
    return {
        "crossHostCausation": {
            "supported": True,
            "hostId": host_id,
            "ancestryEndpointSupported": True,
        }
    }


def _limits(services: Services) -> dict[str, int]:
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


def _conformance(services: Services) -> dict[str, Any]:
    low, high = create_options.FORCEABLE
    return {
        "fixtures": services.fixtures,
        "conformance": {"mockAgent": True},
        "testing": {
            "mockProviders": list(MOCK_PROVIDERS),
            "testKeyPrefix": TEST_PREFIX,
            "forceEngineVersionRange": {"min": low, "max": high},
        },
    }


def _overlaid(claims: dict[str, Any], overlay: dict[str, bool]) -> dict[str, Any]:
    """What a test has switched, by dotted name; only a host under test has any."""
    for name, value in overlay.items():
        place = claims
        *path, last = name.split(".")
        for word in path:
            step = place.setdefault(word, {})
            place = step if isinstance(step, dict) else {}
        if not isinstance(place.get(last), dict):
            place[last] = value
        elif not value:  # the whole of it: whoever has none of it says nothing of it
            del place[last]
    return claims


ENDPOINTS = (
    Endpoint(
        method="GET", path="/.well-known/openwop", call=discovery, public=True,
        summary="What this host can do", answer="capabilities",
    ),
)  # fmt: skip
