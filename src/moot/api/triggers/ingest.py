"""Where strangers send what starts a run: no key, but a signature that the subscription knows."""

from typing import Any

import msgspec

from moot.api.http.request import Endpoint, Reply, Request
from moot.api.triggers.subscriptions import INGEST
from moot.core.errors.triggers import LoopRefused, SignatureInvalid, SubscriptionNotActive
from moot.core.json.nesting import too_deep
from moot.core.triggers.hops import HEADER, MOST_HOPS, hops_of
from moot.core.triggers.signatures import Judged, judge
from moot.core.triggers.subscriptions import Arrival, dedup_key, seen_headers
from moot.triggers.inbound.subscriptions import Seen

#: bytes that somebody without a key may send
LARGEST = 262_144


async def ingest(request: Request) -> Reply:
    services = request.services
    name = request.params["subscription_id"]
    seen = await services.triggers.subscriptions.of_strangers(name)
    body = await request.body()
    headers = {
        key.decode("latin-1").lower(): value.decode("latin-1")
        for key, value in request.scope["headers"]
    }
    if seen.it.state != "active":
        raise SubscriptionNotActive(name, seen.it.state, until=seen.it.until)
    now = services.clock.millis()
    judged = judge(headers, body, seen.it.secrets(now), now)
    if not judged.verified:  # whoever knows the secret has the same share as one with a key
        services.ingest_rate.spend(name, "subscription")
    if seen.it.verification == "required" and not judged.verified:
        await services.triggers.deliveries.refuse(seen, judged.problem)
        raise SignatureInvalid(f"{judged.problem} Sign it with the subscription's secret.")
    if (hops := hops_of(headers.get(HEADER.lower()))) > MOST_HOPS:
        raise LoopRefused(hops)
    content = {
        "method": request.method,
        "headers": seen_headers(headers.items()),
        "body": parsed(body),
    }
    verified = judged.verified and seen.it.verification != "none"
    key = dedup_key(name, _event_id(seen, judged) or services.clock.new_id("event:"))
    arrival = Arrival(content=content, verified=verified, hops=hops)
    handed = await services.triggers.deliveries.take(seen, arrival, key)
    row = handed.delivery
    told: dict[str, Any] = {"outcome": OUTCOMES[row.state] if handed.fresh else "duplicate"}
    if row.run_id is not None:
        told["runId"] = row.run_id
    return Reply(told, 202 if handed.fresh else 200)


#: state of a delivery -> the protocol's word for how it went
OUTCOMES = {"delivered": "delivered", "retrying": "retrying", "dead": "dead-lettered",
            "waiting": "retrying"}  # fmt: skip


def _event_id(seen: Seen, judged: Judged) -> str | None:
    """Only what was signed names an event for sure; a stranger could take another's name."""
    if not seen.it.dedup_enabled or judged.event_id is None:
        return None
    return f"{'signed' if judged.verified else 'unsigned'}:{judged.event_id}"


def parsed(body: bytes) -> Any:
    """JSON, or the text of anything else."""
    if not too_deep(body):
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return body.decode("utf-8", "replace")


ENDPOINTS = (
    Endpoint(
        method="POST", path=f"{INGEST}/{{subscription_id}}", call=ingest, public=True, status=202,
        largest=LARGEST, errors=(404, 409), body=dict[str, Any], knows_again=True,
        summary="What starts a run, signed with the subscription's secret",
    ),
)  # fmt: skip
