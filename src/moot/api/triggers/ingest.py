"""Accept signed webhooks from outside callers without a key."""

from typing import Any

import msgspec

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers.subscriptions import INGEST_PATH
from moot.core.errors.triggers import LoopRefused, SignatureInvalid, SubscriptionNotActive
from moot.core.json.nesting import is_too_deep
from moot.core.triggers.hops import HEADER, MOST_HOPS, parse_hops
from moot.core.triggers.signatures import SignatureVerdict, verify_signature
from moot.core.triggers.subscriptions import Arrival, dedup_key, visible_headers
from moot.triggers.inbound.versions import SubscriptionVersion
from moot.wire.triggers import InboundContent, IngestResult

#: Largest body of a caller without a key.
LARGEST_BODY = 262_144


async def ingest_webhook(request: Request) -> Reply:
    services = request.services
    name = request.params["subscription_id"]
    subscription = await services.triggers.subscriptions.find_public(name)
    body = await request.body()
    headers = {
        key.decode("latin-1").lower(): value.decode("latin-1")
        for key, value in request.scope["headers"]
    }
    if subscription.it.state != "active":
        raise SubscriptionNotActive(name, subscription.it.state, until=subscription.it.until)
    now = services.clock.millis()
    judged = verify_signature(headers, body, subscription.it.secrets(now), now)
    if not judged.verified:  # signed requests have no extra limit
        services.ingest_rate.spend(name, "subscription")
    if subscription.it.verification == "required" and not judged.verified:
        await services.triggers.deliveries.refuse(subscription, judged.problem)
        raise SignatureInvalid(f"{judged.problem} Sign it with the subscription's secret.")
    if (hops := parse_hops(headers.get(HEADER.lower()))) > MOST_HOPS:
        raise LoopRefused(hops)
    content = {
        "method": request.method,
        "headers": visible_headers(headers.items()),
        "body": parse_content(body),
    }
    verified = judged.verified and subscription.it.verification != "none"
    key = dedup_key(name, _event_id(subscription, judged) or services.clock.new_id("event:"))
    arrival = Arrival(content=content, verified=verified, hops=hops)
    handed = await services.triggers.deliveries.take(subscription, arrival, key)
    row = handed.delivery
    outcome = OUTCOMES[row.state] if handed.fresh else "duplicate"
    result = IngestResult(outcome=outcome, run_id=row.run_id)
    return Reply(result, 202 if handed.fresh else 200)


#: State of a delivery -> the protocol's outcome.
OUTCOMES = {"delivered": "delivered", "retrying": "retrying", "dead": "dead-lettered",
            "waiting": "retrying"}  # fmt: skip


def _event_id(subscription: SubscriptionVersion, judged: SignatureVerdict) -> str | None:
    """Return the sender's event id.

    Signed and unsigned ids differ, so a stranger cannot take a signed one.
    """
    if not subscription.it.dedup_enabled or judged.event_id is None:
        return None
    return f"{'signed' if judged.verified else 'unsigned'}:{judged.event_id}"


def parse_content(body: bytes) -> Any:
    """Return JSON, or the text of anything else."""
    if not is_too_deep(body):
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return body.decode("utf-8", "replace")


INGEST_ENDPOINTS = (
    Endpoint("POST", f"{INGEST_PATH}/{{subscription_id}}", ingest_webhook, public=True,
             knows_again=True, largest=LARGEST_BODY, body=InboundContent, status=202,
             answer=IngestResult),
)  # fmt: skip
