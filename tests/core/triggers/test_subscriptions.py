"""Rules of what comes in: when it is tried again, what ends a subscription, what a run is given."""

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moot.core.backoff import LONGEST_WAIT
from moot.core.triggers import subscriptions
from moot.core.triggers.signatures import PREFIX, TOLERANCE, standard_signature, verify_signature
from moot.core.triggers.subscriptions import (
    FAILING_LIMIT,
    STATES,
    Arrival,
    Backoff,
    RetryPolicy,
    SubscriptionState,
    TriggerSubscription,
    dedup_key,
    inputs_from_event,
    next_delivery_time,
    state_after_failure,
    trigger_event,
    visible_headers,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
SECRET = PREFIX + base64.b64encode(b"k" * 32).decode()
NOW = 1_700_000_000_000


@given(st.integers(1, 20), st.integers(1, 25), st.integers(0, 999),
       st.sampled_from(["none", "fixed", "exponential"]))  # fmt: skip
def test_tries_are_bounded_and_never_sooner_than_the_one_before(
    most: int, tries: int, lot: int, backoff: Backoff
) -> None:
    policy = RetryPolicy(max_attempts=most, backoff=backoff)
    due = next_delivery_time(policy, tries, 1000, lot)
    if tries >= most:
        assert due is None
        return
    assert due is not None and 1000 <= due <= 1000 + LONGEST_WAIT * 1.2
    later = next_delivery_time(policy, tries + 1, 1000, lot)
    assert later is None or later >= due


@given(st.sampled_from(STATES), st.booleans(), st.integers(0, 2 * FAILING_LIMIT))
def test_a_failure_ends_a_subscription_or_leaves_it(
    state: SubscriptionState, exhausted: bool, failing: int
) -> None:
    after, reason = state_after_failure(state, exhausted, failing)
    if exhausted:
        assert (after, reason) == ("dead-lettered", "retry-exhausted")
    elif state == "active" and failing >= FAILING_LIMIT:
        assert (after, reason) == ("failed", None)
    else:
        assert (after, reason) == (state, None)


@given(st.text(), st.text(), st.text())
def test_a_key_is_that_of_its_subscription_and_event_and_says_neither(
    name: str, event: str, other: str
) -> None:
    key = dedup_key(name, event)
    assert key == dedup_key(name, event) and len(key) == 42
    assert (key == dedup_key(name, other)) is (event == other)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.lists(st.text(max_size=8)),
       st.dictionaries(st.text(max_size=4), st.text(max_size=12), max_size=3),
       st.sampled_from(["webhook", "queue"]))  # fmt: skip
def test_whatever_comes_in_has_inputs_or_none(
    content: dict[str, Any], declared: list[str], mapping: dict[str, str], source: Any
) -> None:
    it = TriggerSubscription(subscription_id="sub_1", source=source)
    event = trigger_event(it, Arrival(content=content), "dlv_1", "k_1", 5)
    found = inputs_from_event(event, mapping, declared)
    assert set(found) <= set(mapping or declared)
    assert event["contentTrust"] == "untrusted"


def test_names_of_a_webhook_are_those_of_its_body_and_its_own_win() -> None:
    it = TriggerSubscription(subscription_id="sub_1", source="webhook")
    content = {"method": "POST", "headers": {}, "body": {"title": "t", "method": "mine"}}
    event = trigger_event(it, Arrival(content=content, verified=True), "dlv_1", "k_1", 5)
    found = inputs_from_event(event, {}, ["title", "method", "trigger", "absent"])
    assert found == {"title": "t", "method": "POST", "trigger": event}
    assert inputs_from_event(event, {}, ["body"]) == {"body": content["body"]}
    mapped = inputs_from_event(event, {"a": "webhook.body.title", "b": "nowhere"}, ["title"])
    assert mapped == {"a": "t"}


@given(st.dictionaries(st.sampled_from(["subject", "body", "other"]), JSON))
def test_fields_of_one_name_are_the_same_input_from_a_queue_and_by_a_webhook(
    fields: dict[str, Any],
) -> None:
    queue = TriggerSubscription(subscription_id="sub_1", source="queue")
    hook = TriggerSubscription(subscription_id="sub_2", source="webhook")
    item = trigger_event(queue, Arrival(content=fields), "wi_1", "k_1", 5)
    content = {"method": "POST", "headers": {}, "body": fields}
    sent = trigger_event(hook, Arrival(content=content), "dlv_1", "k_1", 5)
    names = list(fields)
    assert inputs_from_event(item, {}, names) == inputs_from_event(sent, {}, names) == fields


@given(st.lists(st.tuples(st.sampled_from(
    ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Webhook-Signature",
     "X-Openwop-Signature", "Content-Type", "X-Event-Type"]), st.text(max_size=2000))))  # fmt: skip
def test_no_header_with_a_right_in_it_is_seen(pairs: list[tuple[str, str]]) -> None:
    seen = visible_headers(pairs)
    assert set(seen) <= {"content-type", "x-event-type"} <= subscriptions.HEADERS
    assert all(len(value) <= subscriptions.LONGEST_HEADER for value in seen.values())


@given(st.binary(max_size=200), st.integers(-2 * TOLERANCE, 2 * TOLERANCE), st.binary(max_size=50))
def test_only_these_bytes_at_about_this_time_are_rightly_signed(
    body: bytes, late: int, other: bytes
) -> None:
    name, seconds = "msg_0123456789abcdef", str(NOW // 1000 + late)
    headers = {
        "webhook-id": name,
        "webhook-timestamp": seconds,
        "webhook-signature": standard_signature(SECRET, name, seconds, body),
    }
    assert verify_signature(headers, body, [SECRET], NOW).verified is (abs(late) <= TOLERANCE)
    assert verify_signature(headers, other, [SECRET], NOW).verified is (
        abs(late) <= TOLERANCE and other == body
    )
    assert not verify_signature(headers, body, [], NOW).verified


@given(st.dictionaries(st.sampled_from(
    ["webhook-id", "webhook-timestamp", "webhook-signature", "x-openwop-timestamp",
     "x-openwop-signature"]), st.text(max_size=30)), st.binary(max_size=60))  # fmt: skip
def test_whatever_is_sent_is_judged_and_nothing_made_up_is_right(
    headers: dict[str, str], body: bytes
) -> None:
    judged = verify_signature(headers, body, [SECRET], NOW)
    assert not judged.verified and judged.problem
