"""Keys for one participant of one thread: they speak as one name, in one place, for a time."""

import pytest

from moot.api.routes import ENDPOINTS
from tests.support.api.caller import Api, in_time
from tests.support.api.councils import (
    ADA,
    BO,
    CY,
    THREADS,
    close,
    convened,
    export,
    join,
    joined,
    key_as,
    person,
    read,
    run_of,
    steer,
    tell,
)  # fmt: skip
from tests.support.api.questions import (
    answered,
    begun,
    gate,
    link,
    refused,
    resolve,
    talk,
    turns,
    unchanged,
)
from tests.support.api.threads import until


def test_a_token_reads_its_thread_and_speaks_in_it(api: Api) -> None:
    thread = convened(api)
    run_id = run_of(thread)
    ada = joined(api, thread, ADA)
    answered(tell(ada, thread, ADA))
    assert turns(api, run_id)[1]["speakerId"] == ADA
    assert read(ada, thread)["turns"] == 1
    assert export(ada, thread).text == export(api, thread).text
    answered(steer(ada, thread, {"done": True}))
    for method, path in (
        ("GET", f"/v1/runs/{run_id}"),
        ("GET", f"/v1/runs/{run_id}/events/poll"),
        ("POST", f"{THREADS}/{thread}:close"),
        ("POST", f"{THREADS}/{thread}/join"),
        ("GET", f"{THREADS}/{thread}/export?format=bundle"),
    ):
        assert ada.call(method, path).status_code == 403


def test_a_short_name_joins_as_it_is_on_the_roster(api: Api) -> None:
    thread = convened(api, "ada", "bo")
    assert join(api, thread, "ada").json()["as"] == ADA
    answered(tell(joined(api, thread, "ada"), thread, ADA))


def test_a_token_speaks_only_as_its_name(api: Api) -> None:
    thread = convened(api)
    ada = joined(api, thread, ADA)
    eve = joined(api, thread, "user:eve")
    with unchanged(api, run_of(thread)):
        for answer in (
            tell(ada, thread, BO), person(ada, thread), tell(eve, thread, ADA),
            person(ada, thread, **{"from": "user"}), person(eve, thread, **{"from": "user:ann"}),
            close(ada, thread, turn={"role": "agent", "speakerId": BO, "content": "x"}),
            steer(ada, thread, {"mute": [BO]}), steer(ada, thread, {"done": True}, **{"from": BO}),
            ada.post(f"{THREADS}/{thread}/speech", {"speakerId": BO}),
            ada.post(f"{THREADS}/{thread}/speech", {}),
        ):  # fmt: skip
            assert answer.status_code == 403, answer.text
    answered(person(eve, thread))
    assert turns(api, run_of(thread))[1]["from"] == "user:eve"


def test_a_token_can_do_nothing_else(api: Api) -> None:
    thread, other = convened(api), convened(api)
    ada = joined(api, thread, ADA)
    places = {"run_id": run_of(other), "thread_id": other, "node_id": "talk", "speech_id": "sp_1"}
    open_to_all = 0
    with unchanged(api, run_of(other)):
        for endpoint in ENDPOINTS:
            path = endpoint.path
            for name, value in {**places, "workflow_id": "moot.thread"}.items():
                path = path.replace(f"{{{name}}}", value)
            path = path.replace("{key_id}", "key_x").replace("{artifact_id}", "art_x")
            answer = ada.call(endpoint.method, path.replace("{token}", "x"), json={})
            if endpoint.public:
                open_to_all += 1
            else:
                assert answer.status_code in (403, 404), (endpoint.operation, answer.text)
    assert 0 < open_to_all < len(ENDPOINTS) / 3


def test_a_token_hands_out_no_further_one(api: Api) -> None:
    """Else it would outlive its time, and its revocation."""
    thread = convened(api)
    ada = joined(api, thread, ADA, expiresInSeconds=60)
    refused(join(ada, thread, ADA, expiresInSeconds=31_536_000), 403, "forbidden")
    refused(join(ada, thread, BO), 403, "forbidden")


def test_a_token_does_not_outlive_the_key_that_made_it(api: Api) -> None:
    thread = convened(api)
    hour = {"expires_in_s": 3600}
    body = join(key_as(api, ADA, **hour), thread, ADA, expiresInSeconds=31_536_000).json()
    [made] = [
        key for key in api.get("/v1/host/moot/keys").json()["keys"] if key["id"] == body["keyId"]
    ]
    assert made["expiresAt"] == body["expiresAt"] < join(api, thread, ADA).json()["expiresAt"]


def test_a_token_expires(api: Api) -> None:
    thread = convened(api)

    def attempt(ms: int) -> Api | None:
        answer = join(api, thread, ADA, expiresInSeconds=ms // 1000)
        ada = api.with_key(answer.json()["token"])
        seen = ada.get(f"{THREADS}/{thread}")
        return ada if seen.status_code == 200 and seen.json()["open"] else None

    ada = in_time(attempt, 1000)
    until(lambda: ada.get(f"{THREADS}/{thread}").status_code != 200)
    with unchanged(api, run_of(thread)):
        refused(tell(ada, thread, ADA), 401, "key_expired")
        refused(ada.get(f"{THREADS}/{thread}"), 401, "key_expired")


def test_a_token_is_revoked_like_any_key(api: Api) -> None:
    thread = convened(api)
    body = join(api, thread, ADA).json()
    ada = api.with_key(body["token"])
    answered(tell(ada, thread, ADA))
    listed = {key["id"]: key for key in api.get("/v1/host/moot/keys").json()["keys"]}
    assert listed[body["keyId"]]["as"] == [ADA]
    assert body["token"] not in api.get("/v1/host/moot/keys").text
    assert api.delete(f"/v1/host/moot/keys/{body['keyId']}").status_code == 204
    with unchanged(api, run_of(thread)):
        refused(tell(ada, thread, ADA), 401, "key_revoked")


def test_the_secret_is_shown_once(api: Api) -> None:
    thread = convened(api)
    headers = {"Idempotency-Key": f"join-{thread}"}
    given = {"as": ADA}
    first = api.post(f"{THREADS}/{thread}/join", given, headers=headers)
    again = api.post(f"{THREADS}/{thread}/join", given, headers=headers)
    assert first.status_code == again.status_code == 201
    assert first.headers["cache-control"] == again.headers["cache-control"] == "no-store"
    secret = first.json()["token"]
    assert secret not in again.text
    assert again.json() == {key: val for key, val in first.json().items() if key != "token"}
    assert secret not in str(api.events(run_of(thread)))
    answered(tell(api.with_key(secret), thread, ADA))


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"as": ""}, {"as": 1}, {"as": ["host:ada"]}, {"as": "x" * 257}, {"as": ADA, "more": 1},
        {"as": ADA, "expiresInSeconds": 0}, {"as": ADA, "expiresInSeconds": -1},
        {"as": ADA, "expiresInSeconds": 31_536_001}, {"as": ADA, "expiresInSeconds": "1"},
    ],
)  # fmt: skip
def test_a_malformed_invitation_makes_no_key(api: Api, wrong: object) -> None:
    thread = convened(api)
    before = len(api.get("/v1/host/moot/keys").json()["keys"])
    refused(api.post(f"{THREADS}/{thread}/join", wrong), 400, "validation_error")
    assert len(api.get("/v1/host/moot/keys").json()["keys"]) == before


def test_only_an_administrator_hands_out_names_that_are_not_his(api: Api) -> None:
    thread = convened(api)
    ada = key_as(api, ADA)
    refused(join(ada, thread, BO), 403, "forbidden")
    refused(join(key_as(api), thread, "user:ann"), 403, "forbidden")
    answered(tell(joined(ada, thread, ADA), thread, ADA))
    reader = key_as(api, ADA, scopes=["runs:read"])
    refused(join(reader, thread, ADA), 403, "forbidden")


def test_a_name_that_is_not_on_the_roster_does_not_speak_with_a_token_either(api: Api) -> None:
    thread = convened(api)
    cy = joined(api, thread, CY)
    with unchanged(api, run_of(thread)):
        refused(tell(cy, thread, CY), 422, "validation_error")


def test_a_token_finds_no_way_to_speak_as_a_person(api: Api) -> None:
    thread = convened(api)
    ada = joined(api, thread, ADA)
    answered(steer(api, thread, {"mute": [ADA]}))
    assert ada.get(f"/v1/runs/{run_of(thread)}").status_code == 403
    path = link(key_as(api, ADA), run_of(thread))
    with unchanged(api, run_of(thread)):
        answer = api.with_key(None).post(path, {"resumeValue": {"content": "I am a person"}})
        assert answer.status_code == 403


@pytest.mark.parametrize("verb", ["/interrupts/ok", ":resolveInterrupt"])
def test_a_token_answers_no_other_question_of_its_run(api: Api, verb: str) -> None:
    run_id = begun(api, talk(), gate("approvalGate", "ok"), edges=[])
    ada = joined(api, f"{run_id}~convo~1", ADA)
    with unchanged(api, run_id):
        given = {"nodeId": "ok"} if verb.startswith(":") else {}
        answer = ada.post(
            f"/v1/runs/{run_id}{verb}", {"resumeValue": {"action": "accept"}, **given}
        )
        assert answer.status_code in (403, 404)


def test_a_token_of_a_conversation_in_a_workflow_speaks_there(api: Api) -> None:
    run_id = begun(api, talk())
    ada = joined(api, run_id, ADA)
    said = {"role": "agent", "speakerId": ADA, "content": "hello"}
    answered(resolve(ada, run_id, said, "convo"))


def test_who_was_sent_away_reads_no_further(api: Api) -> None:
    thread = convened(api, ADA, open=True)
    ada = joined(api, thread, ADA)
    paths = [
        f"/threads/{thread}/events", f"/threads/{thread}/state", f"{THREADS}/{thread}/events",
        f"{THREADS}/{thread}", f"{THREADS}/{thread}/next?wait=0", f"{THREADS}/{thread}/export",
        f"/threads/{thread}/events/stream", f"{THREADS}/{thread}/stream",
    ]  # fmt: skip
    with ada.open(paths[-2]) as stream:
        lines = stream.iter_lines()
        next(lines)
        answered(steer(api, thread, {"uninvite": ADA}))
        assert not any("secret" in line for line in lines), "it ends"
    answered(person(api, thread, "A secret."))
    for path in paths:
        refused(ada.get(path), 422, "validation_error")
    answered(steer(api, thread, {"invite": ADA}))
    assert "A secret." in ada.get(paths[0]).text
