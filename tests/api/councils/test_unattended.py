"""The server drives a council: who convened it may go away, and many go on side by side."""

import json
import socket
import threading
from urllib.parse import urlsplit

from tests.support.api.council_hall import Hall
from tests.support.model_provider import Reply
from tests.support.provider_project import Call, sensible

POLICY = {"mode": "round-robin", "rounds": 2, "vote": True, "close": "moderator"}


def test_a_council_ends_though_who_convened_it_hung_up_in_the_middle(hall: Hall) -> None:
    heard, go_on = threading.Event(), threading.Event()

    def answer(call: Call) -> Reply:
        if call.number == 3:
            heard.set()
            go_on.wait(60)
        return sensible(call)

    hall.models.answering = answer
    asked = {"question": "June?", "participants": ["ada", "bo", "mo"], "moderator": "mo",
             "policy": POLICY}  # fmt: skip
    address = urlsplit(hall.server.url)
    with socket.create_connection((address.hostname, address.port)) as line:
        body = json.dumps(asked).encode()
        head = (
            f"POST /v1/host/moot/councils HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer"
            f" {hall.server.key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode() + body)
        answered = b""
        while not answered.endswith(b"}"):
            answered += line.recv(4096)
        run_id = json.loads(answered.partition(b"\r\n\r\n")[2])["runId"]
        stream = f"GET /v1/host/moot/threads/{run_id}/stream HTTP/1.1\r\nHost: x\r\n"
        line.sendall(f"{stream}Authorization: Bearer {hall.server.key}\r\n\r\n".encode())
        assert line.recv(4096)
        assert heard.wait(60)
    go_on.set()
    hall.until(run_id, lambda floor: floor["phase"] == "over")
    assert hall.ask("GET", f"/v1/runs/{run_id}")["status"] == "completed"
    assert [speaker for speaker, _ in hall.said(run_id)] == [
        *["host:ada", "host:bo"] * 2, "host:mo", "host:mo"
    ]  # fmt: skip


def test_many_councils_go_on_side_by_side_and_nobody_says_anothers_words(hall: Hall) -> None:
    def answer(call: Call) -> Reply:
        question = call.heard[0][1]
        return Reply(words=[f"{call.agent} on {question}"])

    hall.models.answering = answer
    policy = {"mode": "round-robin", "rounds": 2, "blind": True}
    runs = {
        hall.convene("ada", "bo", "cy", question=f"Q{number}?", policy=policy): number
        for number in range(20)
    }
    for run_id, number in runs.items():
        hall.until(run_id, lambda floor: floor["phase"] == "over")
        said = hall.said(run_id)
        assert len(said) == 6
        assert all(content.endswith(f" on Q{number}?") for _, content in said)
    assert len(hall.models.calls) == 20 * 6
