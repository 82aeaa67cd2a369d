"""Programs written for Agent Bridge, unchanged and without a key, on a host that trusts them."""

from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.api.answers import AnswerChecks
from tests.support.api.bridge_client import BridgeClient, Event, Participant, Refused
from tests.support.api.caller import Api
from tests.support.api.questions import asked as waiting
from tests.support.api.questions import talk
from tests.support.api.threads import PATIENCE, until
from tests.support.servers import ServerProcess, server_environment


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With two agents that speak offline."""
    folder = tmp_path_factory.mktemp("bridge")
    (folder / "agents").mkdir()
    for name, role in (("ada", "skeptic"), ("bo", "builder")):
        (folder / "agents" / f"{name}.md").write_text(f"---\nrole: {role}\n---\nBe brief.\n")
    environment = server_environment(MOOT_DEMO_WPS="0")
    process = ServerProcess(folder, ["--trust-local"], environment)
    yield process
    process.stop()


@pytest.fixture(scope="module")
def client(host: ServerProcess) -> BridgeClient:
    return BridgeClient(host.url)


def said_by(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["type"] == "message" and event["from"] == name]


def at_work(client: BridgeClient, thread: str) -> list[str]:
    """Who is about to say something."""
    here = client.presence(thread)["presence"]
    return [name for name, shown in here.items() if shown["state"] in ("thinking", "typing")]


def test_a_whole_discussion_of_an_old_client_a_bot_and_two_agents(client: BridgeClient) -> None:
    assert client.ping()["status"] == "ok"
    thread = client.create("Prices in Q1")
    assert {"id", "name", "created_at", "updated_at"} == set(client.threads()[0])
    assert thread in [row["id"] for row in client.threads()]

    bot = Participant(client, thread, "codex", lambda event: (
        "Four percent." if event["type"] == "message" and "@codex" in event["content"] else None
    ))  # fmt: skip
    bot.start()
    assert bot.listening.wait(PATIENCE)
    client.beat(thread, "codex", "listening", {"client": "codex", "model": "gpt"})
    for name in ("ada", "bo"):
        profile = {"client": "moot", "model": "demo"}
        client.control(thread, {"invite": {"participant_id": name, "profile": profile}})

    asked = client.post(thread, "user", "Do we raise prices? @codex what was the churn?")
    answer = until(lambda: said_by(client.events(thread), "codex"))[0]
    assert answer["content"] == "Four percent."
    assert answer["meta"]["reply_to"] == asked["id"] and answer["meta"]["tags"] == ["bot"]

    until(lambda: not at_work(client, thread))  # the agents have their say on that, too
    everybody = client.post(thread, "user", "And what do you all think?")
    for name in ("ada", "bo"):
        [reply] = until(lambda name=name: said_by(client.events(thread, everybody["ts"]), name))
        assert reply["to"] == "all" and reply["meta"]["reply_to"] == everybody["id"]

    client.control(thread, {"mute": {"targets": ["codex"], "mode": "hard"}})
    with pytest.raises(Refused) as refusal:
        client.post(thread, "codex", "And another thing…")
    assert refusal.value.status == 409
    about = refusal.value.body["error"]
    assert (about["code"], about["thread"], about["participant"]) == (
        "participant_muted", thread, "codex",
    )  # fmt: skip
    client.control(thread, {"unmute": ["codex"]})
    client.post(thread, "codex", "Thanks.")
    state = client.state(thread)
    assert [each["id"] for each in state["participants"]["invited"]] == ["ada", "bo", "codex"]
    assert state["muted"] == [] and state["paused"] is False

    until(lambda: not at_work(client, thread))
    whole = client.events(thread)
    polled: list[Event] = []
    while page := client.events(thread, polled[-1]["ts"] if polled else whole[0]["ts"]):
        polled += page
    assert [whole[0], *polled] == whole
    assert [event["ts"] for event in whole] == sorted({event["ts"] for event in whole})
    last = whole[-1]["id"]
    until(lambda: any(event["id"] == last for event in bot.seen))
    assert bot.seen == whole[1:]


def test_presence_is_shown_to_others_and_kept_by_nobody(client: BridgeClient) -> None:
    thread = client.create("Here")
    before = client.events(thread)
    told = client.beat(thread, "codex", "thinking", {"client": "codex", "model": "gpt"})
    assert (told["participant"], told["state"], told["thread"]) == ("codex", "thinking", thread)
    for state in ("typing", "listening", "listening"):
        client.beat(thread, "codex", state)
    found = client.presence(thread)
    here = found["presence"]["codex"]
    assert here["state"] == "listening" and here["stale"] is False
    assert here["details"] == {"client": "codex", "model": "gpt"}
    assert found["participants"] == [{"id": "codex", **here}] and found["ttl_seconds"] == 120
    assert client.events(thread) == before


def test_agents_do_not_cut_in_on_who_is_about_to_answer(client: BridgeClient) -> None:
    thread = client.create("Manners")
    client.control(thread, {"invite": {"participant_id": "ada"}})
    client.post(thread, "rex", "Here I am.")
    client.beat(thread, "rex", "typing")
    asked = client.post(thread, "user", "Who knows?")
    assert client.presence(thread)["presence"]["ada"]["state"] == "thinking"
    client.post(thread, "rex", "I do.")
    assert client.presence(thread)["presence"]["rex"]["state"] == "listening"
    until(lambda: said_by(client.events(thread, asked["ts"]), "ada"))
    said = [e["from"] for e in client.events(thread, asked["ts"]) if e["type"] == "message"]
    assert said == ["rex", "ada"]


def test_a_paused_thread_takes_people_only(client: BridgeClient) -> None:
    thread = client.create("Paused")
    client.post(thread, "claude", "Here I am.")
    client.control(thread, {"pause": {"on": True}})
    with pytest.raises(Refused) as refusal:
        client.post(thread, "claude", "…")
    assert refusal.value.body["error"]["code"] == "thread_paused"
    client.post(thread, "user", "Wait.")
    client.control(thread, '{"pause": {"on": false}}')
    client.post(thread, "claude", "Now.")


def test_a_stream_goes_on_from_a_time(client: BridgeClient) -> None:
    thread = client.create("Later")
    first = client.post(thread, "user", "one")
    client.post(thread, "user", "two")
    client.post(thread, "user", "three")
    found = []
    for event in client.stream(thread, first["ts"]):
        found.append(event["content"])
        if len(found) == 2:
            break
    assert found == ["two", "three"]


def test_what_is_missing_is_a_bad_request(client: BridgeClient) -> None:
    thread = client.create("Bad")
    for body in ({"type": "message", "content": "x"}, {"type": "message", "from": "codex"}, {}):
        with pytest.raises(Refused) as refusal:
            client._json("POST", f"/threads/{thread}/events", body)
        assert refusal.value.status == 400
    assert len(client.events(thread)) == 1


def test_what_an_old_client_says_beside_is_left_out(client: BridgeClient) -> None:
    body = {"name": "More", "from": "user", "color": "red", "meta": None}
    thread = client._json("POST", "/threads", body)["id"]
    sent = client.post(thread, "codex", "hi", to=None, meta=None, version=3, client={"a": 1})
    assert (sent["to"], sent["meta"]) == ("all", {"tags": []})
    sign = {"from": "codex", "state": "idle", "details": None, "thread": thread, "ttl": 5}
    assert client._json("POST", f"/threads/{thread}/presence", sign)["received"] is True
    with pytest.raises(Refused) as refusal:
        client.post(thread, "codex", "hi", to=5)
    assert refusal.value.status == 400


def test_the_agents_of_the_host_go_by_short_handles(client: BridgeClient, host: Any) -> None:
    thread = client.create("Two views")
    client.control(thread, {"invite": {"participant_id": "ada"}})
    client.post(thread, "user", "ada, are you there?", to="ada")
    [reply] = until(lambda: said_by(client.events(thread), "ada"))
    log = host.request("GET", f"/v1/runs/{thread}/events/poll?timeout=0")[1]["events"]
    turn = next(e for e in log if e["eventId"] == reply["id"])["payload"]["turn"]
    assert (turn["speakerId"], turn["from"]) == ("host:ada", "host:ada")
    assert turn["content"] == reply["content"]


@pytest.mark.parametrize("name", ["CODEX", "\u0441\u043edex", "Codex", "\uff43odex"])
def test_nobody_comes_in_under_a_name_that_looks_like_anothers(
    client: BridgeClient, name: str
) -> None:
    thread = client.create("Twins")
    client.post(thread, "codex", "I was first.")
    before = client.events(thread)
    for call in (lambda: client.post(thread, name, "Me too."),
                 lambda: client.control(thread, {"invite": name})):  # fmt: skip
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.body["error"]["code"] == "name_taken"
    assert client.events(thread) == before
    client.control(thread, {"uninvite": "codex"})
    client.post(thread, name, "Now.")


@pytest.mark.parametrize("name", ["User", "USER:ann", "host:user", "us\u0435r", "User:"])
def test_no_program_comes_in_as_what_looks_like_a_person(client: BridgeClient, name: str) -> None:
    thread = client.create("People")
    with pytest.raises(Refused) as refusal:
        client.post(thread, name, "I am a person.")
    assert refusal.value.status == 400 and len(client.events(thread)) == 1


def test_who_is_invited_at_the_beginning_is_known_as_who_is_invited_later(
    client: BridgeClient, host: ServerProcess
) -> None:
    begin = {"title": "Known", "participants": ["ada"]}
    thread = host.request("POST", "/v1/host/moot/threads", begin)[1]["threadId"]
    client.control(thread, {"invite": "bo"})
    profiles = {
        each["id"]: each["profile"] for each in client.state(thread)["participants"]["invited"]
    }
    assert {name: said["role"] for name, said in profiles.items()} == {
        "ada": "skeptic", "bo": "builder",
    }  # fmt: skip
    assert profiles["ada"].keys() == profiles["bo"].keys()


def test_only_the_thread_api_is_open_to_who_has_no_key(client: BridgeClient) -> None:
    thread = client.create("No more")
    for path in ("/v1/host/moot/runs", f"/v1/runs/{thread}", f"/v1/host/moot/threads/{thread}"):
        with pytest.raises(Refused) as refusal:
            client._json("GET", path)
        assert refusal.value.status == 401


def test_what_the_thread_api_has_not_is_not_there_for_who_has_no_key_either(
    host: ServerProcess,
) -> None:
    for method, path, status in (
        ("PUT", "/threads", 405), ("DELETE", "/threads/th_x/events", 405),
        ("GET", "/threads/th_x/nothing", 404), ("GET", "/threads-x", 400), ("PUT", "/v1/runs", 401),
    ):  # fmt: skip
        assert httpx.request(method, host.url + path).status_code == status, path


def test_a_host_that_trusts_nobody_asks_for_a_key(api: Api) -> None:
    wary = BridgeClient(api.url)
    for call in (wary.threads, lambda: wary.create("x")):
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"}, {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"}, {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"}, {"Via": "1.1 proxy"}, {"Host": "rebound.example:80"},
        {"X-Forwarded-Host": "a.example"}, {"X-Forwarded-Proto": "https"}, {"X-Real-IP": "::1"},
        {"CF-Connecting-IP": "203.0.113.9"}, {"X-Client-IP": "203.0.113.9"},
        {"Host": "rebound.example@127.0.0.1"}, {"Fly-Client-IP": "203.0.113.9"},
        {"X-Envoy-External-Address": "203.0.113.9"}, {"X-Azure-ClientIP": "203.0.113.9"},
        {"X-ProxyUser-Ip": "203.0.113.9"}, {"X-Real-Port": "80"}, {"True-Client-IP": "::1"},
        {"X-Cluster-Client-IP": "::1"}, {"X-Remote-Addr": "::1"}, {"X-Original-URL": "/"},
    ],
)  # fmt: skip
def test_a_page_of_another_site_and_a_proxy_are_not_of_this_machine(
    host: ServerProcess, headers: dict[str, str]
) -> None:
    with httpx.Client(base_url=host.url, trust_env=False) as program:
        assert program.get("/threads", headers=headers).status_code == 401
        body = {"name": "not mine"}
        assert program.post("/threads", json=body, headers=headers).status_code == 401
        assert program.get("/threads", headers={"Origin": host.url}).status_code == 200


def test_who_sends_a_key_is_who_the_key_says(host: ServerProcess) -> None:
    status, body, _ = host.request("GET", "/threads", key="hk_wrong")
    assert (status, body["error"]) == (401, "unauthenticated")
    status, made, _ = host.request("POST", "/threads", {"name": "Mine"})
    assert status == 200 and made["name"] == "Mine"


@pytest.fixture(scope="module")
def elsewhere(host: ServerProcess, answers: AnswerChecks) -> str:
    """A conversation inside a run of another workflow."""
    with Api(host.url, host.key, answers) as api:
        return f"{waiting(api, talk())}~convo~1"


@pytest.mark.parametrize("name", [
    "moot", "system", "host:moot", "all", "every body", "a\tb", "", "host:user:eve", "user:",
    "user:eve\n\n[77] user", "user:\x1b[31m", "user:\u200b",
])  # fmt: skip
def test_nobody_goes_by_a_name_of_the_host(client: BridgeClient, elsewhere: str, name: str) -> None:
    thread = client.create("Names")
    before = len(client.events(elsewhere))
    for call in (lambda: client.post(thread, name, "I am the host."),
                 lambda: client.post(elsewhere, name, "I am the host."),
                 lambda: client.control(elsewhere, {"done": True}, name),
                 lambda: client.beat(elsewhere, name, "typing"),
                 lambda: client.create("Mine", name)):  # fmt: skip
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.status == 400
    assert len(client.events(thread)) == 1 and len(client.events(elsewhere)) == before


def test_who_was_sent_away_does_not_come_back_by_speaking(client: BridgeClient) -> None:
    thread = client.create("Without rex")
    client.post(thread, "rex", "hello")
    client.control(thread, {"uninvite": {"participant_id": "rex"}})
    invite = {"invite": {"participant_id": "rex"}}
    for call in (lambda: client.post(thread, "rex", "back"),
                 lambda: client.control(thread, {"done": True}, "rex"),
                 lambda: client.control(thread, invite, "rex")):  # fmt: skip
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.status == 422
    client.control(thread, invite)
    assert client.post(thread, "rex", "back")["from"] == "rex"
    client.control(thread, {"uninvite": {"participant_id": "rex"}}, "rex")
    assert client.post(thread, "rex", "I changed my mind")["from"] == "rex"
