"""Table of every route of the host."""

import re

from moot.api.access.keys import KEY_ENDPOINTS
from moot.api.agent_bridge.routes import BRIDGE_ENDPOINTS
from moot.api.agents.deployments import DEPLOYMENT_ENDPOINTS
from moot.api.agents.routes import AGENT_ENDPOINTS
from moot.api.host.discovery import DISCOVERY_ENDPOINTS
from moot.api.host.ops import OPS_ENDPOINTS
from moot.api.http.request import Endpoint
from moot.api.interrupts.answers import INTERRUPT_ENDPOINTS
from moot.api.interrupts.inbox import INBOX_ENDPOINTS
from moot.api.memory import MEMORY_ENDPOINTS
from moot.api.replay.comparison import COMPARISON_ENDPOINTS
from moot.api.replay.forks import FORK_ENDPOINTS
from moot.api.roster.routes import ROSTER_ENDPOINTS
from moot.api.runs.debug_bundle import DEBUG_BUNDLE_ENDPOINTS
from moot.api.runs.events import EVENT_ENDPOINTS
from moot.api.runs.origin import ANCESTRY_ENDPOINTS
from moot.api.runs.routes import RUN_ENDPOINTS
from moot.api.schedules.routes import SCHEDULE_ENDPOINTS
from moot.api.search.catch_ups import CATCH_UP_ENDPOINTS
from moot.api.search.read_marks import READ_MARK_ENDPOINTS
from moot.api.search.routes import SEARCH_ENDPOINTS
from moot.api.threads.controls import CONTROL_ENDPOINTS
from moot.api.threads.councils import COUNCIL_ENDPOINTS
from moot.api.threads.export import EXPORT_ENDPOINTS
from moot.api.threads.joining import JOIN_ENDPOINTS
from moot.api.threads.next_request import NEXT_REQUEST_ENDPOINTS
from moot.api.threads.presence import PRESENCE_ENDPOINTS
from moot.api.threads.routes import THREAD_ENDPOINTS
from moot.api.threads.speech import SPEECH_ENDPOINTS
from moot.api.triggers.deliveries import DELIVERY_ENDPOINTS
from moot.api.triggers.ingest import INGEST_ENDPOINTS
from moot.api.triggers.queues import QUEUE_ENDPOINTS
from moot.api.triggers.subscriptions import SUBSCRIPTION_ENDPOINTS
from moot.api.triggers.webhooks import WEBHOOK_ENDPOINTS
from moot.api.workflows.routes import WORKFLOW_ENDPOINTS
from moot.core.errors import NotProvided

#: Often used routes come first.
ENDPOINTS: tuple[Endpoint, ...] = (
    *RUN_ENDPOINTS, *INTERRUPT_ENDPOINTS, *INBOX_ENDPOINTS, *FORK_ENDPOINTS, *COMPARISON_ENDPOINTS,
    *EVENT_ENDPOINTS, *ANCESTRY_ENDPOINTS, *COUNCIL_ENDPOINTS, *CONTROL_ENDPOINTS, *JOIN_ENDPOINTS,
    *THREAD_ENDPOINTS, *SPEECH_ENDPOINTS, *BRIDGE_ENDPOINTS, *PRESENCE_ENDPOINTS,
    *NEXT_REQUEST_ENDPOINTS, *EXPORT_ENDPOINTS, *READ_MARK_ENDPOINTS, *CATCH_UP_ENDPOINTS,
    *SEARCH_ENDPOINTS, *WORKFLOW_ENDPOINTS, *ROSTER_ENDPOINTS, *AGENT_ENDPOINTS,
    *DEPLOYMENT_ENDPOINTS, *DEBUG_BUNDLE_ENDPOINTS, *MEMORY_ENDPOINTS, *KEY_ENDPOINTS,
    *WEBHOOK_ENDPOINTS, *SCHEDULE_ENDPOINTS, *SUBSCRIPTION_ENDPOINTS, *INGEST_ENDPOINTS,
    *QUEUE_ENDPOINTS, *DELIVERY_ENDPOINTS, *DISCOVERY_ENDPOINTS, *OPS_ENDPOINTS,
)  # fmt: skip

#: Path pattern -> the missing capability. The protocol wants 501 for these paths; every other
#: missing path gets a plain 404.
UNSUPPORTED = {
    r"/v1/runs/[^/]+/annotations": "feedback",
    r"/v1/prompts([/:].*)?": "prompts",
    r"/v1/content(/.*)?": "content",
    r"/v1/host/workspace/files(/.*)?": "workspaceFiles",
}


def unsupported_route(path: str) -> NotProvided | None:
    """Return the refusal of a path whose capability this host lacks."""
    for pattern, capability in UNSUPPORTED.items():
        if re.fullmatch(pattern, path):
            return NotProvided(
                f"This host does not offer {capability}; see /.well-known/openwop.",
                capability=capability,
            )
    return None
