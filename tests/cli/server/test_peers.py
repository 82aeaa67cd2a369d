"""Other hosts on the command line: named with --peer, looked after by the doctor."""

import json

from moot.core.workflows.yaml import compile_yaml
from tests.support.cli.commands import Cli
from tests.support.servers import ServerProcess


def finding(done: str) -> dict[str, str]:
    return next(row for row in json.loads(done)["checks"] if row["check"] == "peers")


def test_the_doctor_asks_each_peer_and_shows_no_key(alone: Cli, host: ServerProcess) -> None:
    peers = {"MOOT_PEERS": f"lab={host.url},moon-1=http://127.0.0.1:1", "MOOT_PORT": "0"}
    keys = {"MOOT_PEER_LAB_KEY": host.key, "MOOT_PEER_MOON_1_KEY": "hk_of_the_moon"}
    done = alone("doctor", "--json", **peers, **keys)
    found = finding(done.out)
    assert found["result"] == "problem"
    assert f"lab answers at {host.url} and takes the key" in found["says"]
    assert "moon-1 does not answer at http://127.0.0.1:1" in found["says"]
    assert host.key not in done.out and "hk_of_the_moon" not in done.out


def test_the_doctor_says_which_key_is_missing_or_refused(alone: Cli, host: ServerProcess) -> None:
    peers = {"MOOT_PEERS": f"lab={host.url}", "MOOT_PORT": "0"}
    assert "MOOT_PEER_LAB_KEY" in finding(alone("doctor", "--json", **peers).out)["says"]
    wrong = alone("doctor", "--json", **peers, MOOT_PEER_LAB_KEY="wrong")
    assert "refuses the key" in finding(wrong.out)["says"]
    assert finding(alone("doctor", "--json", MOOT_PORT="0").out)["result"] == "ok"


def test_a_peer_that_cannot_be_is_refused_at_the_start(alone: Cli) -> None:
    for words in (["--peer", "lab"], ["--peer", "Lab=http://a"], ["--peer", "lab=ftp://a"]):
        done = alone("serve", *words)
        assert done.code == 2 and "peer" in done.err
    secret = alone("serve", "--peer", "lab=https://me:sesame@a.example")
    assert secret.code == 2 and "sesame" not in secret.err


def test_a_step_may_run_a_workflow_of_a_peer() -> None:
    found = compile_yaml("workflow: w\nsteps: [{id: far, run: lab/research}]\n", "w.yaml")
    [node] = [node for node in found["nodes"] if node["typeId"] == "core.subWorkflow"]
    assert node["config"]["workflowId"] == "lab/research"
