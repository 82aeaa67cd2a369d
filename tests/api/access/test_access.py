"""Who may do what (protocol 13), generated over the table of routes."""

import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpx2 as httpx
import pytest

from moot.api.access.auth import SCOPES
from moot.api.host.openapi import read_reference
from moot.api.http.request import Endpoint
from moot.api.routes import ENDPOINTS
from moot.conformance.routes import SEAMS
from tests.support.api.caller import Api, definition

ROUTES = (*ENDPOINTS, *SEAMS)


GUARDED = [row for row in ROUTES if not row.public]


PUBLIC = [row for row in ROUTES if row.public]


PAGES = [row for row in PUBLIC if "{" not in row.path]


LINKS = [row for row in PUBLIC if "{token}" in row.path]


#: who names a queue first has it: each tenant its own
NAMING = ("PUT /v1/host/moot/queues/{queue}", "POST /v1/host/moot/queues/{queue}/items")


WITH_ID = [row for row in GUARDED if "{" in row.path and row.operation not in NAMING]


PATHS = sorted({row.path for row in ROUTES})


NO_PATHS = ["/v1/unknown", "/v1/", "/.well-known/x", "/v1/runs/"]


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]


WRONG_METHODS = ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]


def name_of(row: Any) -> str:
    return row.operation if isinstance(row, Endpoint) else str(row)


def offences(rows: Iterable[Any], check: Callable[[Any], None]) -> list[str]:
    """The rows that fail the check, each with the reason."""
    failures = []
    for row in rows:
        try:
            check(row)
        except AssertionError as failure:
            failures.append(f"{name_of(row)}: {failure}")
    return failures


def path_of(row: Endpoint | str, **params: str) -> str:
    """The route's path, with ids that nobody has where none are given."""
    template = row if isinstance(row, str) else row.path
    return re.sub(r"\{(\w+)\}", lambda found: params.get(found[1], "nobody"), template)


@pytest.fixture(scope="module")
def things(api: Api) -> dict[str, str]:
    """Real ids of the default tenant, one for each kind of parameter."""
    emit = {
        "id": "emit", "typeId": "conformance.artifact.emit", "config": {"artifactType": "report"},
    }  # fmt: skip
    sleep = {"id": "sleep", "typeId": "core.delay", "config": {"ms": 600_000}}
    gate = {"id": "gate", "typeId": "core.approvalGate"}
    plan = [{"kind": "next-worker", "nextWorkerIds": ["access-sleep"]}]
    boss = {"id": "boss", "typeId": "core.orchestrator.supervisor", "config": {"plan": plan}}
    hands = {"id": "hands", "typeId": "core.dispatch"}
    edges = [("emit", "sleep"), ("emit", "gate"), ("boss", "hands"), ("hands", "boss")]
    api.register(definition("access-sleep", [sleep]))
    api.register(definition("access-things", [emit, sleep, gate, boss, hands], edges))
    run_id = api.create("access-things")
    made = next(e for e in api.events(run_id) if e["type"] == "artifact.created")
    key = api.post("/v1/host/moot/keys", {"name": "a thing"}).json()
    api.post("/v1/host/moot/agents", {"name": "access-agent"})
    member = {
        "rosterId": "host:access-member", "persona": "Mo",
        "agentRef": {"agentId": "host:access-agent"},
    }  # fmt: skip
    api.post("/v1/host/moot/roster", member)
    council = {"question": "Tea?", "participants": ["ada", "bo"]}
    thread = api.post("/v1/host/moot/councils", council).json()["threadId"]
    speech = api.post(f"/v1/host/moot/threads/{thread}/speech", {"speakerId": "host:ada"}).json()
    hook = api.post("/v1/webhooks", {"url": "https://a.example/", "events": ["*"]}).json()
    listens = {"source": "webhook", "workflowId": "access-things"}
    subscription = api.post("/v1/trigger-subscriptions", listens).json()["subscription"]
    item = api.post("/v1/host/moot/queues/inbound-work/items", {"body": "x"}).json()
    author = {"author": "access-agent"}
    summed_up = api.post(f"/v1/host/moot/threads/{thread}:catch-up", author).json()
    times = {"workflowId": "access-sleep", "kind": "interval", "intervalSeconds": 86_400}
    schedule = api.post("/v1/host/moot/schedules", times).json()
    return {
        "schedule_id": schedule["scheduleId"],
        "webhook_id": hook["webhookId"],
        "subscription_id": subscription["subscriptionId"],
        "queue": "inbound-work",
        "item_id": item["itemId"],
        "delivery_id": item["itemId"],
        "thread_id": thread,
        "catch_up_id": summed_up["catchUpId"],
        "speech_id": speech["speechId"],
        "run_id": run_id,
        "guide": "workflows",
        "iteration": "1",
        "artifact_id": made["payload"]["artifactId"],
        "workflow_id": "access-things",
        "key_id": key["id"],
        "agent_id": "host:access-agent",
        "name": "access-agent",
        "roster_id": "host:access-member",
        "node_id": "gate",
        "token": api.read(run_id)["interrupt"]["interruptToken"],
    }


# -- the table itself --------------------------------------------------------------------------


def test_every_guarded_route_names_a_scope_that_exists() -> None:
    assert not [row.operation for row in GUARDED if row.scope not in SCOPES]


def test_few_routes_are_public() -> None:
    """Discovery, openapi, health, signed links, what comes in with its own signature; and the
    pages that explain them."""
    assert {row.operation for row in PUBLIC} == {
        "GET /", "GET /.well-known/openwop", "GET /docs", "GET /docs.css", "GET /docs.js",
        "GET /docs/{guide}", "GET /healthz", "GET /ping", "GET /readyz", "GET /v1/openapi.json",
        "GET /v1/interrupts/{token}", "POST /v1/interrupts/{token}",
        "POST /v1/host/moot/ingest/{subscription_id}",
    }  # fmt: skip


def test_a_public_route_needs_no_key_and_minds_none(api: Api) -> None:
    def check(row: Endpoint) -> None:
        for caller in (api.with_key(None), api.with_key("hk_wrong"), api):
            assert caller.get(row.path).status_code == 200

    assert offences(PAGES, check) == []


def test_a_link_is_its_own_credential(api: Api, foreign: Api, things: dict[str, str]) -> None:
    """Without one nothing is told, whoever asks; with one no key is needed or minded."""

    def check(row: Endpoint) -> None:
        for caller in (api.with_key(None), api.with_key("hk_wrong"), foreign, api):
            answer = caller.call(row.method, path_of(row), content=b"{" if caller is api else None)
            assert (answer.status_code, answer.json()["error"]) == (404, "interrupt_not_found")
            assert caller.get(path_of(row, **things)).status_code == 200

    assert offences(LINKS, check) == []


# -- 401 ---------------------------------------------------------------------------------------


NO_KEYS = [None, "", "Basic eDp5", "Bearer", "Bearer hk_wrong", "hk_wrong", "Bearer \xff"]


def test_without_a_key_the_answer_is_401_whatever_else_is_wrong(
    api: Api, things: dict[str, str]
) -> None:
    def check(row: Endpoint) -> None:
        nobody = api.with_key(None)
        for params in ({}, things):
            path = path_of(row, **params)
            for given in NO_KEYS:
                headers = {} if given is None else {"Authorization": given.encode("latin-1")}
                answer = nobody.call(row.method, path, headers=headers)
                assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
                assert answer.headers["www-authenticate"] == "Bearer"
        for query, headers, content in (
            ("?streamMode=nonsense&bufferMs=x&limit=x&maxEvents=x&lastSequence=x", {}, None),
            ("", {"Idempotency-Key": "x" * 300, "X-Force-Engine-Version": "x"}, None),
            ("", {"Content-Type": "text/nonsense"}, b"{"),
            ("", {}, b"\xff" * 100),
        ):
            answer = nobody.call(row.method, path_of(row) + query, headers=headers, content=content)
            assert answer.status_code == 401

    assert offences(GUARDED, check) == []


def test_under_the_protocols_roots_nothing_is_told_without_a_key(api: Api) -> None:
    """Not even that a path or a method does not exist."""

    def check(row: tuple[str, str]) -> None:
        method, path = row
        answer = api.with_key(None).call(method, path_of(path))
        public = f"{method} {path}" in {row.operation for row in PUBLIC}
        if not path.startswith(("/v1/", "/.well-known/", "/metrics", "/threads")):
            assert answer.status_code in (200, 404, 405)
        elif not public:
            assert answer.status_code == 401

    assert offences(itertools.product(METHODS, (*PATHS, *NO_PATHS)), check) == []


def test_a_revoked_key_opens_nothing_from_that_moment(api: Api) -> None:
    made = api.post("/v1/host/moot/keys", {"name": "short-lived", "admin": True}).json()
    caller = api.with_key(made["key"])
    assert caller.get("/v1/host/moot/runs").status_code == 200
    assert api.delete(f"/v1/host/moot/keys/{made['id']}").status_code == 204
    for row in GUARDED:
        answer = caller.call(row.method, path_of(row))
        assert (answer.status_code, answer.json()["error"]) == (401, "key_revoked"), row.operation
    shown = {key["id"]: key for key in api.get("/v1/host/moot/keys").json()["keys"]}
    assert "revokedAt" in shown[made["id"]]


def test_an_expired_key_opens_nothing(api: Api) -> None:
    made = api.post("/v1/host/moot/keys", {"name": "a second", "expires_in_s": 1, "admin": True})
    caller = api.with_key(made.json()["key"])
    deadline = time.monotonic() + 30
    while caller.get("/v1/host/moot/runs").status_code == 200:
        assert time.monotonic() < deadline, "the key never expires"
    for row in GUARDED:
        answer = caller.call(row.method, path_of(row))
        assert (answer.status_code, answer.json()["error"]) == (401, "key_expired"), row.operation


# -- 403 ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lacking(api: Api) -> dict[str, Api]:
    """For each scope a key that has all others."""
    return {
        scope: api.with_key(api.new_key("lacking", scopes=[s for s in SCOPES if s != scope]))
        for scope in {row.scope for row in GUARDED if row.scope}
    }


@pytest.fixture(scope="module")
def having(api: Api) -> dict[tuple[str, ...], Api]:
    """For the scopes of each route a key that has only these."""
    wanted = {wanted_by(row): None for row in GUARDED}
    return {scopes: api.with_key(api.new_key("having", scopes=list(scopes))) for scopes in wanted}


def wanted_by(row: Endpoint) -> tuple[str, ...]:
    return tuple(filter(None, (row.scope, row.beside)))


def test_without_its_scope_a_route_is_forbidden_whatever_else_is_wrong(
    lacking: dict[str, Api], things: dict[str, str]
) -> None:
    def check(row: Endpoint) -> None:
        assert row.scope is not None
        caller = lacking[row.scope]
        for path in (path_of(row), path_of(row, **things), path_of(row) + "?streamMode=x&limit=x"):
            for content in (None, b"{", b"\xff"):
                answer = caller.call(row.method, path, content=content)
                assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
                assert answer.json()["details"] == {"scopeRequired": row.scope}

    assert offences(GUARDED, check) == []


def test_its_scopes_alone_open_a_route(having: dict[tuple[str, ...], Api]) -> None:
    def check(row: Endpoint) -> None:
        answer = having[wanted_by(row)].call(row.method, path_of(row))
        assert answer.status_code not in (401, 403)

    assert offences(GUARDED, check) == []


def test_who_may_start_no_run_arranges_none(lacking: dict[str, Api]) -> None:
    def check(row: Endpoint) -> None:
        answer = lacking[str(row.beside)].call(row.method, path_of(row))
        assert answer.json()["details"] == {"scopeRequired": row.beside}

    assert offences([row for row in GUARDED if row.beside], check) == []


def test_no_scope_implies_another(api: Api) -> None:
    canceller = api.with_key(api.new_key("canceller", scopes=["runs:cancel"]))
    run_id = api.create("conformance-cancellable")
    assert canceller.get(f"/v1/runs/{run_id}").status_code == 403
    assert canceller.post(f"/v1/runs/{run_id}/cancel").status_code == 200


def test_the_usual_key_can_do_the_usual(api: Api) -> None:
    usual = api.with_key(api.new_key("usual"))
    assert usual.run("conformance-noop")["status"] == "completed"
    assert usual.get("/metrics").status_code == 403
    assert usual.get("/v1/host/moot/keys").status_code == 403
    assert usual.post("/v1/host/moot/keys", {"name": "x"}).status_code == 403


# -- 404: other tenants ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stranger(api: Api) -> Api:
    """Every scope, another tenant, no administrator."""
    return api.with_key(api.new_key("stranger", tenant="strangers", scopes=list(SCOPES)))


def shown(answer: httpx.Response, ids: list[str]) -> tuple[int, str, list[tuple[str, str]]]:
    """Everything an answer tells, with the ids it was asked for taken out."""
    text = answer.text
    for name in ids:
        text = text.replace(name, "ID")
    headers = [pair for pair in answer.headers.items() if pair[0] != "content-length"]
    return answer.status_code, text, headers


def test_what_is_anothers_looks_like_what_is_not_there(
    api: Api, stranger: Api, things: dict[str, str]
) -> None:
    def check(row: Endpoint) -> None:
        missing = {name: f"nobody-{name[:3]}" for name in things}
        bodies: list[Any] = [None, {}]
        if row.path.endswith("variables"):
            bodies = [{"variables": {"x": 1}}]
        for body in bodies:
            given = {} if body is None else {"json": body}
            theirs = stranger.call(row.method, path_of(row, **things), **given)
            nothing = stranger.call(row.method, path_of(row, **missing), **given)
            assert theirs.status_code == 404
            assert shown(theirs, list(things.values())) == shown(nothing, list(missing.values()))
        assert api.read(things["run_id"])["status"] == "running"

    assert offences(WITH_ID, check) == []


def test_the_probe_of_the_event_seam_is_nobodys(stranger: Api, things: dict[str, str]) -> None:
    path = f"/v1/host/sample/test/runs/{things['run_id']}/events"
    assert stranger.get(path).status_code == 404


def test_lists_hold_only_what_is_ones_own(stranger: Api, things: dict[str, str]) -> None:
    assert stranger.get("/v1/host/moot/runs").json()["runs"] == []
    for query in ({"prefix": things["run_id"]}, {"parent": things["run_id"]}):
        assert stranger.get("/v1/host/moot/runs", params=query).json()["runs"] == []
    assert stranger.get("/v1/host/moot/workflows").json()["workflows"] == []
    keys = stranger.get("/v1/host/moot/keys").json()["keys"]
    assert {key["tenant"] for key in keys} == {"strangers"}


def test_a_bulk_cancel_does_not_reach_over(stranger: Api, api: Api, things: dict[str, str]) -> None:
    answer = stranger.post("/v1/runs:bulk-cancel", {"runIds": [things["run_id"], "nobody"]})
    first, second = answer.json()["results"]
    assert first["error"] == second["error"]
    assert api.read(things["run_id"])["status"] == "running"


def test_a_run_calls_only_workflows_of_its_own_tenant(stranger: Api) -> None:
    config = {"workflowId": "access-things"}
    call = {"id": "call", "typeId": "core.subWorkflow", "config": config}
    stranger.register(definition("reaching-over", [call]))
    answer = stranger.post("/v1/runs", {"workflowId": "reaching-over"})
    assert (answer.status_code, answer.json()["error"]) == (422, "unknown_child_workflow")


def test_the_same_workflow_id_is_another_in_another_tenant(stranger: Api, api: Api) -> None:
    mine = definition("shared-name", [{"id": "mine", "typeId": "core.noop"}])
    theirs = definition("shared-name", [{"id": "theirs", "typeId": "core.noop"}])
    api.register(mine)
    stranger.register(theirs)
    assert api.get("/v1/workflows/shared-name").json() == mine
    assert list(stranger.run("shared-name")["nodeStates"]) == ["theirs"]


# -- 405, HEAD, roots --------------------------------------------------------------------------


def test_a_wrong_method_is_told_the_right_ones(api: Api) -> None:
    def check(row: tuple[str, str]) -> None:
        method, path = row
        allowed = sorted({row.method for row in ROUTES if row.path == path})
        if method in allowed:
            return
        answer = api.call(method, path_of(path))
        assert answer.status_code == 405
        assert answer.headers["allow"] == ", ".join(allowed)
        assert answer.json()["error"] == "method_not_allowed"
        assert answer.json()["details"]["allowed"] == allowed

    assert offences(itertools.product(WRONG_METHODS, PATHS), check) == []


def test_head_is_get_without_the_body(api: Api, things: dict[str, str]) -> None:
    def check(row: Endpoint) -> None:
        path, texts = path_of(row, **things), read_reference().operations
        asked = {"poll": "?timeout=0", "next": "?wait=0", "diff": f"?against={things['run_id']}"}
        head = api.call("HEAD", path + asked.get(re.split("[/:]", path)[-1], ""))
        assert head.content == b""
        if head.status_code == 204 and 204 in texts[row.operation].errors:  # nothing just now
            return
        assert head.status_code == 200
        assert head.headers["content-type"].partition(";")[0] == row.media
        if row.public and row.path not in ("/.well-known/openwop",):
            assert head.headers["content-length"] == api.get(path).headers["content-length"]

    assert offences([row for row in ROUTES if row.method == "GET"], check) == []


@pytest.mark.parametrize(
    "path",
    ["/runs", "/v1", "/.well-known", "/v2/runs", "/V1/runs", "/api/v1/runs", "//v1/runs",
     "/v1runs", "/favicon.ico", "/.WELL-KNOWN/openwop", "/%00", "/..", "/healthz/",
     "/threadsafe", "/metricsx"],
)  # fmt: skip
def test_a_path_outside_every_root_is_a_bad_request(api: Api, path: str) -> None:
    for caller in (api, api.with_key(None)):
        answer = caller.http.send(
            httpx.Request(
                "GET", api.url + "/", headers=caller.auth, extensions={"target": path.encode()}
            )
        )
        assert answer.status_code == 400, answer.text
        assert set(answer.json()) == {"error", "message", "details"}


@pytest.mark.parametrize(
    "path",
    ["/v1/", "/v1/runs/", "/v1/runs//events", "/v1/runs/x/y", "/v1/workflows", "/.well-known/x",
     "/v1/runs/a%2Fb", "/v1/host/moot", "/v1/../v1/nothing", "/v1/runs/x/events/poll/"],
)  # fmt: skip
def test_a_path_under_a_root_that_is_not_there_is_not_found(api: Api, path: str) -> None:
    request = httpx.Request(
        "GET", api.url + "/", headers=api.auth, extensions={"target": path.encode()}
    )
    answer = api.http.send(request)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("encoded", "meant"),
    [
        ("nobody%2525", "nobody%25"),
        ("nobody%2e", "nobody."),
        ("%6eobody", "nobody"),
        ("a%00b", "a\0b"),
    ],
)
def test_a_path_is_decoded_once(api: Api, encoded: str, meant: str) -> None:
    request = httpx.Request(
        "GET",
        api.url + "/",
        headers=api.auth,
        extensions={"target": f"/v1/runs/{encoded}".encode()},
    )
    answer = api.http.send(request)
    assert answer.status_code == 404
    assert answer.json()["details"] == {"runId": meant}
