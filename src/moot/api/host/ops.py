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
    await request.store.next_work()
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


async def read_guide(request: Request) -> Reply:
    name = request.params["guide"]
    folder = files("moot").joinpath("guides")
    if not folder.is_dir():  # in a checkout
        folder = Path(__file__).parents[4] / "docs"
    names = [entry.name for entry in folder.iterdir()]
    if f"{name}.md" not in names:
        raise NotFound("There is no such guide.", guide=name[:LONGEST_GUIDE])
    return _page(folder.joinpath(f"{name}.md").read_bytes(), "text/markdown; charset=utf-8")


def _asset(path: str, name: str, media: str) -> Endpoint:
    """Return the route of a file of the reference."""

    async def read_asset(request: Request) -> Reply:
        body = files("moot.api.host").joinpath("assets", name).read_bytes()
        return _page(body, f"{media}; charset=utf-8")

    return Endpoint("GET", path, read_asset, public=True, media=media)


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
    Endpoint("GET", "/", read_index, public=True, answer=HostIndex),
    Endpoint("GET", "/healthz", healthz, public=True, answer=Health),
    Endpoint("GET", "/readyz", readyz, public=True, answer=Health),
    Endpoint("GET", "/v1/openapi.json", read_openapi, public=True, answer=OpenApiDocument),
    _asset("/docs", "docs.html", "text/html"),
    Endpoint("GET", "/docs/{guide}", read_guide, public=True, media="text/markdown"),
    _asset("/docs.js", "docs.js", "text/javascript"),
    _asset("/docs.css", "docs.css", "text/css"),
    Endpoint("GET", "/metrics", read_metrics, scope="metrics:read", media="text/plain"),
)  # fmt: skip
