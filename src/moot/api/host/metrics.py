"""Render the host's counters in the text format of Prometheus."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from moot.api.services import Services
from moot.core.payloads.nodes import NodeCompleted, NodeStarted
from moot.core.payloads.runs import CapBreached, RunStarted

__all__ = ["CONTENT_TYPE", "render_metrics"]


class _HostMetrics(Collector):
    """A Prometheus collector that reads the host's counters."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        host = self._services.host
        metrics = host.metrics
        counters = {
            "openwop_run_created": ("Runs begun.", metrics.events[RunStarted.event_type]),
            "openwop_node_completed": (
                "Nodes ended well.", metrics.events[NodeCompleted.event_type]
            ),
            "openwop_node_attempts": ("Attempts begun.", metrics.events[NodeStarted.event_type]),
            "openwop_cap_exceeded": ("Limits reached.", metrics.events[CapBreached.event_type]),
            "moot_events": ("Events committed.", sum(metrics.events.values())),
        }  # fmt: skip
        for name, (text, count) in counters.items():
            yield CounterMetricFamily(name, text, value=count)
        ended = CounterMetricFamily(
            "openwop_run_completed", "Runs ended, by how.", labels=["openwop_run_status"]
        )
        for status in ("completed", "failed", "cancelled"):
            ended.add_metric([status], metrics.events[f"run.{status}"])
        yield ended
        answers = CounterMetricFamily(
            "moot_http_requests", "Requests answered.", labels=["route", "status"]
        )
        for (route, status_code), number in metrics.requests.items():
            answers.add_metric([route, str(status_code)], number)
        yield answers
        gauges = {
            "moot_streams": ("Open event streams.", host.hub.count()),
            "moot_activities": ("Nodes touching the world now.", len(host.activities)),
            "moot_timers": ("Runs that wait for a time.", len(host.timers)),
        }
        for name, (text, count) in gauges.items():
            yield GaugeMetricFamily(name, text, value=count)


def render_metrics(services: Services) -> bytes:
    registry = CollectorRegistry()
    registry.register(_HostMetrics(services))
    return bytes(generate_latest(registry))
