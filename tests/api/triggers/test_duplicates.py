"""One thing sent many times at once is one run. Few times here; ``make storm`` is the promise.

Under an Idempotency-Key the first answer is given again before anything is looked at, so a webhook
is what is sent here: it is known by its own id alone. Items past that layer: test_deliveries.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import pytest

from tests.api.roster.test_items import SUBSCRIPTIONS, signed
from tests.support.api.answers import AnswerChecks
from tests.support.api.caller import PATIENCE, Api, definition
from tests.support.servers import ServerProcess, server_environment

TIMES = 1000 if os.environ.get("MOOT_LONG") == "1" else 60
AT_ONCE = 50


@pytest.fixture(scope="module")
def desk(answers: AnswerChecks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    process = ServerProcess(tmp_path_factory.mktemp("storm"), [], server_environment())
    with Api(process.url, process.key, answers) as found:
        found.register(definition("takes", [{"id": "a", "typeId": "core.noop"}]))
        yield found
    process.stop()


def test_a_webhook_sent_many_times_at_once_is_one_run(desk: Api) -> None:
    made = desk.post(SUBSCRIPTIONS, {"source": "webhook", "workflowId": "takes"}).json()

    def send(_: int) -> httpx.Response:
        """Until it is taken: only so many are, in a second."""
        deadline = time.monotonic() + PATIENCE
        while True:
            sent = signed(desk, made["binding"], b'{"n": 1}', "msg_the_same_0123456")
            if sent.status_code != 429 or time.monotonic() > deadline:
                return sent
            time.sleep(float(sent.headers["retry-after"]))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(TIMES)))
    outcomes = [answer.json()["outcome"] for answer in answers]
    assert (outcomes.count("delivered"), outcomes.count("duplicate")) == (1, TIMES - 1)
    assert len({answer.json()["runId"] for answer in answers}) == 1
    path = f"{SUBSCRIPTIONS}/{made['subscription']['subscriptionId']}"
    assert desk.get(path).json()["counts"] == {"delivered": 1}
    assert len(desk.get("/v1/host/moot/runs", params={"workflow": "takes"}).json()["runs"]) == 1


def test_an_item_pushed_again_and_again_under_its_key_is_one_run(desk: Api) -> None:
    path = "/v1/host/moot/queues/once"
    desk.register(definition("takes-items", [{"id": "a", "typeId": "core.noop"}]))
    assert desk.call("PUT", path, json={"workflowId": "takes-items"}).status_code == 200
    headers = {"Idempotency-Key": "mail-8812"}
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda _: desk.post(f"{path}/items", {"n": 1}, headers=headers), range(40))
        )
    assert len({(each.json()["itemId"], each.json()["runId"]) for each in answers}) == 1
    assert desk.get(path).json()["items"] == {"delivered": 1}
