"""For operators: is it alive, is it ready, what has it done; and the API reference."""

from importlib.resources import files
from typing import Any

from moot import __version__
from moot.api.host import openapi
from moot.api.http.request import Endpoint, Reply, Request


async def healthz(request: Request) -> Reply:
    return Reply({"status": "ok", "version": __version__})


async def readyz(request: Request) -> Reply:
    """Ready means the store answers."""
    await request.services.store.next_work()
    return Reply({"status": "ready"})


async def index(request: Request) -> Reply:
    return Reply(
        {
            "name": "moot",
            "version": __version__,
            "links": {
                "discovery": "/.well-known/openwop",
                "openapi": "/v1/openapi.json",
                "docs": "/docs",
                "runs": "/v1/host/moot/runs",
                "threads": "/threads",
                "workflows": "/v1/host/moot/workflows",
                "health": "/healthz",
            },
        }
    )


async def api_document(request: Request) -> Reply:
    return Reply(openapi.encoded(), 200, {"Cache-Control": "public, max-age=300"})


async def docs(request: Request) -> Reply:
    return _asset("docs.html", "text/html; charset=utf-8")


async def docs_script(request: Request) -> Reply:
    return _asset("docs.js", "text/javascript; charset=utf-8")


async def docs_style(request: Request) -> Reply:
    return _asset("docs.css", "text/css; charset=utf-8")


def _asset(name: str, media: str) -> Reply:
    body = files("moot.api.host").joinpath("assets", name).read_bytes()
    headers = {
        "Content-Type": media,
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Reply(body, 200, headers)


async def metrics(request: Request) -> Reply:
    from moot.api.host.metrics import CONTENT_TYPE, render

    return Reply(render(request.services), 200, {"Content-Type": CONTENT_TYPE})


def _page(path: str, call: Any, summary: str, media: str = "application/json") -> Endpoint:
    return Endpoint(method="GET", path=path, call=call, public=True, summary=summary, media=media)


ENDPOINTS = (
    _page("/", index, "Where things are"),
    _page("/healthz", healthz, "Is the server alive"),
    _page("/readyz", readyz, "Does the store answer"),
    _page("/v1/openapi.json", api_document, "This document"),
    _page("/docs", docs, "The API reference for people", "text/html"),
    _page("/docs.js", docs_script, "Script of the API reference", "text/javascript"),
    _page("/docs.css", docs_style, "Style of the API reference", "text/css"),
    Endpoint(
        method="GET", path="/metrics", call=metrics, scope="metrics:read", media="text/plain",
        summary="Metrics in Prometheus' text format",
    ),
)  # fmt: skip
