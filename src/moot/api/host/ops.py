"""Routes for operators: health, readiness, metrics, API reference."""

from importlib.resources import files
from typing import Any

from moot import __version__
from moot.api.host import openapi
from moot.api.http.request import Endpoint, Reply, Request
from moot.wire.host import Health, HostIndex


async def healthz(request: Request) -> Reply:
    return Reply(Health(status="ok", version=__version__))


async def readyz(request: Request) -> Reply:
    """Answer once the store answers."""
    await request.services.store.next_work()
    return Reply(Health(status="ready"))


async def read_index(request: Request) -> Reply:
    links = {
        "discovery": "/.well-known/openwop",
        "openapi": "/v1/openapi.json",
        "docs": "/docs",
        "runs": "/v1/host/moot/runs",
        "threads": "/threads",
        "workflows": "/v1/host/moot/workflows",
        "health": "/healthz",
    }
    return Reply(HostIndex(name="moot", version=__version__, links=links))


async def read_openapi(request: Request) -> Reply:
    return Reply(openapi.encoded_openapi(), 200, {"Cache-Control": "public, max-age=300"})


async def read_docs(request: Request) -> Reply:
    return _asset("docs.html", "text/html; charset=utf-8")


async def read_docs_script(request: Request) -> Reply:
    return _asset("docs.js", "text/javascript; charset=utf-8")


async def read_docs_style(request: Request) -> Reply:
    return _asset("docs.css", "text/css; charset=utf-8")


def _asset(name: str, media: str) -> Reply:
    body = files("moot.api.host").joinpath("assets", name).read_bytes()
    headers = {
        "Content-Type": media,
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Reply(body, 200, headers)


async def read_metrics(request: Request) -> Reply:
    from moot.api.host.metrics import CONTENT_TYPE, render_metrics

    return Reply(render_metrics(request.services), 200, {"Content-Type": CONTENT_TYPE})


def _public_page(path: str, call: Any, summary: str, media: str = "application/json") -> Endpoint:
    return Endpoint(method="GET", path=path, call=call, public=True, summary=summary, media=media)


OPS_ENDPOINTS = (
    _public_page("/", read_index, "Where things are"),
    _public_page("/healthz", healthz, "Is the server alive"),
    _public_page("/readyz", readyz, "Does the store answer"),
    _public_page("/v1/openapi.json", read_openapi, "This document"),
    _public_page("/docs", read_docs, "The API reference for people", "text/html"),
    _public_page("/docs.js", read_docs_script, "Script of the API reference", "text/javascript"),
    _public_page("/docs.css", read_docs_style, "Style of the API reference", "text/css"),
    Endpoint(
        method="GET", path="/metrics", call=read_metrics, scope="metrics:read", media="text/plain",
        summary="Metrics in Prometheus' text format",
    ),
)  # fmt: skip
