"""moot serve and moot dev: one banner, readable logs, one sentence when it cannot start."""

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moot.core.workflows.yaml import compile_yaml
from moot.store.sqlite.errors import StoreBusy
from moot.store.sqlite.open import WriteLock
from tests.support.cli.commands import Cli
from tests.support.cli.terminal import PATIENCE, Person
from tests.support.servers import ServerProcess, server_environment


def test_the_banner_names_the_place_of_the_key_and_not_the_key(host: ServerProcess) -> None:
    banner = (host.folder / "banner.txt").read_text()
    assert host.url in banner
    assert "moot.db.key" in banner
    assert host.key not in banner
    assert host.key not in host.log.read_text()
    mode = stat.S_IMODE(Path(f"{host.database}.key").stat().st_mode)
    assert mode == 0o600


def test_a_second_server_on_the_same_file_is_told_who_has_it(
    moot: Cli, host: ServerProcess
) -> None:
    done = moot("serve", "--port", "0")
    assert done.code == 1
    assert done.err.count("\n") == 1
    pid = host.process.pid
    assert f"moot.db is in use by another Moot (process {pid}, {host.url})" in done.err
    assert f"kill {pid}" in done.err


def test_a_taken_port_is_refused(alone: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = alone("serve", "--port", taken.getsockname()[1])
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "--port" in done.err
    assert not (alone.folder / "moot.db").exists()


def test_a_wrong_setting_is_named(alone: Cli) -> None:
    done = alone("serve", MOOT_PORT="many")
    assert done.code == 2
    assert "port" in done.err
    assert alone("serve", "--workflows", "nowhere").code == 2
    assert alone("serve", "--nodes", "nowhere.py").code == 2
    assert alone("serve", "a.db", "--database", "b.db").code == 2
    lost = alone("serve", "nodir/x.db")
    assert (lost.code, "there is no folder nodir" in lost.err) == (2, True)


def test_a_broken_node_file_stops_the_start_in_a_sentence(alone: Cli) -> None:
    (alone.folder / "nodes.py").write_text("oh no")
    done = alone("serve", "--port", "0", "--nodes", "nodes.py")
    assert done.code == 1
    assert "nodes.py cannot be loaded" in done.err


def test_a_workflow_file_with_a_mistake_is_a_log_line_not_an_end(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "bad.yaml").write_text("workflow: bad\nsteps:\n  - dely: 1s\n")
    server = ServerProcess(tmp_path, ["--workflows", "flows", "--log-json"], server_environment())
    assert server.stop() == 0
    [line] = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert line["level"] == "warning"
    assert "bad.yaml:3" in line["message"]


def test_a_server_on_any_port_is_found_by_its_file_until_it_stops(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, [], server_environment())
    place = tmp_path / "moot.db.url"
    assert place.read_text().strip() == server.url
    assert Cli(tmp_path)("api", "GET", "/healthz").code == 0
    assert server.stop() == 0
    assert not place.exists()


def test_dev_starts_again_when_a_file_changes_and_says_what(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    flow = tmp_path / "flows" / "a.yaml"
    flow.write_text("workflow: a\nsteps: [{delay: 1ms}]")
    words = ["dev", "--port", "0", "--workflows", "flows"]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "moot.cli", *words], cwd=tmp_path, text=True,
        env=server_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        flow.write_text("workflow: b\nsteps: [{delay: 1ms}]")
        assert process.stdout.readline() == "flows/a.yaml changed: starting again\n"
        assert process.stdout.readline() == first
        assert "b\t1.0.0" in Cli(tmp_path)("flow", "list").out
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert Cli(tmp_path)("api", "GET", "/healthz").code == 6


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_the_server_of_dev_goes_with_whoever_started_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "moot.cli", "dev", "--port", "0"], cwd=tmp_path, text=True,
        env=server_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert "Ctrl-C stops" in process.stdout.readline()
        process.send_signal(number)
        # the child has the other end of this pipe, too: it ends with the last of them
        assert "Traceback" not in process.stdout.read()
    let_go(tmp_path / "moot.db")


def test_the_server_of_a_demo_goes_with_its_terminal(alone: Cli) -> None:
    me = Person(alone.folder, "demo", MOOT_DEMO_WPS="20")
    me.until(r"^ 0 you  Should a 4-person")
    me.leave(hang_up=True)
    let_go(alone.folder / "moot-demo.db")


def let_go(database: Path) -> None:
    """Until no server has the file: of a process that ends, this is not the first to be closed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            WriteLock(database).release()
            return
        except StoreBusy:
            time.sleep(0.05)
    pytest.fail(f"{database} is still in use")


# -- peers -----------------------------------------------------------------------------------------


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
