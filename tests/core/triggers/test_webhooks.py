"""When a receiver is left alone, when it is tried again and when it is given up."""

import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from moot.core.backoff import LONGEST_WAIT
from moot.core.triggers import webhooks
from moot.core.triggers.webhooks import (
    Circuit,
    WebhookRegistration,
    circuit_after_failure,
    close_circuit,
    next_webhook_time,
)


def hook(**more: object) -> WebhookRegistration:
    fields: dict[str, object] = {
        "webhook_id": "wh_1", "url": "https://a.example/", "events": ("run.completed",),
        "secret": "s" * 64, "created_at": 0,
    }  # fmt: skip
    return WebhookRegistration(**fields | more)  # type: ignore[arg-type]


@given(st.text(min_size=1), st.integers(0, 2**40), st.binary())
def test_a_signature_covers_time_and_bytes(secret: str, seconds: int, body: bytes) -> None:
    expected = hmac.new(secret.encode(), str(seconds).encode() + b"." + body, hashlib.sha256)
    assert webhooks.webhook_signature(secret, seconds, body) == f"sha256={expected.hexdigest()}"


def test_who_wants_what() -> None:
    assert hook().wants("run.completed", [])
    assert not hook().wants("run.failed", [])
    assert hook(events=("*",)).wants("anything.at.all", [])
    assert not hook(tags=("a",)).wants("run.completed", ["b"])
    assert hook(tags=("a", "b")).wants("run.completed", ["b"])
    assert hook(state="paused").wants("run.completed", [])
    assert not hook(state="failed").wants("run.completed", [])


def test_both_secrets_sign_until_the_earlier_one_has_ended() -> None:
    rotated = hook(earlier="e" * 64, earlier_until=10_000)
    said = webhooks.webhook_headers(rotated, "run.completed", 9_999, b"{}", "1")
    assert said["X-openwop-Signature"] == webhooks.webhook_signature("s" * 64, 9, b"{}")
    assert said["X-openwop-Signature-Previous"] == webhooks.webhook_signature("e" * 64, 9, b"{}")
    later = webhooks.webhook_headers(rotated, "run.completed", 10_000, b"{}", "1")
    assert "X-openwop-Signature-Previous" not in later


def test_four_failures_in_a_row_open_the_circuit_and_one_success_closes_it() -> None:
    circuit = Circuit()
    for at in range(3):
        circuit = circuit_after_failure(circuit, at)
        assert circuit.waits(at) is None
    circuit = circuit_after_failure(circuit, 3, "Nobody is there.")
    assert circuit.waits(4) == 3 + webhooks.FIRST_BREAK and circuit.failing
    assert circuit.error == "Nobody is there."
    half = 3 + webhooks.FIRST_BREAK
    assert circuit.waits(half) is None and circuit.failing
    assert circuit_after_failure(circuit, half).waits(half) == half + 2 * webhooks.FIRST_BREAK
    assert close_circuit(circuit).waits(4) is None and not close_circuit(circuit).failing


def test_breaks_grow_to_an_hour_and_no_further() -> None:
    circuit, now, breaks = Circuit(), 0, []
    for _ in range(20):
        circuit = circuit_after_failure(circuit, now)
        until = circuit.waits(now) or now
        breaks.append(until - now)
        now = until
    assert breaks[:6] == [0, 0, 0, 30_000, 60_000, 120_000]
    assert breaks == sorted(breaks) and breaks[-1] == webhooks.LONGEST_BREAK == webhooks.HOUR


def test_those_that_were_on_their_way_count_and_make_the_break_no_longer() -> None:
    circuit = Circuit()
    for _ in range(8):
        circuit = circuit_after_failure(circuit, 0)
    assert circuit.open_until == webhooks.FIRST_BREAK
    assert len(circuit.failures) == 8


def test_a_hundred_failures_in_a_week_are_the_end_and_older_ones_do_not_count() -> None:
    circuit = Circuit()
    for at in range(99):
        circuit = close_circuit(circuit_after_failure(circuit, at))
    assert not circuit.ended
    assert not circuit_after_failure(circuit, webhooks.WINDOW + 50).ended
    assert circuit_after_failure(circuit, 100).ended


@given(st.integers(1, 20), st.integers(0, 999))
def test_tries_are_spread_and_bounded(tries: int, lot: int) -> None:
    now = 1_000_000
    due = next_webhook_time(tries, now, lot)
    if tries >= webhooks.MOST_TRIES:
        assert due is None
        return
    assert due is not None and now < due <= now + LONGEST_WAIT * 1.2
