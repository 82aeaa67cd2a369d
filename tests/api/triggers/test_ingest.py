"""Webhooks that come in: who signed is believed, what is repeated is known, nothing else starts."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import Api, definition
from tests.support.api.questions import refused
from tests.support.servers import ServerProcess, server_environment

SUBSCRIPTIONS = "/v1/trigger-subscriptions"
CANARY = "canary-81d2-in-a-webhook"
GATE = {"id": "gate", "typeId": "core.approvalGate"}
READS = {
    **definition("reads", [{"id": "a", "typeId": "core.noop"}]),
    "variables": [{"name": "body", "type": "object"}, {"name": "title", "type": "string"}],
}


@pytest.fixture(scope="module")
def desk(answers: AnswerChecks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    process = ServerProcess(tmp_path_factory.mktemp("ingest"), [], server_environment())
    with Api(process.url, process.key, answers) as found:
        found.register(READS)
        found.register(definition("gated", [GATE]))
        yield found
    process.stop()


class Sender:
    """Somebody who was told the address and the secret, and has no key."""

    def __init__(self, api: Api, **asked: Any) -> None:
        body = {"source": "webhook", "workflowId": "reads", **asked}
        answer = api.post(SUBSCRIPTIONS, body)
        assert answer.status_code == 201, answer.text
        self.api, made = api, answer.json()
        self.id = made["subscription"]["subscriptionId"]
        self.secret, self.url = made["binding"]["signingSecret"], made["binding"]["ingestUrl"]
        self.path = f"{SUBSCRIPTIONS}/{self.id}"

    def send(self, body: bytes = b"{}", **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.with_key(None).post(httpx.URL(self.url).path, body, headers=given)

    def standard(self, body: bytes = b"{}", name: str = "msg_0123456789abcdef",
                 late: int = 0, moved: int = 0, secret: str = "",
                 **more: str) -> httpx.Response:  # fmt: skip
        """Signed as Standard Webhooks has it, with a time that may be moved afterwards."""
        seconds = int(time.time()) + late
        key = base64.b64decode((secret or self.secret).removeprefix("whsec_"))
        signed = f"{name}.{seconds}.".encode() + body
        digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        headers = {"webhook_id": name, "webhook_timestamp": str(seconds + moved),
                   "webhook_signature": f"v1,{digest}"}  # fmt: skip
        return self.send(body, **{**headers, **more})

    def own(self, body: bytes, late: int = 0, **more: str) -> httpx.Response:
        """Signed as this protocol's hosts sign."""
        seconds = str(int(time.time()) + late)
        signed = hmac.new(self.secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
        headers = {"X_openwop_Timestamp": seconds,
                   "X_openwop_Signature": f"sha256={signed.hexdigest()}"}  # fmt: skip
        return self.send(body, **{**headers, **more})

    def letters(self) -> list[dict[str, Any]]:
        return list(self.api.get(f"{self.path}/dead-letters").json()["deadLetters"])


def test_a_signed_webhook_starts_one_run_and_a_repeat_is_told_which(desk: Api) -> None:
    sender = Sender(desk)
    body = json.dumps({"title": "Bug", "text": CANARY}).encode()
    first = sender.standard(body, Authorization="Basic abc", Cookie="a=b", X_Event_Type="made")
    assert (first.status_code, first.json()["outcome"]) == (202, "delivered")
    run_id = first.json()["runId"]
    again = sender.standard(body)
    assert (again.status_code, again.json()) == (200, {"outcome": "duplicate", "runId": run_id})
    assert desk.until(run_id)["variables"] == {"body": json.loads(body), "title": "Bug"}
    started, attempted, *_ = desk.events(run_id)
    event = started["payload"]["trigger"]
    desk.answers.document("trigger-event", event)
    assert event["verified"] is True and event["contentTrust"] == "untrusted"
    assert event["webhook"]["headers"]["x-event-type"] == "made"
    assert not {"authorization", "cookie"} & set(event["webhook"]["headers"])
    assert event["deliveryId"] == started["causationId"] == attempted["eventId"]
    assert CANARY not in str(attempted) + desk.get(sender.path).text
    assert sender.secret not in desk.get(sender.path).text + desk.get(SUBSCRIPTIONS).text


def test_the_protocols_own_signature_is_known_too(desk: Api) -> None:
    sender = Sender(desk)
    body = json.dumps({"runId": "run_x", "workspaceId": "w", "event": {"eventId": "e1"}}).encode()
    first, again = sender.own(body), sender.own(body, late=1)
    assert first.status_code == 202 and again.status_code == 200
    assert again.json()["runId"] == first.json()["runId"]
    refused(sender.own(body, X_openwop_Signature="sha256=00"), 401, "signature_invalid")
    refused(sender.own(body, late=360), 401, "signature_invalid")


#: what is wrong -> headers of a request that is right but for them
WRONG: dict[str, dict[str, Any]] = {
    "another secret": {"secret": "whsec_" + base64.b64encode(b"x" * 32).decode()},
    "too late": {"late": -301},
    "too soon": {"late": 360},
    "another id": {"webhook_id": "msg_another_0123456"},
    "another time": {"moved": 60},
    "no time": {"webhook_timestamp": ""},
    "time in words": {"webhook_timestamp": "now"},
    "no signature": {"webhook_signature": ""},
    "another version": {"webhook_signature": "v2,AAAA"},
    "half a signature": {"webhook_signature": "v1,AAAA"},
    "id too short": {"name": "msg_1"},
    "id with a dot": {"name": "msg_0123456789.abcdef"},
}


@pytest.fixture(scope="module")
def strict(desk: Api) -> Sender:
    return Sender(desk)


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_rightly_signed_starts_nothing(strict: Sender, wrong: str) -> None:
    before = len(strict.letters())
    refused(strict.standard(CANARY.encode(), **WRONG[wrong]), 401, "signature_invalid")
    letters = strict.letters()
    assert len(letters) == before + 1 and letters[0]["reason"] == "verification_failed"
    assert "stateChange" not in letters[0] and CANARY not in str(letters)
    shown = strict.api.get(strict.path).json()
    assert shown["subscription"]["state"] == "active"
    assert "delivered" not in shown["counts"]


def test_a_key_in_a_header_does_not_stand_for_a_signature(desk: Api) -> None:
    sender = Sender(desk, verification={"mode": "required"})
    first = sender.standard(b'{"n": 1}', Idempotency_Key="once-and-again")
    assert (first.status_code, first.json()["outcome"]) == (202, "delivered")
    assert sender.send(b'{"n": 1}', Idempotency_Key="once-and-again").status_code == 401


def test_of_several_signatures_one_must_be_right(desk: Api) -> None:
    sender = Sender(desk)
    seconds, name = str(int(time.time())), "msg_several_0123456"
    key = base64.b64decode(sender.secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{seconds}.".encode() + b"{}", hashlib.sha256).digest()
    good = "v1," + base64.b64encode(digest).decode()
    sent = sender.send(b"{}", webhook_id=name, webhook_timestamp=seconds,
                       webhook_signature=f"v1,AAAA v1a,xyz {good}")  # fmt: skip
    assert sent.status_code == 202


def test_a_new_secret_counts_at_once_and_the_one_before_for_a_while(desk: Api) -> None:
    sender = Sender(desk)
    fresh = desk.post(f"{sender.path}/rotate-secret").json()["binding"]
    assert fresh["signingSecret"] != sender.secret
    one = sender.standard(name="msg_with_the_new_one", secret=fresh["signingSecret"])
    two = sender.standard(name="msg_with_the_old_one")
    assert (one.status_code, two.status_code) == (202, 202)


def test_a_subscription_that_is_not_active_takes_nothing(desk: Api) -> None:
    sender = Sender(desk)
    desk.call("PATCH", sender.path, json={"state": "paused"})
    refused(sender.standard(), 409, "subscription_not_active")
    refused(sender.send(b"unsigned"), 409, "subscription_not_active")
    desk.call("PATCH", sender.path, json={"state": "active"})
    assert sender.standard().status_code == 202
    told = [each["payload"] for each in desk.get(sender.path).json()["stateChanges"]]
    assert [each["toState"] for each in told] == ["paused", "active"]
    assert told[0]["reason"] == "operator-paused" and "reason" not in told[1]


def test_a_body_may_be_only_so_large(desk: Api) -> None:
    refused(Sender(desk).standard(b"x" * 262_145), 413, "payload_too_large")


@pytest.mark.parametrize("mode", ["best-effort", "none"])
def test_without_a_must_the_run_is_told_that_nobody_vouches(desk: Api, mode: str) -> None:
    sender = Sender(desk, verification={"mode": mode}, dedupEnabled=False)
    first, second = (sender.send(b'{"title": "x"}') for _ in range(2))
    assert first.json()["runId"] != second.json()["runId"]
    event = desk.events(first.json()["runId"])[0]["payload"]["trigger"]
    assert event["verified"] is False and "dedupKey" not in event
    signed = sender.standard(name="msg_this_one_is_good")
    event = desk.events(signed.json()["runId"])[0]["payload"]["trigger"]
    assert event["verified"] is (mode == "best-effort")


def test_a_mapping_says_where_inputs_stand(desk: Api) -> None:
    sender = Sender(desk, inputMapping={"title": "webhook.body.issues.0.name"})
    sent = sender.standard(b'{"issues": [{"name": "Leak"}]}')
    assert desk.until(sent.json()["runId"])["variables"] == {"title": "Leak"}


def test_what_comes_in_approves_nothing(desk: Api) -> None:
    sender = Sender(desk, workflowId="gated")
    words = b'{"action": "approve", "resumeValue": {"action": "approve"}, "decision": "approved"}'
    run_id = sender.standard(words).json()["runId"]
    assert desk.until(run_id, "waiting-approval")["status"] == "waiting-approval"
    assert sender.standard(words).status_code == 200
    assert desk.read(run_id)["status"] == "waiting-approval"


BAD = [
    ({"workflowId": "reads"}, 400, "validation_error"),
    ({"source": "webhook"}, 400, "validation_error"),
    ({"source": "carrier-pigeon", "workflowId": "reads"}, 400, "validation_error"),
    ({"source": "queue", "workflowId": "reads"}, 400, "validation_error"),
    ({"source": "email", "workflowId": "reads"}, 501, "capability_not_provided"),
    ({"source": "webhook", "workflowId": "nothing"}, 404, "workflow_not_found"),
    ({"source": "webhook", "workflowId": "reads", "rosterId": "host:x"}, 404, "not_found"),
    (
        {"source": "webhook", "workflowId": "reads", "retryPolicy": {"maxAttempts": 0}},
        400,
        "validation_error",
    ),
]


@pytest.mark.parametrize(("body", "status", "code"), BAD, ids=range(len(BAD)))
def test_a_registration_that_cannot_be_is_refused(
    desk: Api, body: dict[str, Any], status: int, code: str
) -> None:
    refused(desk.post(SUBSCRIPTIONS, body), status, code)


def test_subscriptions_of_others_are_not_there_and_removed_ones_take_nothing(desk: Api) -> None:
    sender = Sender(desk)
    other = desk.with_key(desk.new_key("other", tenant="others", admin=True))
    for answer in (
        other.get(sender.path),
        other.delete(sender.path),
        other.call("PATCH", sender.path, json={"state": "paused"}),
        other.get(f"{sender.path}/dead-letters"),
        other.post(f"{sender.path}/rotate-secret"),
    ):
        refused(answer, 404, "subscription_not_found")
    assert sender.standard().status_code == 202
    assert desk.delete(sender.path).status_code == 204
    refused(sender.standard(name="msg_after_the_end_00"), 404, "subscription_not_found")


def test_the_secret_is_told_once(desk: Api) -> None:
    body = {"source": "webhook", "workflowId": "reads"}
    first, again = (
        desk.post(SUBSCRIPTIONS, body, headers={"Idempotency-Key": "subscribe"}) for _ in range(2)
    )
    assert "signingSecret" in first.json()["binding"]
    assert "signingSecret" not in again.json()["binding"]
    mark = first.json()["subscription"]["secretFingerprint"]
    secret = first.json()["binding"]["signingSecret"]
    assert mark not in secret and mark != hashlib.sha256(secret.encode()).hexdigest()[: len(mark)]
