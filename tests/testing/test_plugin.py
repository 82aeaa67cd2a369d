"""What pytest gets: the fixtures, recorded answers, and no way to a network."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moot.testing import offline
from moot.testing.plugin import bench, cassette

PLUGIN = ("-p", "moot.testing.plugin", "-p", "no:xdist", "-p", "no:cacheprovider")


def test_the_bench_of_a_project_knows_its_agents_and_flows(pytester: pytest.Pytester) -> None:
    pytester.makefile(
        ".toml", moot='[server]\nagents = "people"\n[models.big]\nurl = "http://x.test"\n'
    )
    pytester.makeini("[pytest]\n")
    folder = pytester.mkdir("people")
    (folder / "ada.md").write_text("---\nrole: skeptic\nmodel: big/one\n---\nYou doubt.\n")
    pytester.makepyfile(
        """
        def test_ada_speaks_though_her_model_is_far_away(bench):
            assert bench.ask("ada", "Well?").variables["text"]
            assert "ada" in {one.name for one in bench.client.agents.list().agents}
        """
    )
    pytester.runpytest_subprocess(*PLUGIN, "--moot-offline").assert_outcomes(passed=1)


def test_answers_are_recorded_once_and_played_back_offline(pytester: pytest.Pytester) -> None:
    """The model is a real SDK against a server of its own, which is gone the second time."""
    pytester.makepyfile(stand=STAND_IN)
    pytester.makefile(".toml", moot='[models.work]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n')
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(
        test_taped="""
        import stand, pytest

        def test_it(bench, cassette, request):
            if cassette.record:
                stand.serve(bench)
            bench.tape(cassette).agent("ada", "You doubt.", model="work")
            assert bench.ask("ada", "Well?").variables["text"] == "As recorded."
        """
    )
    missing = pytester.runpytest_subprocess(*PLUGIN, "--moot-offline")
    missing.assert_outcomes(failed=1)
    pytester.runpytest_subprocess(*PLUGIN, "--moot-record").assert_outcomes(passed=1)
    [tape] = (pytester.path / "cassettes").iterdir()
    assert tape.name == "test_taped.test_it.jsonl"
    assert json.loads(tape.read_text())["answer"]["text"] == "As recorded."
    pytester.runpytest_subprocess(*PLUGIN, "--moot-offline").assert_outcomes(passed=1)


#: an endpoint that talks like OpenAI, just enough for one answer
STAND_IN = """
import json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
import msgspec

class Answers(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        said = {"index": 0, "delta": {"role": "assistant", "content": "As recorded."}}
        for choice in (said, {"index": 0, "delta": {}, "finish_reason": "stop"}):
            body = json.dumps({**head, "choices": [choice]})
            self.wfile.write(f"data: {body}\\n\\n".encode())
        self.wfile.write(b"data: [DONE]\\n\\n")

    def log_message(self, *_):
        pass

def serve(bench):
    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    entry = bench._project.models["work"]
    url = f"http://127.0.0.1:{server.server_port}/v1"
    bench._project.models["work"] = msgspec.structs.replace(entry, url=url)
"""


def test_a_test_that_reaches_for_a_network_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(
        """
        import asyncio, socket, pytest

        @pytest.mark.parametrize("host", ["192.0.2.1", "example.org", "2001:db8::1"])
        def test_far(host):
            with pytest.raises(OSError, match="not this machine"):
                socket.create_connection((host, 80), 0.1)

        def test_far_by_asyncio():
            with pytest.raises(OSError, match="not this machine"):
                asyncio.run(asyncio.open_connection("192.0.2.1", 80))

        def test_near():
            with socket.create_server(("127.0.0.1", 0)) as door:
                socket.create_connection(door.getsockname()).close()
            socket.getaddrinfo("localhost", 80)
        """
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "--moot-offline")
    result.assert_outcomes(passed=5)


def test_the_refusal_can_be_lifted() -> None:
    told = (
        "import socket; from moot.testing import offline; offline.refuse_network()\n"
        "probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "try: probe.connect(('192.0.2.1', 9)); raise SystemExit(1)\n"
        "except offline.NetworkRefused: pass\n"
        "offline.refuse_network(False); probe.close()\n"
    )
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0


@pytest.mark.parametrize(
    ("host", "is_near"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("", True),
     (None, True), ("/run/s.sock", True), (b"localhost", True), ("10.0.0.1", False),
     ("example.org", False), (b"example.org", False), ("0.0.0.0", False), ("fe80::1%eth0", False)],
)  # fmt: skip
def test_what_is_near_is_loopback_only(host: object, is_near: bool) -> None:
    assert offline.is_local_host(host) is is_near


def test_the_fixtures_are_there_for_our_own_tests(request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue("bench").client.health().status == "ok"
    tape = request.getfixturevalue("cassette")
    assert tape.file == Path(__file__).parent / "cassettes" / (
        "test_plugin.test_the_fixtures_are_there_for_our_own_tests.jsonl"
    )
    assert not tape.record and bench is not None and cassette is not None and socket is not None
