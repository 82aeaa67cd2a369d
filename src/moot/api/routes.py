"""Every route of the host in one table, the hot ones first."""

import re

from moot.api import memory
from moot.api.access import keys
from moot.api.agent_bridge import routes as bridge
from moot.api.agents import deployments, tools
from moot.api.agents import routes as agents
from moot.api.host import discovery, ops
from moot.api.http.request import Endpoint, pattern_of
from moot.api.interrupts import routes as interrupts
from moot.api.replay import diffs, forks
from moot.api.replay import verify as verifications
from moot.api.roster import routes as roster
from moot.api.runs import (
    debug_bundle as bundle,
)
from moot.api.runs import (
    events as streams,
)
from moot.api.runs import (
    parents as ancestry,
)
from moot.api.runs import (
    routes as runs,
)
from moot.api.runs import (
    supervisor_turns as supervising,
)
from moot.api.schedules import routes as schedules
from moot.api.search import catch_ups
from moot.api.search import read_marks as reading
from moot.api.search import routes as search
from moot.api.threads import (
    controls as steering,
)
from moot.api.threads import (
    councils as threads,
)
from moot.api.threads import (
    export as transfer,
)
from moot.api.threads import (
    join_keys as joining,
)
from moot.api.threads import (
    next_request as addressed,
)
from moot.api.threads import (
    presence,
    seats,
    speech,
)
from moot.api.threads import (
    threads as keeping,
)
from moot.api.triggers import deliveries, ingest, queues, subscriptions, webhooks
from moot.api.workflows import routes as workflows
from moot.conformance import routes as conformance

ENDPOINTS: tuple[Endpoint, ...] = (
    *runs.ENDPOINTS,
    *interrupts.ENDPOINTS,
    *forks.ENDPOINTS,
    *diffs.ENDPOINTS,
    *verifications.ENDPOINTS,
    *streams.ENDPOINTS,
    *ancestry.ENDPOINTS,
    *threads.ENDPOINTS,
    *steering.ENDPOINTS,
    *joining.ENDPOINTS,
    *seats.ENDPOINTS,
    *keeping.ENDPOINTS,
    *speech.ENDPOINTS,
    *bridge.ENDPOINTS,
    *presence.ENDPOINTS,
    *addressed.ENDPOINTS,
    *supervising.ENDPOINTS,
    *transfer.ENDPOINTS,
    *reading.ENDPOINTS,
    *catch_ups.ENDPOINTS,
    *search.ENDPOINTS,
    *workflows.ENDPOINTS,
    *roster.ENDPOINTS,
    *agents.ENDPOINTS,
    *deployments.ENDPOINTS,
    *tools.ENDPOINTS,
    *bundle.ENDPOINTS,
    *memory.ENDPOINTS,
    *keys.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *schedules.ENDPOINTS,
    *subscriptions.ENDPOINTS,
    *ingest.ENDPOINTS,
    *queues.ENDPOINTS,
    *deliveries.ENDPOINTS,
    *discovery.ENDPOINTS,
    *ops.ENDPOINTS,
)


Row = tuple[re.Pattern[str], dict[str, Endpoint]]


class Router:
    """Exact paths by look-up, the others by pattern; literal verbs win over plain ids."""

    def __init__(self, under_trial: bool) -> None:
        endpoints = (*ENDPOINTS, *conformance.SEAMS) if under_trial else ENDPOINTS
        self.endpoints = endpoints
        self._exact: dict[str, dict[str, Endpoint]] = {}
        patterns: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            table = patterns if "{" in endpoint.path else self._exact
            table.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        #: slashes, and whether there is a colon -> what may fit: a parameter holds no slash, and
        #: a path without a colon names no verb
        self._patterns: dict[tuple[int, bool], list[Row]] = {}
        for path in sorted(patterns, key=_rank):
            for colon in {":" in path, True}:
                rows = self._patterns.setdefault((path.count("/"), colon), [])
                rows.append((pattern_of(path), patterns[path]))

    def find(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]] | None:
        """The methods of a path and its parameters."""
        methods = self._exact.get(path)
        if methods is not None:
            return methods, {}
        for pattern, found in self._patterns.get((path.count("/"), ":" in path), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return found, match.groupdict()
        return None


def _rank(path: str) -> tuple[int, int]:
    """``{run_id}:pause`` before ``{run_id}``."""
    return (0 if re.search(r"\}:\w", path) else 1, -len(path))
