"""Secrets are not remembered (SR-1), and who shares a memory gains no right to speak."""

import asyncio
from typing import Any

import pytest

from moot import NodeContext
from moot import node as node_function
from moot.core.commands import SetVariables
from moot.core.errors import SpeakerNotParticipant
from moot.core.speaker import Speaker
from moot.core.state.memory import redact_secrets
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.support.engine.hosts import TENANT, Place, begun, chain, ended, log, node, sub, until
from tests.support.engine.memory_nodes import entries, remembering
from tests.support.engine.replays import answer, council, waits
from tests.support.event_payloads import payload_json

TOKEN = "tok-1234567890"


def secret(name: str = "token", value: Any = TOKEN) -> dict[str, Any]:
    return {"name": name, "type": "object", "defaultValue": value, "sensitive": True}


@pytest.fixture
def host(place: Place) -> Host:
    place.knows(remembering, sets)
    return place.host()


@node_function("acme.sets")
async def sets(ctx: NodeContext) -> None:
    await ctx.set_variable("token", "fresh-secret-value")
    await ctx.memory.put("it is fresh-secret-value now", memory_id="x", ref="desk")


async def test_values_of_secrets_are_stored_as_their_names(host: Host) -> None:
    async def story(memory: Any) -> None:
        entry = await memory.put(
            f"log in with {TOKEN}!", tags=[TOKEN, "plain"], memory_id=f"id {TOKEN}", ref="desk"
        )
        assert entry.content == "log in with [REDACTED:token]!"
        assert entry.tags == ["[REDACTED:token]", "plain"]
        assert entry.id == "id [REDACTED:token]"
        assert await memory.get(f"id {TOKEN}", ref="desk") == entry
        assert await memory.list("desk", tag=TOKEN) == [entry]

    run = await ended(host, await begun(host, chain(remembering.scene(story),
                                                    variables=[secret()])))  # fmt: skip
    assert run.status is Status.COMPLETED, run.error
    [note] = await entries(host, "desk")
    assert TOKEN not in str(note)
    for event in await log(host, run.run_id):
        assert TOKEN not in str(event)


@pytest.mark.parametrize("mode", ["mask", "omit", "hash", "passthrough"])
async def test_no_masking_mode_lets_a_secret_be_remembered(host: Host, mode: str) -> None:
    async def story(memory: Any) -> None:
        await memory.put(f"with {TOKEN}", ref="desk")

    metadata = {"complianceConfig": {"maskingMode": mode}}
    body = chain(remembering.scene(story), variables=[secret()], metadata=metadata)
    assert (await ended(host, await begun(host, body))).status is Status.COMPLETED
    assert [note.content for note in await entries(host, "desk")] == ["with [REDACTED:token]"]


async def test_a_secret_made_on_the_way_is_one(host: Host) -> None:
    body = chain(node("sets", "acme.sets"), variables=[secret()])
    assert (await ended(host, await begun(host, body))).status is Status.COMPLETED
    assert [note.content for note in await entries(host, "desk")] == ["it is [REDACTED:token] now"]


async def test_a_secret_that_was_replaced_meanwhile_is_still_one(host: Host) -> None:
    waiting, goes_on = asyncio.Event(), asyncio.Event()

    async def story(memory: Any) -> None:
        waiting.set()
        await goes_on.wait()
        await memory.put(f"{TOKEN} and another-secret", ref="desk")

    run_id = await begun(host, chain(remembering.scene(story), variables=[secret()]))
    await asyncio.wait_for(waiting.wait(), 60)
    change = SetVariables({"token": "another-secret"}, host.clock.millis())
    await host.handle(TENANT, run_id, change)
    goes_on.set()
    assert (await ended(host, run_id)).status is Status.COMPLETED
    [note] = await entries(host, "desk")
    assert note.content == "[REDACTED:token] and [REDACTED:token]"


async def test_what_a_parent_keeps_secret_its_child_does_not_remember(host: Host) -> None:
    async def story(memory: Any) -> None:
        await memory.put(f"handed {TOKEN}", ref="desk")

    kid = chain(remembering.scene(story), id="kid", variables=[{"name": "given", "type": "string"}])
    body = chain(sub("kid", inputMapping={"given": "token"}), variables=[secret()])
    assert (await ended(host, await begun(host, kid, body))).status is Status.COMPLETED
    assert [note.content for note in await entries(host, "desk")] == ["handed [REDACTED:given]"]


def test_the_longest_value_goes_first_and_short_ones_are_left() -> None:
    sealed = {"var:long": "abcdefgh-more", "var:part": "abcdefgh", "out:n:port": "xyz-7654"}
    assert redact_secrets("abcdefgh-more abcdefgh", [sealed]) == "[REDACTED:long] [REDACTED:part]"
    assert redact_secrets("see xyz-7654", [sealed]) == "see [REDACTED:n.port]"
    assert redact_secrets("seven: 1234567", [{"var:pin": "1234567"}]) == "seven: 1234567"
    assert redact_secrets("eight: 12345678", [{"var:pin": 12345678}]) == "eight: [REDACTED:pin]"
    assert redact_secrets("REDACTED", [{"var:odd": "REDACTED"}]) == "[REDACTED:odd]"
    nested = {"var:keys": {"api": ["deep-secret"], "short": "abc"}}
    assert redact_secrets("a deep-secret abc", [nested]) == "a [REDACTED:keys] abc"


# -- shared memories ---------------------------------------------------------------------------


async def test_a_group_shares_a_memory_across_runs(host: Host) -> None:
    async def writes(memory: Any) -> None:
        await memory.put("for the team")

    async def reads(memory: Any) -> None:
        assert [entry.content for entry in await memory.list()] == ["for the team"]

    async def alone(memory: Any) -> None:
        assert await memory.list() == []

    for story, sharing in ((writes, "shared:team"), (reads, "shared:team"), (alone, "isolated"),
                           (alone, "shared"), (alone, "shared:others")):  # fmt: skip
        body = chain(remembering.scene(story, config={"agentSharing": sharing}))
        run = await ended(host, await begun(host, body))
        assert run.status is Status.COMPLETED, run.error
    assert [note.content for note in await entries(host, "shared:team")] == ["for the team"]


async def test_an_agent_has_its_own_memory_wherever_it_works(host: Host) -> None:
    agent = {"agentId": "host:ada", "memoryRef": "ada/long-term"}

    async def writes(memory: Any) -> None:
        await memory.put("Ada knows")

    run = await ended(host, await begun(host, chain(remembering.scene(writes, agent=agent))))
    [event] = [e for e in await log(host, run.run_id) if e.type == "memory.written"]
    assert payload_json(event)["agentId"] == "host:ada"
    assert payload_json(event)["memoryRef"] == "ada/long-term"
    [note] = await entries(host, "ada/long-term")
    assert note.agent_id == "host:ada"


async def test_a_shared_memory_gives_no_right_to_speak(host: Host) -> None:
    """The outsider shares the council's memory and still is not on its roster."""
    run_id = await begun(host, chain(council()))
    await until(host, run_id, waits)

    async def joins(memory: Any) -> None:
        await memory.put("I am one of you")

    outsider = {"agentId": "host:outsider"}
    config = {"agentSharing": "shared:council"}
    await ended(host, await begun(host, chain(remembering.scene(joins, config=config,
                                                               agent=outsider))))  # fmt: skip
    assert len(await entries(host, "shared:council")) == 1
    length = (await host.view(TENANT, run_id)).run.next_sequence
    turn = {
        "role": "agent", "speakerId": "host:outsider", "content": "Hear me", "groupId": "council",
        "agent": {"agentId": "host:outsider", "agentSharing": "shared"},
    }  # fmt: skip
    with pytest.raises(SpeakerNotParticipant):
        await answer(host, run_id, "talk", turn, Speaker("key", names=("host:outsider",)))
    assert (await host.view(TENANT, run_id)).run.next_sequence == length
    her = {"agentId": "host:ada", "agentSharing": "shared"}
    member = {**turn, "speakerId": "host:ada", "agent": her}
    await answer(host, run_id, "talk", member, Speaker("key", names=("host:ada",)))
