"""Signed links to open questions."""

import base64
import json
import sqlite3
import time
from collections.abc import Callable
from typing import Any

import pytest

from moot.api.access import signed_links
from moot.api.access.auth import hash_secret
from tests.support.api.caller import Api
from tests.support.api.questions import (
    ACCEPT,
    answered,
    approval,
    asked,
    by_link,
    by_run,
    link,
    mine,
    of,
    refused,
    resolve,
    unchanged,
)


def test_a_link_shows_the_question_and_takes_one_answer(api: Api) -> None:
    run_id = asked(api, approval(description="Read it first.", resumeSchema={"type": "object"}))
    path, outside = link(api, run_id), api.with_key(None)
    answer = outside.get(path)
    shown = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert (shown["kind"], shown["runId"], shown["nodeId"]) == ("approval", run_id, "gate")
    assert shown["data"]["description"] == "Read it first."
    assert shown["intent"] == "resolve"
    assert shown["requestedAt"] < shown["expiresAt"]
    assert shown["resumeSchema"] == {"type": "object"}
    body = answered(by_link(api, path, ACCEPT))
    assert (body["runId"], body["nodeId"]) == (run_id, "gate")
    assert api.until(run_id)["status"] == "completed"
    assert of(api, run_id, "approval.received")[0]["decidedBy"].startswith("link:")
    with unchanged(api, run_id):
        for answer in (by_link(api, path, ACCEPT), outside.get(path)):
            refused(answer, 409, "interrupt_already_resolved")


def damaged(token: str) -> list[str]:
    body, _, signature = token.partition(".")
    payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    changes = ({"nodeId": "x"}, {"expiresAt": 10**15}, {"tenant": "elsewhere"}, {"x": 1})
    others = [{**payload, **change} for change in changes]
    forged = [
        base64.urlsafe_b64encode(json.dumps(other).encode()).decode().rstrip("=")
        for other in others
    ]
    last = "A" if signature[-1] != "A" else "B"
    return [
        "x", body, f"{body}.", f".{signature}", f"{body}.{signature[:-2]}{last}A",
        f"{body}.{signature}x", f"{body}.{signature}.", f"{body}.é", f"é.{signature}",
        f"{body}é.{signature}", f"{body} .{signature}", f"{signature}.{body}",
        f"{body[:-1]}.{signature}", token.upper(), f"{body}.%ff",
        *(f"{other}.{signature}" for other in forged),
    ]  # fmt: skip


def test_an_altered_link_is_not_found(api: Api) -> None:
    run_id = asked(api, approval())
    token = api.read(run_id)["interrupt"]["interruptToken"]
    outside = api.with_key(None)
    with unchanged(api, run_id):
        for wrong in damaged(token):
            path = f"/v1/interrupts/{wrong}"
            refused(outside.get(path), 404, "interrupt_not_found")
            refused(by_link(api, path, ACCEPT), 404, "interrupt_not_found")
    answered(by_link(api, f"/v1/interrupts/{token}", ACCEPT))


@pytest.fixture
def minted(host: Callable[..., Any]) -> tuple[Any, Callable[..., str]]:
    """A host, and links as it would sign them itself: ``mint(run_id, **changes)``."""
    found = host()

    def mint(run_id: str, **changes: Any) -> str:
        with sqlite3.connect(found.server.database) as db:
            query = "SELECT value FROM secrets WHERE name = ?"
            [[secret]] = db.execute(query, [signed_links.SECRET_NAME])
        db.close()
        given = {
            "tenant": "default", "run_id": run_id, "node_id": "gate",
            "interrupt_id": found.read(run_id)["interrupt"]["interruptId"],
            "expires_at": int(time.time() * 1000) + 60_000,
            "by": hash_secret(found.key),
        }  # fmt: skip
        token = signed_links.sign_link(secret, signed_links.Ticket(**{**given, **changes}))
        return f"/v1/interrupts/{token}"

    return found, mint


def test_links_expire_and_keep_to_their_intent(minted: tuple[Any, Callable[..., str]]) -> None:
    api, mint = minted
    run_id = asked(api, approval())
    with unchanged(api, run_id):
        old = mint(run_id, expires_at=int(time.time() * 1000) - 1)
        refused(api.with_key(None).get(old), 410, "interrupt_expired")
        refused(by_link(api, old, ACCEPT), 410, "interrupt_expired")
        look = mint(run_id, intent="inspect")
        assert api.with_key(None).get(look).json()["intent"] == "inspect"
        refused(by_link(api, look, ACCEPT), 403, "forbidden")
        for other in ({"interrupt_id": "int_other"}, {"node_id": "x"}):
            refused(by_link(api, mint(run_id, **other), ACCEPT), 404, "interrupt_not_found")
        elsewhere = mint(run_id, tenant="elsewhere")
        refused(by_link(api, elsewhere, ACCEPT), 404, "run_not_found")
    answered(by_link(api, mint(run_id), ACCEPT))


def test_a_link_survives_a_restart_and_is_written_nowhere(host: Callable[..., Any]) -> None:
    plain = host("--log-json")
    run_id = asked(plain, approval())
    path = link(plain, run_id)
    token = path.rpartition("/")[2]
    for caller in (plain, plain.with_key(None)):
        assert caller.get(path).status_code == 200
    plain.with_key(None).get(f"{path}x")
    bundle = plain.get(f"/v1/runs/{run_id}/debug-bundle").text
    log = json.dumps(plain.events(run_id)) + json.dumps(mine(plain, run_id))
    assert token not in bundle + log
    plain.server.restart()
    answered(by_link(plain, path, ACCEPT))
    plain.server.stop()
    for file in plain.server.folder.iterdir():
        assert token.encode() not in file.read_bytes(), file.name


def test_a_link_ends_with_its_run(api: Api) -> None:
    run_id = asked(api, approval())
    path = link(api, run_id)
    api.post(f"/v1/runs/{run_id}/cancel")
    api.until(run_id, "cancelled")
    with unchanged(api, run_id):
        for answer in (resolve(api, run_id, ACCEPT), by_link(api, path, ACCEPT)):
            refused(answer, 422, "interrupt_cancelled")
        assert api.with_key(None).get(path).status_code in (409, 422)
        refused(by_run(api, run_id, {"nodeId": "gate", **ACCEPT}), 422, "interrupt_cancelled")


def test_an_idempotency_key_by_link_is_a_matter_of_this_link(api: Api) -> None:
    headers = {"Idempotency-Key": "everybodys"}
    outside = api.with_key(None)
    for _ in range(2):
        run_id = asked(api, approval())
        path, body = link(api, run_id), {"resumeValue": ACCEPT}
        first = outside.post(path, body, headers=headers)
        again = outside.post(path, body, headers=headers)
        assert answered(first) == answered(again)
        assert again.headers["openwop-idempotent-replay"] == "true"
        assert api.types(run_id).count("interrupt.resolved") == 1
        refused(outside.post(path, body), 409, "interrupt_already_resolved")


def test_a_snapshot_with_a_link_is_not_changed_for_its_reader(api: Api) -> None:
    run_id = asked(api, approval())
    tag = api.get(f"/v1/runs/{run_id}").headers["etag"]
    again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    answered(resolve(api, run_id, ACCEPT))
    again = api.get(f"/v1/runs/{run_id}", headers={"If-None-Match": tag})
    assert again.status_code == 200
