"""What discovery claims of standing agents, each tried on the host."""

from typing import Any

from tests.api.roster import test_handles, test_roster
from tests.support.api.caller import Api
from tests.support.api.questions import of, refused


def kept(api: Api, value: Any) -> None:
    """Read, projected onto the inventory, attributed; of one tenant alone."""
    assert value["supported"] is True and value["installScope"] == "tenant"
    test_roster.test_a_member_is_read_as_the_protocol_has_it(api)
    test_handles.test_a_member_is_asked_by_its_handle(api)
    other = api.with_key(api.new_key("roster-claims", tenant="roster-claims", admin=True))
    test_roster.test_anothers_member_looks_like_none(api, other)


def sources(api: Api, value: Any) -> None:
    """Each fires what is in a portfolio, as a delivery of its own."""
    assert value == sorted(set(value))
    for source in value:
        body = {"triggerSource": source, "asWorkItem": True}
        fired = api.post("/v1/host/sample/roster/fire", body).json()
        api.until(fired["runId"])
        [said] = of(api, fired["runId"], "roster.run.initiated")
        assert said["triggerSource"] == source
        assert said["triggerSubscriptionId"] == fired["triggerSubscriptionId"]
        [attempt] = of(api, fired["runId"], "trigger.delivery.attempted")
        assert attempt["subscriptionId"] == fired["triggerSubscriptionId"]
        assert api.events(fired["runId"])[0]["payload"]["trigger"]["source"] == source
    for source in {"schedule", "webhook", "queue", "email", "form"} - set(value):
        answer = api.post("/v1/host/sample/roster/fire", {"triggerSource": source})
        refused(answer, 501, "capability_not_provided")
