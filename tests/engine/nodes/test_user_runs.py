"""A user's own functions in real runs: whatever they do, the run comes to its end."""

import asyncio
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from moot import Completed, NodeContext
from moot import node as node_function
from moot.core.errors import ChannelAccessDenied
from moot.core.events import encode
from moot.core.state.status import Status
from tests.support.engine.hosts import (
    TENANT,
    Place,
    another,
    begun,
    chain,
    ended,
    log,
    node,
    order,
    registered,
    soon,
    sound,
    variable,
)  # fmt: skip

V = [{"name": "v", "type": "object", "defaultValue": {"list": [1, 2]}}]


class Odd:
    pass


def cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


NOT_JSON = {
    "object": Odd(), "deep object": {"a": [Odd()]}, "function": print, "surrogate": "\ud800",
    "cycle": cycle(), "completed": Completed({"a": Odd()}),
    "variables": Completed({}, {"v": Odd()}),
    "a list for outputs": Completed([1]),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("what", NOT_JSON)
async def test_an_answer_json_cannot_say_fails_the_node_for_good(
    memory: Place, what: str, pure: bool
) -> None:
    @node_function("acme.odd", pure=pure, retries=3)
    def odd() -> Any:
        return NOT_JSON[what]

    memory.knows(odd)
    host = memory.host()
    run = await ended(host, await begun(host, chain(node("n", "acme.odd"))))
    assert run.error is not None and run.error.code == "output_not_json"
    assert run.nodes["n"].attempt == 1
    await sound(host)


SAID_OTHERWISE = {
    "tuple": ((1, (2,)), [1, [2]]),
    "set": ({1}, [1]),
    "nan": (math.nan, None),
    "deep infinity": ({"a": [math.inf]}, {"a": [None]}),
    "number keys": ({1: {2: 3}}, {"1": {"2": 3}}),
    "time": (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    "struct": (msgspec.defstruct("P", [("x", int)])(1), {"x": 1}),
    "completed": (Completed({"output": (math.nan,)}, {"v": {1: (2,)}}), [None]),
}


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("what", SAID_OTHERWISE)
async def test_what_is_in_memory_is_what_the_log_says(place: Place, what: str, pure: bool) -> None:
    given, said = SAID_OTHERWISE[what]

    @node_function("acme.odd", pure=pure)
    def odd() -> Any:
        return {"output": given} if not isinstance(given, Completed) else given

    place.knows(odd)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.odd")))
    run = await ended(host, run_id)
    assert run.outputs == {"output": said}
    await sound(host)
    again = await place.restart(host)
    assert (await again.view(TENANT, run_id)).run == run


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("annotated", [False, True])
async def test_a_node_that_changes_what_it_was_given_changes_nobody_elses(
    place: Place, pure: bool, annotated: bool
) -> None:
    if annotated:

        @node_function("acme.rude", pure=pure)
        def rude(given: dict[str, list[Any]], setting: list[Any]) -> int:
            given["list"].append("spoilt")
            setting.append("spoilt")
            return len(setting)

    else:

        @node_function("acme.rude", pure=pure)
        def rude(given, setting):  # type: ignore[no-untyped-def]
            given["list"].append("spoilt")
            setting.append("spoilt")
            return len(setting)

    place.knows(rude)
    host = place.host()
    port = {"given": variable("v")}
    body = chain(node("n", "acme.rude", config={"setting": []}, inputs=port), variables=V)
    flow = await registered(host, body)
    for _ in range(2):
        run = await ended(host, await another(host, flow))
        assert run.outputs == {"output": 1}
        assert run.variables == {"v": {"list": [1, 2]}}
    await sound(host)


async def test_a_context_shows_the_run_as_it_was_when_the_attempt_began(place: Place) -> None:
    at_work, go = asyncio.Event(), asyncio.Event()

    @node_function("acme.looker")
    async def looker(ctx: NodeContext) -> Any:
        ctx.config["spoilt"] = True
        at_work.set()
        await go.wait()
        ctx.variables["v"]["list"].append("spoilt")
        return ctx.variables.get("w", "not there")

    place.knows(looker)
    host = place.host()
    other = node("set", "core.setVariable", config={"name": "w", "value": 1})
    wait = node("wait", "core.delay", config={"ms": 60_000})
    body = chain(wait, other, variables=V)
    body["nodes"].append(node("n", "acme.looker"))
    flow = await registered(host, body)
    run_id = await another(host, flow)
    await soon(at_work.is_set)
    place.clock.ahead_ms += 60_000
    host.timers.look()
    await soon(lambda: "w" in host.runs._heads.get(TENANT, run_id).run.variables)  # type: ignore[union-attr]
    go.set()
    run = await ended(host, run_id)
    assert run.nodes["n"].outputs == {"output": "not there"}
    assert run.variables["v"] == {"list": [1, 2]}
    assert flow.nodes["n"].definition.config == {}


async def test_what_is_reported_is_what_it_was_when_reported(place: Place) -> None:
    @node_function("acme.changer")
    async def changer(ctx: NodeContext) -> None:
        value = ["first"]
        await ctx.write("c", value, "append")
        await ctx.set_variable("w", value)
        await ctx.log("info", "m", value=value)
        value.append("second")
        await asyncio.sleep(0.01)

    place.knows(changer)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.changer")))
    run = await ended(host, run_id)
    assert run.channels == {"c": [["first"]]} and run.variables == {"w": ["first"]}
    assert not any(b"second" in encode(event) for event in await log(host, run_id))
    await sound(host)


@pytest.mark.parametrize("how", ["write", "set_variable", "log", "emit_chunk", "effect"])
async def test_a_report_json_cannot_say_fails_the_node_and_not_the_host(
    place: Place, how: str
) -> None:
    @node_function("acme.odd")
    async def odd(ctx: NodeContext) -> None:
        async def effect(_: str) -> Any:
            return Odd()

        await {
            "write": lambda: ctx.write("c", Odd(), "append"),
            "set_variable": lambda: ctx.set_variable("w", Odd()),
            "log": lambda: ctx.log("info", "m", odd=Odd()),
            "emit_chunk": lambda: ctx.emit_chunk("c", True, {"odd": Odd()}),
            "effect": lambda: ctx.effect("odd", effect),
        }[how]()

    place.knows(odd)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.odd"), node("after")))
    run = await ended(host, run_id)
    assert run.status is Status.FAILED and run.error is not None
    assert run.error.code == "node_raised" and "JSON" in run.error.message
    assert (await ended(host, await begun(host, chain(node("n"))))).status is Status.COMPLETED
    await sound(host)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), OSError("\ud800")])
@pytest.mark.parametrize("way", ["async", "thread", "pure"])
async def test_what_a_node_raises_is_its_runs_error(
    memory: Place, way: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")  # what it says cannot even be reported between test processes
    if way == "async":

        @node_function("acme.raises")
        async def raises() -> None:
            raise error

    else:

        @node_function("acme.raises", pure=way == "pure")
        def raises() -> None:
            raise error

    memory.knows(raises)
    host = memory.host()
    run = await ended(host, await begun(host, chain(node("n", "acme.raises"))))
    assert run.error is not None and run.error.code == "node_raised"
    assert type(error).__name__ in run.error.message
    await sound(host)


async def test_a_write_that_is_not_allowed_is_refused_to_the_node_at_once(place: Place) -> None:
    seen: list[str] = []

    @node_function("acme.writer")
    async def writer(ctx: NodeContext) -> None:
        for name in ("hers", "counts"):
            try:
                await ctx.write(name, "x")
            except Exception as refusal:
                seen.append(type(refusal).__name__)

    place.knows(writer)
    host = place.host()
    channels = {
        "hers": {"reducer": "append", "access": "private"},
        "counts": {"reducer": "counter"},
    }
    run_id = await begun(host, chain(node("n", "acme.writer"), channels=channels))
    assert (await ended(host, run_id)).status is Status.COMPLETED
    assert seen == [ChannelAccessDenied.__name__, "BadRequest"]
    assert "channel.written n" not in await order(host, run_id)


async def test_messages_are_told_apart_by_what_is_already_on_its_way(place: Place) -> None:
    """Two writes of one message in a row: the second is decided when the first is known."""

    @node_function("acme.stutter")
    async def stutter(ctx: NodeContext) -> int:
        await asyncio.gather(
            *(ctx.write("m", {"messageId": str(n % 3), "n": n}, "message") for n in range(9))
        )
        return len(ctx.read("m") or [])

    place.knows(stutter)
    host = place.host()
    run_id = await begun(host, chain(node("n", "acme.stutter")))
    run = await ended(host, run_id)
    assert run.outputs == {"output": 3}
    whole = await host.whole(TENANT, run_id)
    assert [entry["messageId"] for entry in whole.messages["m"]] == ["0", "1", "2"]
    assert (await order(host, run_id)).count("channel.written n") == 3


async def test_a_node_reads_what_a_channel_holds_now_and_cannot_change_it(place: Place) -> None:
    @node_function("acme.reader")
    async def reader(ctx: NodeContext) -> Any:
        before = ctx.read("c")
        await ctx.write("c", 1)
        await asyncio.sleep(0.02)
        after = ctx.read("c")
        after.append("spoilt")
        return {"before": before, "after": ctx.read("c")}

    place.knows(reader)
    host = place.host()
    channels = {"c": {"reducer": "append"}}
    run = await ended(host, await begun(host, chain(node("n", "acme.reader"), channels=channels)))
    assert run.outputs == {"before": None, "after": [1]}


async def test_a_node_that_outlives_its_run_reports_to_nobody(place: Place) -> None:
    at_work, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @node_function("acme.stubborn")
    async def stubborn(ctx: NodeContext) -> None:
        at_work.set()
        try:
            await go.wait()
        except asyncio.CancelledError:
            await ctx.log("info", "too late")
            await ctx.set_variable("w", "too late")
            done.set()
            raise

    place.knows(stubborn)
    host = place.host()
    body = chain(node("n", "acme.stubborn"))
    run_id = await begun(host, body, configurable={"runTimeoutMs": 60_000})
    await soon(at_work.is_set)
    place.clock.ahead_ms += 60_000
    host.timers.look()
    run = await ended(host, run_id)
    await soon(done.is_set)
    await asyncio.sleep(0.02)
    assert (await host.view(TENANT, run_id)).run == run
    await sound(host)


async def test_ten_thousand_pieces_of_output_are_all_there_in_order(memory: Place) -> None:
    @node_function("acme.talker")
    async def talker(ctx: NodeContext) -> None:
        for number in range(10_000):
            await ctx.emit_chunk(str(number))

    memory.knows(talker)
    host = memory.host()
    run_id = await begun(host, chain(node("n", "acme.talker")))
    assert (await ended(host, run_id)).status is Status.COMPLETED
    rows = await host.store.read(TENANT, run_id, 1, 10_000)
    assert [msgspec.json.decode(row)["payload"]["chunk"] for row in rows] == [
        str(number) for number in range(10_000)
    ]
    assert await host.store.snapshot(TENANT, run_id, 10**6) is None
    again = memory.host()
    assert (await again.view(TENANT, run_id)).run == (await host.view(TENANT, run_id)).run
