"""Every route of the host in one table, the hot ones first."""

import re

from moot.api import (
    addressed,
    agents,
    ancestry,
    bridge,
    bundle,
    catch_ups,
    conformance,
    deliveries,
    deployments,
    diffs,
    discovery,
    forks,
    ingest,
    interrupts,
    joining,
    keeping,
    keys,
    memory,
    ops,
    presence,
    queues,
    reading,
    roster,
    runs,
    schedules,
    search,
    seats,
    speech,
    steering,
    streams,
    subscriptions,
    supervising,
    threads,
    tools,
    transfer,
    verifications,
    webhooks,
    workflows,
)
from moot.api.wire import Endpoint, pattern_of

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
