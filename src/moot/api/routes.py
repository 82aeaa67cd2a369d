"""Every route of the host in one table, the hot ones first."""

import re

from moot.api import memory
from moot.api.access import keys
from moot.api.agent_bridge import routes
from moot.api.agents import deployments, tools
from moot.api.agents import routes as agents
from moot.api.host import discovery, ops
from moot.api.http.request import Endpoint, pattern_of
from moot.api.interrupts import routes as interrupts
from moot.api.replay import diffs, forks, verify
from moot.api.roster import routes as roster
from moot.api.runs import debug_bundle, events, parents, supervisor_turns
from moot.api.runs import (
    routes as runs,
)
from moot.api.schedules import routes as schedules
from moot.api.search import catch_ups, read_marks
from moot.api.search import routes as search
from moot.api.threads import (
    controls,
    councils,
    export,
    join_keys,
    next_request,
    presence,
    seats,
    speech,
)
from moot.api.threads import routes as keeping
from moot.api.triggers import deliveries, ingest, queues, subscriptions, webhooks
from moot.api.workflows import routes as workflows
from moot.conformance.routes import SEAMS

ENDPOINTS: tuple[Endpoint, ...] = (
    *runs.ENDPOINTS,
    *interrupts.ENDPOINTS,
    *forks.ENDPOINTS,
    *diffs.ENDPOINTS,
    *verify.ENDPOINTS,
    *events.ENDPOINTS,
    *parents.ENDPOINTS,
    *councils.ENDPOINTS,
    *controls.ENDPOINTS,
    *join_keys.ENDPOINTS,
    *seats.ENDPOINTS,
    *keeping.ENDPOINTS,
    *speech.ENDPOINTS,
    *routes.ENDPOINTS,
    *presence.ENDPOINTS,
    *next_request.ENDPOINTS,
    *supervisor_turns.ENDPOINTS,
    *export.ENDPOINTS,
    *read_marks.ENDPOINTS,
    *catch_ups.ENDPOINTS,
    *search.ENDPOINTS,
    *workflows.ENDPOINTS,
    *roster.ENDPOINTS,
    *agents.ENDPOINTS,
    *deployments.ENDPOINTS,
    *tools.ENDPOINTS,
    *debug_bundle.ENDPOINTS,
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
        endpoints = (*ENDPOINTS, *SEAMS) if under_trial else ENDPOINTS
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
