"""The seams for what comes in, of a host under trial."""

from tests.support.api.caller import Api
from tests.support.api.claims.agent_bridge import INGEST


def test_the_seam_tells_a_run_that_nobody_vouches_and_goes_nowhere_inside(api: Api) -> None:
    webhook = {"headers": {"Authorization": "x", "X-Event-Type": "y"}, "body": {"a": 1}}
    body = {"source": "webhook", "verification": {"mode": "none"}, "webhook": webhook}
    told = api.post(INGEST, body).json()
    api.published.trigger_event(told["triggerEvent"])
    assert told["triggerEvent"]["webhook"]["headers"] == {"x-event-type": "y"}
    assert told["deliveryEvent"]["eventId"] == told["triggerEvent"]["deliveryId"]
    inside = {**body, "attachmentUrl": "http://169.254.169.254/latest"}
    assert api.post(INGEST, inside).json()["ssrfRefused"] is True
