"""moot thread: what it sends and prints, against a stand-in for the server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.support.cli.commands import Cli

RUN = "run_" + "a" * 20
THREAD = f"{RUN}:talk:1"
BUSY = "run_" + "c" * 20
BASE = f"/v1/host/moot/threads/{THREAD}"


#: what a client may rely on in every thread
VIEW = {
    "threadId": THREAD, "runId": RUN, "nodeId": "talk", "title": "Tea", "open": True, "turns": 1,
    "turnCount": 2, "lastSequence": 4, "createdAt": "2026-01-01T00:00:00Z", "createdBy": "user",
    "updatedAt": "2026-01-01T00:00:00Z",
    "state": {
        "allow_agent_mentions": False, "discussion": False, "done": [], "invited_auto": False,
        "muted": [], "mutedUntil": {}, "participants": {"invited": []}, "paused": False,
        "prodded": [], "ttl_until": None,
    },
}  # fmt: skip


class StandIn(BaseHTTPRequestHandler):
    """Knows one run with one thread, and remembers what it was sent."""

    sent: list[tuple[str, str, bytes]] = []

    def do_GET(self) -> None:
        self._note()
        if self.path.startswith(f"{BASE}/export?format="):
            self._answer(200, f"minutes as {self.path.partition('=')[2]}\n".encode())
        elif self.path == f"/v1/host/moot/threads/{RUN}":
            self._json(200, VIEW)
        elif self.path == f"/v1/host/moot/threads/{BUSY}":
            details = {"threadIds": [f"{BUSY}:a:1", f"{BUSY}:b:1"]}
            self._json(400, {"error": "validation_error", "message": "x", "details": details})
        else:
            self._json(404, {"error": "not_found", "message": "There is no such thing."})

    def do_POST(self) -> None:
        body = self._note()
        if self.path == "/v1/host/moot/threads:import" and b"again" in body:
            self._json(409, {"error": "conflict", "message": "The run is here already."})
        elif self.path == "/v1/host/moot/threads:import":
            self._json(
                201, {"runId": RUN, "threadId": THREAD, "status": "waiting-input", "url": "/x"}
            )
        else:
            self._json(200, {**VIEW, "open": False})

    def _note(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.sent.append((self.command, self.path, body))
        return body

    def _json(self, status: int, body: Any) -> None:
        self._answer(status, json.dumps(body).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


class Talking(Cli):
    url = ""

    def __call__(self, *words: Any, **given: Any) -> Any:
        return super().__call__(*words, **given, MOOT_URL=self.url, MOOT_KEY="hk_x")

    def sent(self) -> bytes:
        """The newest body."""
        return StandIn.sent[-1][2]


@pytest.fixture
def moot(alone: Cli) -> Iterator[Talking]:
    StandIn.sent = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    serving = threading.Thread(target=server.serve_forever, args=[0.01])
    serving.start()
    cli = Talking(alone.folder)
    cli.url = f"http://127.0.0.1:{server.server_port}"
    yield cli
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.mark.parametrize("form", ["md", "html", "json", "bundle"])
def test_an_export_goes_to_stdout_as_it_is(moot: Talking, form: str) -> None:
    for name in (THREAD, RUN):
        assert moot("thread", "export", name, "-f", form).out == f"minutes as {form}\n"
    assert moot("thread", "export", THREAD, "--json").out == "minutes as json\n"
    assert moot("thread", "export", THREAD).out == "minutes as md\n"


def test_an_export_goes_to_a_file(moot: Talking) -> None:
    done = moot("thread", "export", THREAD, "-o", "minutes.md")
    assert (done.code, done.out) == (0, "")
    assert (moot.folder / "minutes.md").read_text() == "minutes as md\n"
    assert moot("thread", "export", THREAD, "-o", "no/where.md").code == 2


def test_an_export_writes_over_a_file_only_when_told_to(moot: Talking) -> None:
    (moot.folder / "mine.md").write_text("mine")
    refused = moot("thread", "export", THREAD, "-o", "mine.md")
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert (moot.folder / "mine.md").read_text() == "mine"
    assert moot("thread", "export", THREAD, "-o", "mine.md", "--force").code == 0
    assert (moot.folder / "mine.md").read_text() == "minutes as md\n"


def test_what_is_not_there_is_not_found(moot: Talking) -> None:
    for name in (f"run_{'b' * 20}", f"run_{'b' * 20}:talk:1"):
        assert moot("thread", "export", name).code == 5
    assert moot("thread", "export", THREAD, "-f", "pdf").code == 2
    several = moot("thread", "export", BUSY)
    assert (several.code, f"{BUSY}:a:1, {BUSY}:b:1" in several.err) == (2, True)


def test_a_bundle_is_sent_byte_for_byte(moot: Talking) -> None:
    (moot.folder / "x.bundle").write_bytes(b'{"bundle": "\xc3\xa9"}\n')
    assert moot("thread", "import", "x.bundle").out == f"{THREAD}\n"
    assert moot.sent() == b'{"bundle": "\xc3\xa9"}\n'
    answer = json.loads(moot("thread", "import", "-", "--json", stdin="{}").out)
    assert (answer["runId"], answer["threadId"]) == (RUN, THREAD)
    again = moot("thread", "import", "-", stdin='"again"')
    assert (again.code, "here already" in again.err) == (1, True)
    assert moot("thread", "import", "nowhere.bundle").code == 2


def test_a_close_without_a_word_sends_none(moot: Talking) -> None:
    assert f"{THREAD} closed." in moot("thread", "close", RUN).out
    assert StandIn.sent[-1] == ("POST", f"{BASE}:close", b"{}")


def test_a_close_carries_the_whole_decision(moot: Talking) -> None:
    done = moot(
        "thread", "close", THREAD, "--json", "--decision", "Pilot +8 %", "--vote", "ada=yes",
        "--vote", "bo=no", "--dissent", "bo=too early = risky", "--cite", 6, "--cite", 9,
        "--action", "cy: measure churn", "--action", "dee: has: two colons", "--action", "rest",
        "--action", "see the log: twice",
    )  # fmt: skip
    assert done.code == 0
    assert json.loads(done.out) == {**VIEW, "open": False}
    assert json.loads(moot.sent()) == {
        "decision": {
            "text": "Pilot +8 %",
            "votes": [{"by": "ada", "vote": "yes"}, {"by": "bo", "vote": "no"}],
            "dissent": [{"by": "bo", "text": "too early = risky"}],
            "citedTurns": [6, 9],
            "actionItems": [
                {"text": "measure churn", "owner": "cy"},
                {"text": "has: two colons", "owner": "dee"},
                {"text": "rest"},
                {"text": "see the log: twice"},
            ],
        }
    }


@pytest.mark.parametrize(
    "words",
    [("--vote", "ada=yes"), ("--cite", "1"), ("--decision", "x", "--vote", "ada"),
     ("--decision", "x", "--dissent", "=why")],
)  # fmt: skip
def test_half_a_decision_is_a_usage_mistake(moot: Talking, words: tuple[str, ...]) -> None:
    assert moot("thread", "close", THREAD, *words).code == 2
    assert all(method == "GET" for method, _, _ in StandIn.sent)
