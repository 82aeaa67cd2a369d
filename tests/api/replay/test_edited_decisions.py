"""A decision that somebody put in the place of a supervisor's: what comes of the fork later."""

from tests.api.replay.test_branches import diff, edited, place
from tests.api.replay.test_forks import fork, forked
from tests.api.replay.test_verify import check
from tests.support.api.caller import Api

SOURCE = "conformance-multi-agent-handoff"
DECIDED = "runOrchestrator.decided"
ONE_MORE = {"kind": "next-worker", "nextWorkerIds": ["conformance-noop"]}


def another(api: Api, run_id: str, nth: int) -> str:
    """A branch in which the nth decision hands work to one more worker."""
    at = place(api, run_id, DECIDED, nth)
    made = edited(api, run_id, fromSeq=at, edit={"decision": ONE_MORE})
    assert made.status_code == 201, made.text
    return str(api.until(made.json()["runId"], "completed")["runId"])


def test_a_replay_says_it_again_and_does_not_ask_the_plan(api: Api) -> None:
    branch = another(api, api.until(api.create(SOURCE), "completed")["runId"], 1)
    for from_seq in range(len(api.events(branch)) + 1):
        again = forked(api, branch, from_seq)
        assert api.types(again) == api.types(branch)
        assert diff(api, branch, again)["divergedAtSeq"] is None
        check(api, again)


def test_it_is_sound_in_forks_of_the_fork(api: Api) -> None:
    branch = another(api, api.until(api.create(SOURCE), "completed")["runId"], 1)
    for from_seq in range(place(api, branch, DECIDED, 1), len(api.events(branch)) + 1, 3):
        made = fork(api, branch, mode="branch", fromSeq=from_seq).json()["runId"]
        api.until(made, "completed")
        check(api, made)
    third = another(api, branch, 2)
    check(api, third)
    check(api, forked(api, third, 0))
