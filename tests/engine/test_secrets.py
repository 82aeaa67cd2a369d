"""Sensitive values reach the nodes and nothing else: not the log, not rows, not a snapshot."""

import asyncio
from typing import Any

import msgspec
import pytest

from moot import NodeContext
from moot import node as node_function
from moot.api.runs import snapshot
from moot.core.commands import CancelRun, PauseRun, ResumeRun, SetVariables
from moot.core.state.status import Status
from moot.engine.host import Host
from tests.support.engine.hosts import (
    TENANT,
    Place,
    Recording,
    begun,
    chain,
    ended,
    node,
    registered,
    soon,
    sound,
    variable,
)  # fmt: skip

SECRET = "correct horse battery staple"


class Keyhole:
    """A node that remembers the key it was shown."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()

        @node_function("acme.keyhole")
        async def keyhole(ctx: NodeContext, key: Any) -> dict[str, Any]:
            self.seen.append(key)
            await self.gate.wait()
            return {"length": len(key), "shown": ctx.variables.get("secret") == key}

        self.node = keyhole


def body(mode: str = "mask", **given: Any) -> dict[str, Any]:
    return chain(
        node("look", "acme.keyhole", inputs={"key": variable("secret")}),
        variables=[{"name": "secret", "type": "string", "sensitive": True}],
        metadata={"complianceConfig": {"maskingMode": mode}},
        **given,
    )


async def everything_written(host: Host, run_id: str) -> bytes:
    """What could be read of the run by anybody: its log, its rows, its snapshot."""
    rows = await host.store.read(TENANT, run_id, -1, 10_000)
    row = await host.store.find_run(TENANT, run_id)
    shown = snapshot.encoded_snapshot(await host.view(TENANT, run_id))
    return b"".join([*rows, msgspec.json.encode(row), shown])


@pytest.mark.parametrize("mode", ["mask", "omit", "hash"])
async def test_a_sensitive_input_reaches_the_node_and_is_written_nowhere(
    place: Place, mode: str
) -> None:
    keyhole = Keyhole()
    place.knows(keyhole.node)
    host = place.host()
    run_id = await begun(host, body(mode), inputs={"secret": SECRET})
    run = await ended(host, run_id)
    assert run.status is Status.COMPLETED and keyhole.seen == [SECRET]
    assert run.outputs == {"length": len(SECRET), "shown": True}
    assert SECRET.encode() not in await everything_written(host, run_id)
    await sound(host)


async def test_it_reaches_the_node_after_a_crash_too(place: Place) -> None:
    keyhole = Keyhole()
    keyhole.gate.clear()
    place.knows(keyhole.node)
    host = place.host()
    run_id = await begun(host, body(), inputs={"secret": SECRET})
    await soon(lambda: keyhole.seen)
    await place.crash(host)
    keyhole.gate.set()
    again = place.host()
    await again.recover()
    assert (await ended(again, run_id)).status is Status.COMPLETED
    assert keyhole.seen == [SECRET, SECRET]
    assert SECRET.encode() not in await everything_written(again, run_id)


async def test_it_is_forgotten_when_the_run_ends(place: Place) -> None:
    keyhole = Keyhole()
    keyhole.gate.clear()
    place.knows(keyhole.node)
    host = place.host()
    run_id = await begun(host, body(), inputs={"secret": SECRET})
    assert await host.store.sealed(TENANT, run_id) == {"var:secret": msgspec.json.encode(SECRET)}
    keyhole.gate.set()
    await ended(host, run_id)
    assert await host.store.sealed(TENANT, run_id) == {}
    other = await begun(host, body(), inputs={"secret": SECRET})
    keyhole.gate.clear()
    await host.handle(TENANT, other, CancelRun(host.clock.millis()))
    assert await host.store.sealed(TENANT, other) == {}


async def test_a_new_value_replaces_the_old_one_in_memory_and_on_disk(place: Place) -> None:
    keyhole = Keyhole()
    keyhole.gate.clear()
    place.knows(keyhole.node)
    host = place.host()
    run_id = await begun(host, body(), inputs={"secret": "old " + SECRET})
    await soon(lambda: keyhole.seen)
    await host.handle(TENANT, run_id, SetVariables({"secret": SECRET}, host.clock.millis()))
    await host.handle(TENANT, run_id, PauseRun(host.clock.millis(), "immediate"))
    again = await place.restart(host)
    keyhole.gate.set()
    await again.handle(TENANT, run_id, ResumeRun(again.clock.millis()))
    await ended(again, run_id)
    assert keyhole.seen == ["old " + SECRET, SECRET]
    assert SECRET.encode() not in await everything_written(again, run_id)


async def test_a_copy_that_was_overwritten_is_public_after_a_restart_too(place: Place) -> None:
    keyhole = Keyhole()
    place.knows(keyhole.node)
    host = place.host()
    copy = node("copy", "core.setVariable", config={"name": "copy"},
                inputs={"value": variable("secret")})  # fmt: skip
    over = node("over", "core.setVariable", config={"name": "copy", "value": "public"})
    wait = node("wait", "core.delay", config={"ms": 60_000})
    look = node("look", "acme.keyhole", inputs={"key": variable("copy")})
    variables = [{"name": "secret", "type": "string", "sensitive": True}]
    run_id = await begun(
        host, chain(copy, over, wait, look, variables=variables), inputs={"secret": SECRET}
    )
    place.clock.ahead_ms += 120_000
    again = await place.restart(host)
    await ended(again, run_id)
    assert keyhole.seen == ["public"]
    assert SECRET.encode() not in await everything_written(again, run_id)


async def test_no_cached_state_holds_a_secret(place: Place) -> None:
    keyhole = Keyhole()
    place.knows(keyhole.node)
    host = place.host(Recording)
    flow = await registered(
        host,
        chain(
            *(node(f"n{n}") for n in range(700)),
            node("look", "acme.keyhole", inputs={"key": variable("secret")}),
            variables=[{"name": "secret", "type": "string", "sensitive": True}],
        ),
    )
    from tests.support.engine.hosts import another

    run_id = await another(host, flow, inputs={"secret": SECRET})
    await ended(host, run_id)
    store: Any = host.store
    cached = [a.snapshot for batch in store.batches for a in batch.appends if a.snapshot]
    assert cached and not any(SECRET.encode() in state for state in cached)
    assert keyhole.seen == [SECRET]
