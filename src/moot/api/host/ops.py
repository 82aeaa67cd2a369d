"""Routes for operators: health, readiness, metrics, API reference."""

from importlib.resources import files
from pathlib import Path

from moot import __version__
from moot.api.host import openapi
from moot.api.http.request import Endpoint, Reply, Request
from moot.core.errors import NotFound
from moot.wire.host import Health, HostIndex, OpenApiDocument

#: Characters of a guide's name in a refusal.
LONGEST_GUIDE = 64


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


async def read_guide(request: Request) -> Reply:
    name = request.params["guide"]
    folder = files("moot").joinpath("guides")
    if not folder.is_dir():  # in a checkout
        folder = Path(__file__).parents[4] / "docs"
    names = [entry.name for entry in folder.iterdir()]
    if f"{name}.md" not in names:
        raise NotFound("There is no such guide.", guide=name[:LONGEST_GUIDE])
    return _page(folder.joinpath(f"{name}.md").read_bytes(), "text/markdown; charset=utf-8")


def _asset(name: str, media: str) -> Reply:
    return _page(files("moot.api.host").joinpath("assets", name).read_bytes(), media)


def _page(body: bytes, media: str) -> Reply:
    headers = {
        "Content-Type": media,
        "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Reply(body, 200, headers)


async def read_metrics(request: Request) -> Reply:
    from moot.api.host.metrics import CONTENT_TYPE, render_metrics

    return Reply(render_metrics(request.services), 200, {"Content-Type": CONTENT_TYPE})


OPS_ENDPOINTS = (
    Endpoint(
        method="GET", path="/", call=read_index, public=True, summary="Where things are",
        tag="Host", operation_id="readIndex", answer=HostIndex,
        description="Returns the links to the parts of the API.",
    ),
    Endpoint(
        method="GET", path="/healthz", call=healthz, public=True, summary="Is the server alive",
        tag="Host", operation_id="readHealth", answer=Health,
        description="Answers as long as the server runs. It does not ask the store.",
    ),
    Endpoint(
        method="GET", path="/readyz", call=readyz, public=True, summary="Does the store answer",
        tag="Host", operation_id="readReadiness", answer=Health,
        description="Answers once the store answers.",
    ),
    Endpoint(
        method="GET", path="/v1/openapi.json", call=read_openapi, public=True,
        summary="This document",
        tag="Host", operation_id="readOpenApi", answer=OpenApiDocument,
        description="Returns this API as an OpenAPI 3.1 document.",
    ),
    Endpoint(
        method="GET", path="/docs", call=read_docs, public=True, media="text/html",
        summary="The API reference for people",
        tag="Host", operation_id="readReference",
        description="Shows this document as a page, with a form for each operation.",
    ),
    Endpoint(
        method="GET", path="/docs/{guide}", call=read_guide, public=True, media="text/markdown",
        summary="A guide for people", errors=(404,),
        tag="Host", operation_id="readGuide",
        description="Returns one of the guides that the tags lead to, as Markdown.",
    ),
    Endpoint(
        method="GET", path="/docs.js", call=read_docs_script, public=True, media="text/javascript",
        summary="Script of the API reference",
        tag="Host", operation_id="readReferenceScript",
        description="Returns the script of the API reference.",
    ),
    Endpoint(
        method="GET", path="/docs.css", call=read_docs_style, public=True, media="text/css",
        summary="Style of the API reference",
        tag="Host", operation_id="readReferenceStyle",
        description="Returns the style of the API reference.",
    ),
    Endpoint(
        method="GET", path="/metrics", call=read_metrics, scope="metrics:read", media="text/plain",
        summary="Metrics in Prometheus' text format",
        tag="Host", operation_id="readMetrics",
        description="Returns counters of runs, nodes, events, requests and streams.",
    ),
)  # fmt: skip
