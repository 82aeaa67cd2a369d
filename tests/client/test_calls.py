"""The client that waits, against a real server: runs, questions, threads, and the rest."""

from pathlib import Path

import msgspec
import pytest

from moot import ApiError, AsyncClient, Client
from moot.client import (
    AlreadyAnswered,
    BadRequest,
    Conflict,
    ConversationClosed,
    Edit,
    Event,
    NotAParticipant,
    NotFound,
    Options,
    ParticipantMuted,
    Spoken,
    TimedOut,
    Unauthenticated,
    Unreachable,
)
from moot.core.workflows.yaml import compile_yaml
from tests.support.event_payloads import payload_json
from tests.support.servers import ServerProcess

SLOW = "workflow: slow\nsteps: [{id: nap, delay: 1h}]\n"


def yaml(client: Client, text: str) -> str:
    definition = msgspec.to_builtins(compile_yaml(text, "test"))
    return client.workflows.register(definition).workflow_id


def test_a_run_is_started_followed_and_read(client: Client) -> None:
    run = client.runs.start("order-intake", customer="Ada", amount=250)
    events = list(run.events())
    assert [event.seq for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("run.started", "run.completed")
    assert events[1].node == "price" and events[1].cause == events[0].id
    assert run.wait().outputs["route"] == "checked"
    assert run.ended and not run.waiting
    assert [e.type for e in run.events(after=events[-2].seq)] == ["run.completed"]
    assert list(client.runs.events(run.id, events[-1].seq)) == []
    snapshots = list(run.events(mode="values"))
    assert payload_json(snapshots[-1])["status"] == "completed"


def test_a_finished_run_is_replayed_forked_compared_and_verified(client: Client) -> None:
    run = client.runs.start("order-intake", {"customer": "Ada"}, amount=3).wait()
    again = run.replay().wait()
    assert run.diff(again.id).same
    assert run.verify().identical
    other = run.fork(1, Edit(inputs={"customer": "Bo", "amount": 9}), note="another").wait()
    assert other.outputs["invoice"]["customer"] == "Bo"
    assert run.diff(other.id).diverged_at_seq == 0
    branched = client.runs.branch(run.id, 2, tags=["tried"])
    assert (branched.mode, branched.from_seq) == ("branch", 2)
    assert run.ancestry().parent is None
    assert len(run.debug_bundle(most_events=2).events) == 2
    rows = list(client.runs.list(fork_of=run.id))
    assert {row.run_id for row in rows} == {again.id, other.id, branched.run_id}


def test_runs_are_listed_over_all_pages(client: Client) -> None:
    flow = yaml(client, "workflow: tiny\nsteps: [{set: {a: 1}}]\n")
    started = [client.runs.start(flow).id for _ in range(3)]
    first = client.runs.page(workflow=flow, limit=2)
    assert len(first.runs) == 2 and first.next_cursor
    assert [row.run_id for row in client.runs.list(workflow=flow)] == started[::-1]
    assert len(list(client.runs.list(limit=1, workflow=flow))) == 1
    assert {row.status for row in client.runs.list(status=["completed", "failed"])} <= {
        "completed", "failed",
    }  # fmt: skip


def test_a_run_is_paused_resumed_and_cancelled(client: Client) -> None:
    run = client.runs.start(yaml(client, SLOW), None, Options(tags=["t"], metadata={"by": "me"}))
    assert run.refresh().snapshot.tags == ["t"]
    assert run.pause(reason="lunch", now=True).status == "paused"
    assert run.resume().status == "running"
    with pytest.raises(TimedOut, match="is running"):
        run.wait(0.1)
    assert run.cancel(reason="enough").status == "cancelled"
    assert run.wait().status == "cancelled"
    assert run.cancel().already_terminal is False
    results = client.runs.cancel_all([run.id, "run_none"]).results
    assert [each.ok for each in results] == [True, False]
    with pytest.raises(Conflict):
        run.resume()


def test_a_scope_has_one_run_at_a_time_when_that_is_asked_for(client: Client) -> None:
    flow = yaml(client, SLOW)
    how = Options(scope_id="desk-1", exclusive=True)
    run = client.runs.start(flow, None, how)
    with pytest.raises(Conflict) as refused:
        client.runs.start(flow, None, how)
    assert refused.value.details["activeRunId"] == run.id
    run.cancel()


def test_the_same_key_starts_one_run(client: Client) -> None:
    flow, how = yaml(client, SLOW), Options(idempotency_key="order-88")
    first, second = (client.runs.start(flow, None, how) for _ in range(2))
    assert first.id == second.id
    first.cancel()


def test_questions_are_answered_from_the_inbox(client: Client) -> None:
    watching = client.inbox.watch(timeout=30)
    before = next(watching)
    run = client.runs.start("release", product="Moot").wait()
    assert run.status == "waiting-input"
    inbox = next(box for box in watching if box.revision != before.revision)
    [item] = [item for item in inbox.items if item.run_id == run.id]
    assert client.inbox.answer(item, answer="everybody").run_id == run.id
    [question] = run.wait().questions()
    assert question.kind == "approval" and "everybody" in question.question
    link = run.refresh().snapshot.interrupt
    assert link is not None
    assert client.inbox.by_link(link.interrupt_token).interrupt_id == question.interrupt_id
    run.approve(comment="fine")
    assert run.wait().outputs == {"result": "sent to everybody"}
    with pytest.raises(AlreadyAnswered) as late:
        client.inbox.reject(question)
    assert late.value.code == "interrupt_already_resolved"


def test_a_rejection_and_a_link_are_answers_too(client: Client) -> None:
    run = client.runs.start("release").wait()
    run.answer({"answer": "nobody"})
    token = run.wait().snapshot.interrupt
    assert token is not None
    said = client.inbox.answer_link(token.interrupt_token, {"action": "reject"})
    assert said.run_id == run.id
    assert run.wait().outputs == {"result": "kept back"}
    assert client.inbox.questions(run.id).answered[-1].action == "reject"


def test_a_council_is_convened_spoken_in_steered_and_closed(client: Client) -> None:
    thread = client.convene("Do we raise prices?", "ada", "bo", title="Prices")
    thread.say("What do you think?", to="host:ada")
    thread.say("Not before March.", speaker="host:ada")
    assert [line.by for line in thread.transcript()] == ["user", "user", "host:ada"]
    assert thread.mute("host:bo", seconds=600).state.muted == ["host:bo"]
    with pytest.raises(ParticipantMuted):
        thread.say("But", speaker="host:bo")
    assert thread.unmute("host:bo").state.muted == []
    assert thread.pause().state.paused is True
    assert thread.resume().state.paused is False
    assert thread.prod("host:bo").state.prodded
    with pytest.raises(NotAParticipant):
        thread.say("Me too", speaker="host:zoe")
    assert (
        thread.close({"text": "June", "votes": [{"by": "host:ada", "vote": "yes"}]}).open is False
    )
    minutes = client.threads.minutes(thread.id)
    assert minutes.decision is not None and minutes.decision.text == "June"
    assert b"June" in thread.export("md")
    with pytest.raises(Conflict):
        thread.refresh().close()


def test_a_join_token_speaks_in_one_thread_and_is_heard_live(
    client: Client, office: ServerProcess
) -> None:
    thread = client.convene("Well?", "ada", "bo")
    token = thread.join("host:ada", seconds=60)
    with Client(office.url, token.token) as ada:
        mine = ada.threads.get(thread.id)
        heard = mine.stream(timeout=30)
        assert next(heard).type == "run.started"  # type: ignore[union-attr]
        while not (isinstance(last := next(heard), Event) and last.type == "conversation.opened"):
            pass
        begun = mine.begin_speech(speaker="host:ada")
        mine.say_words(begun.speech_id, "Not bef")
        mine.say("Not before March.", speaker="host:ada", speech_id=begun.speech_id)
        frames = [next(heard) for _ in range(4)]
        spoken = [one for one in frames if isinstance(one, Spoken)]
        assert [(one.what, one.delta) for one in spoken] == [
            ("started", ""), ("delta", "Not bef"), ("ended", ""),
        ]  # fmt: skip
        assert spoken[0].speaker == "host:ada"
        second = mine.begin_speech(speaker="host:ada")
        mine.stop_speech(second.speech_id)
        with pytest.raises(ApiError):
            ada.runs.start("hello")
    client.keys.revoke(token.key_id)
    thread.close()


def test_a_led_council_is_listened_to_until_it_falls_silent(client: Client) -> None:
    for name, role in (("ida", "skeptic"), ("oli", "builder")):
        client.agents.put(name, f"You are {name}.", role=role)
    thread = client.convene("Shall we move?", "ida", "oli", policy={"rounds": 1}).wait(30)
    assert [line.by for line in thread.transcript()] == ["user", "host:ida", "host:oli"]


def test_a_thread_moves_to_another_host(client: Client, server: object) -> None:
    thread = client.convene("Well?", "ada", "bo")
    thread.say("Yes.", speaker="host:ada")
    bundle = thread.export("bundle")
    other = server()  # type: ignore[operator]
    with Client(other.url, other.key) as elsewhere:
        moved = elsewhere.threads.import_(bundle)
        assert [line.content for line in moved.transcript()] == ["Well?", "Yes."]
    thread.close()


def test_workflows_agents_memory_and_keys(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "nod.yaml"
    file.write_text("workflow: nod\nsteps: [{set: {a: 1}}]\n")
    assert client.workflows.add(file).workflow_id == "nod"
    assert client.workflows.check(client.workflows.get("nod")).ok
    assert "nod" in {row.workflow_id for row in client.workflows.list().workflows}
    with pytest.raises(BadRequest):
        client.workflows.register({"id": "broken"})
    client.agents.put("eve", "You are Eve.", role="auditor", more={"temperature": 0.2})
    assert client.agents.get("eve").prompt == "You are Eve."
    assert "local.agents.eve" in {one.agent_id for one in client.agents.inventory().agents}
    assert client.agents.inventory_entry("eve").persona == "Eve"
    moved = client.agents.deploy("eve", client.agents.get("eve").version, percent=None)
    assert moved.state == "test"
    assert [one.version for one in client.agents.deployments("eve").deployments] == [moved.version]
    asked = client.runs.ask("eve", "How are you?").wait()
    assert asked.snapshot.variables["text"]
    assert client.agents.tools().tools == []
    client.agents.remove("eve")
    assert "eve" not in {one.name for one in client.agents.list().agents}
    assert client.memory.list().memories == []
    assert client.memory.entries("mine").entries == []
    with pytest.raises(NotFound):
        client.memory.forget("mine")
    made = client.keys.create("ci", scopes=["runs:read"], speaks_as=["user:ci"], seconds=60)
    assert made.id in {key.id for key in client.keys.list().keys}
    with Client(client.url, made.key) as limited:
        with pytest.raises(ApiError) as refused:
            limited.runs.start("hello")
        assert (refused.value.status, refused.value.code) == (403, "forbidden")
        client.keys.revoke(made.id)
        with pytest.raises(Unauthenticated):
            limited.runs.page()


def test_the_host_says_what_it_is(client: Client) -> None:
    assert client.health().status == "ok"
    assert client.ready().status == "ready"
    assert client.index().links["openapi"] == "/v1/openapi.json"
    assert client.openapi()["openapi"].startswith("3.")
    assert client.discovery()["implementation"]["name"]
    assert "moot_" in client.metrics()


def test_a_turn_and_an_artifact_that_are_not_there_are_not_found(client: Client) -> None:
    run = client.runs.start("hello").wait()
    for ask in (
        lambda: run.turn(1),
        lambda: run.artifact("art_none"),
        lambda: client.runs.get("x"),
    ):
        with pytest.raises(NotFound):
            ask()
    with pytest.raises(ValueError, match="no name"):
        client.runs.get("")


def test_names_with_odd_letters_stay_in_their_place(client: Client) -> None:
    with pytest.raises(NotFound):
        client.runs.get("../host/moot/keys")
    with pytest.raises(NotFound):
        client.agents.get("a b?c#d%2f")


def test_the_server_and_its_key_are_found_as_the_command_line_finds_them(
    office: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("MOOT_URL", "MOOT_KEY", "MOOT_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(office.folder)
    with Client() as beside:
        assert beside.url == office.url and beside.runs.page() is not None
    monkeypatch.chdir(tmp_path)
    with Client(database=str(office.database)) as named:
        assert named.runs.page() is not None
    monkeypatch.setenv("MOOT_URL", office.url)
    monkeypatch.setenv("MOOT_KEY", "hk_wrong")
    with Client() as told, pytest.raises(Unauthenticated):
        told.runs.page()
    with Client("http://127.0.0.1:1", retries=0) as nobody, pytest.raises(Unreachable):
        nobody.health()
    with pytest.raises(ValueError, match="not an http address"):
        Client("ftp://example.org")


# -- threads ---------------------------------------------------------------------------------------


def test_a_thread_from_its_beginning_to_its_second_life(client: Client) -> None:
    thread = client.threads.begin("Prices", ["codex"], opening="Do we?")
    assert thread.open and thread.view.title == "Prices"
    assert client.threads.list(prefix=thread.id).threads[0].title == "Prices"
    thread.rename("Prices in Q1")
    side = thread.side("Details")
    other = client.threads.get(side.thread_id)
    thread.link(client.threads.begin("Elsewhere").id)
    other.close("Eight percent.")
    thread.archive()
    assert client.threads.list(prefix=thread.id, archived=True).threads[0].archived
    thread.unarchive()
    thread.mute("codex", seconds=60)
    told = thread.events().events
    assert "muted codex for 1 minute" in (told[-1].says or "") and told[-1].undo == {
        "unmute": ["codex"]
    }
    thread.close("No.")
    again = client.threads.reopen(thread.id, note="after all")
    assert again.open and again.id != thread.id and again.view.title == "Prices in Q1"


def test_the_thread_api_by_short_handles(client: Client) -> None:
    made = client.bridge.create("Ours")
    assert client.bridge.ping().status == "ok"
    assert made.id in [each.id for each in client.bridge.threads().threads]
    client.bridge.post(made.id, {"invite": "codex"}, kind="control")
    sent = client.bridge.post(made.id, "Four percent.", sender="codex", meta={"tags": ["x"]})
    assert sent.event is not None and sent.event.sender == "codex"
    assert client.bridge.events(made.id, after=sent.event.seq - 1).events[0] == sent.event
    assert client.bridge.post(made.id, {"fly": 1}, kind="control").warning is not None
    client.bridge.sign(made.id, "typing", sender="codex", details={"model": "m"})
    here = client.bridge.presence(made.id).presence["codex"]
    assert (here.state, here.stale, here.details) == ("typing", False, {"model": "m"})
    assert client.bridge.state(made.id).state.paused is False
    client.threads.get(made.id).close()
    with pytest.raises(ConversationClosed) as late:
        client.bridge.post(made.id, "Too late.")
    assert late.value.details["thread"] == made.id


async def test_the_same_for_asyncio(async_client: AsyncClient) -> None:
    thread = await async_client.threads.begin("Async")
    await thread.rename("Asynchronous")
    sent = await async_client.bridge.post(thread.id, "hello")
    assert sent.event is not None and sent.event.content == "hello"
    found = await async_client.bridge.events(thread.id, since=sent.event.ts)
    assert found.events == []
    await thread.close()
    again = await async_client.threads.reopen(thread.id)
    assert again.view.title == "Asynchronous"
