"""A change that has happened is answered, whether its answer can be kept or not."""

import pytest

from moot.api.app import App
from moot.api.services import Services
from moot.core.errors import MootError, StorageFailed, Unavailable
from moot.store.protocol import Receipt
from tests.support.api.application import ask


@pytest.mark.parametrize("failure", [StorageFailed("The disk is full."), Unavailable("Busy.")])
async def test_a_key_is_handed_out_even_if_the_answer_cannot_be_kept(
    services: Services,
    bearer: str,
    failure: MootError,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def remember(receipt: Receipt) -> None:
        raise failure

    monkeypatch.setattr(services.host, "remember", remember)
    said = await ask(
        App(services),
        "POST",
        "/v1/host/moot/keys",
        {"name": "made"},
        authorization=bearer,
        idempotency_key="once",
    )
    assert said.status == 201
    assert said.body["key"].startswith("hk_")
    assert [key.name for key in await services.store.keys(None)] == ["local", "made"]
    assert "could not be kept" in caplog.text
