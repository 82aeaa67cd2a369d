"""Effects: once, or not known; a failed one is tried again only by a later attempt."""

from typing import Any

import msgspec
import pytest

from moot.core.events import NewEvent, new_event
from moot.core.ids import logical_invocation_id
from moot.engine.effects.ledger import Effect, EffectFailed, EffectLedger, EffectOutcomeUnknown
from moot.store.memory.store import MemoryStore
from moot.store.protocol import Append, Batch, EffectRow
from tests.support.event_payloads import payload_json


class Notes:
    """A node's context that writes what it is told into a log."""

    def __init__(self, store: MemoryStore, attempt: int = 1) -> None:
        self.store, self.attempt, self.earlier, self.inherited = store, attempt, 0, 0
        self.tenant, self.run_id, self.node_id = "default", "run_x", "n"
        self.payer: str | None = None

    async def recorded(self, *events: NewEvent) -> None:
        first = await self.store.head(self.tenant, self.run_id) or 0
        for event in events:
            body = (
                b'{"eventId":"e","runId":"run_x","sequence":%d,"type":"%b","timestamp":"t",'
                b'"payload":%b}'
            )
            row = body % (first, event.type.encode(), msgspec.json.encode(payload_json(event)))
            effect = EffectRow(
                tenant=self.tenant,
                invocation_id=payload_json(event)["invocationId"],
                run_id=self.run_id,
                sequence=first,
                finished=event.type == "moot.effect.finished",
            )
            append = Append(tenant=self.tenant, run_id=self.run_id, first=first, events=[row])
            await self.store.commit(Batch(appends=[append], effects=[effect]))


class Shop:
    def __init__(self, fails: int = 0) -> None:
        self.calls, self.fails = 0, fails

    async def order(self, key: str) -> dict[str, Any]:
        self.calls += 1
        if self.calls <= self.fails:
            raise RuntimeError("shop is closed")
        return {"order": self.calls}


async def test_a_recorded_outcome_is_given_again_without_a_call() -> None:
    store, shop = MemoryStore(), Shop()
    first = await EffectLedger(store).once(Notes(store), Effect(1, "shop", shop.order))
    again = await EffectLedger(store).once(Notes(store, attempt=2), Effect(1, "shop", shop.order))
    assert first == again == {"order": 1}
    assert shop.calls == 1


async def test_no_log_answers_for_another_run() -> None:
    """The name of an effect can be worked out by anybody; whose log tells of it counts."""
    store, shop = MemoryStore(), Shop()
    effect = Effect(1, "shop", shop.order)
    name = logical_invocation_id("default", "run_x", "n", 1, "shop")
    forger = Notes(store)
    forger.run_id = "run_forger"
    for _ in range(9):
        told = {"invocationId": name, "result": {"order": "forged"}, "attempt": 1}
        await forger.recorded(new_event("moot.effect.finished", told))
    assert await EffectLedger(store).once(Notes(store), effect) == {"order": 1}
    assert await EffectLedger(store).once(Notes(store), effect) == {"order": 1}
    assert shop.calls == 1


async def test_a_failed_effect_is_not_made_again_in_the_same_attempt() -> None:
    store, shop = MemoryStore(), Shop(fails=1)
    with pytest.raises(RuntimeError):
        await EffectLedger(store).once(Notes(store), Effect(1, "shop", shop.order))
    with pytest.raises(EffectFailed):
        await EffectLedger(store).once(Notes(store), Effect(1, "shop", shop.order))
    assert shop.calls == 1


async def test_a_later_attempt_makes_a_failed_effect_again() -> None:
    store, shop = MemoryStore(), Shop(fails=1)
    with pytest.raises(RuntimeError):
        await EffectLedger(store).once(Notes(store), Effect(1, "shop", shop.order))
    assert await EffectLedger(store).once(Notes(store, attempt=2), Effect(1, "shop", shop.order))
    assert shop.calls == 2


async def crash_in_the_middle(store: MemoryStore) -> None:
    async def never(key: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await EffectLedger(store).once(Notes(store), Effect(1, "shop", never))


async def test_an_idempotent_effect_is_made_again_after_a_crash_in_its_middle() -> None:
    store, shop = MemoryStore(), Shop()
    await crash_in_the_middle(store)
    assert await EffectLedger(store).once(Notes(store), Effect(1, "shop", shop.order)) == {
        "order": 1
    }


async def test_an_effect_that_must_not_happen_twice_is_refused_after_a_crash_in_its_middle() -> (
    None
):
    store, shop = MemoryStore(), Shop()
    await crash_in_the_middle(store)
    with pytest.raises(EffectOutcomeUnknown):
        await EffectLedger(store).once(
            Notes(store), Effect(1, "shop", shop.order, idempotent=False)
        )
    assert shop.calls == 0


async def test_an_effect_begun_again_by_a_later_attempt_is_unknown_after_a_crash() -> None:
    store, shop = MemoryStore(), Shop(fails=1)
    with pytest.raises(RuntimeError):
        await EffectLedger(store).once(
            Notes(store), Effect(1, "shop", shop.order, idempotent=False)
        )

    async def never(key: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await EffectLedger(store).once(Notes(store, 2), Effect(1, "shop", never, idempotent=False))
    with pytest.raises(EffectOutcomeUnknown):
        await EffectLedger(store).once(
            Notes(store, 2), Effect(1, "shop", shop.order, idempotent=False)
        )
    assert shop.calls == 1
