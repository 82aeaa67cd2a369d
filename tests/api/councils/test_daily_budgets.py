"""What a tenant may use up in a day: a hard stop before the next call, whatever restarts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from moot.config.settings import load_settings
from tests.support.api.council_hall import AGENTS, Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import KEY, Call, project, provider, words
from tests.support.servers import ServerProcess

pytestmark = pytest.mark.usefixtures("within_a_day")

PRICES = '[prices."big"]\ninput = 1000\noutput = 1000'
POLICY = {"mode": "round-robin", "rounds": 5}


def hundred(call: Call) -> Reply:
    return words(f"{call.agent} says #{call.number}.", tokens=(90, 10))


def test_tokens_of_the_day_stop_every_council_and_outlive_the_server(
    server: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    with provider(hundred) as models:
        project(tmp_path, models.url, AGENTS)
        hall = Hall(
            server(folder=tmp_path, STAND_IN_KEY=KEY, MOOT_TENANT_TOKENS_PER_DAY="450"), models
        )
        run_id = hall.convene("ada", "cy", policy=POLICY)
        floor = hall.at_rest(run_id)
        assert (models.count, floor["stopped"]) == (5, "budget of the day")
        assert "The day's limit of 450 (tokens) is reached" in hall.system(run_id)[-1]
        answered = hall.told(run_id, "moot.participation.answered")[-1]
        assert answered["error"]["code"] == "daily_budget_used_up"
        hall.server.restart()
        other = hall.convene("ada", "cy", policy=POLICY)
        hall.steer(run_id, **{"continue": True})
        assert hall.at_rest(other)["stopped"] == "budget of the day"
        hall.until(run_id, lambda floor: bool(floor["stopped"]))
        assert models.count == 5
        assert hall.ask("POST", f"/v1/host/moot/runs/{run_id}:verify")["identical"]
        made = {"name": "k", "tenant": "others", "admin": True}
        key = hall.ask("POST", "/v1/host/moot/keys", made)["key"]
        hall.server.request("POST", "/v1/host/moot/agents", {"name": "ada", "model": "it"}, key=key)
        asked = {"question": "Ours?", "participants": ["ada", "acme:x"], "policy": POLICY}
        hall.server.request("POST", "/v1/host/moot/councils", asked, key=key)
        hall.until_called(6)


def test_so_does_the_money_of_the_day(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    """A hundred tokens cost a tenth."""
    with provider(hundred) as models:
        project(tmp_path, models.url, AGENTS, PRICES)
        hall = Hall(
            server(folder=tmp_path, STAND_IN_KEY=KEY, MOOT_TENANT_MONEY_PER_DAY="0.25"), models
        )
        quiet = f"/v1/host/moot/threads/{hall.convene('ada', 'x')}:catch-up"
        assert hall.ask("POST", quiet)["usage"]["cost"] == pytest.approx(0.1)
        run_id = hall.convene("ada", "cy", policy=POLICY)
        assert hall.at_rest(run_id)["stopped"] == "budget of the day"
        assert models.count == 3, "what is private is paid for, too"
        assert "limit of 0.25 (money) is reached" in hall.system(run_id)[-1]
        assert hall.ask("POST", quiet)["error"]["code"] == "daily_budget_used_up"


def test_a_tenants_day_is_bounded_unless_somebody_says_that_it_is_not() -> None:
    def found(**environment: str) -> tuple[int, float | None]:
        settings = load_settings(
            environment={f"MOOT_TENANT_{k}_PER_DAY": v for k, v in environment.items()}
        )
        return settings.tenant_tokens_per_day, settings.tenant_money_per_day

    assert found() == (10_000_000, None)
    assert found(TOKENS="none", MONEY="none") == (0, 0)
    assert found(TOKENS="0", MONEY="2.5") == (0, 2.5)
