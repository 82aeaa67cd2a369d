"""Somebody who is told of events: a real HTTP server that answers as a test wants."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Told(NamedTuple):
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = self.body["event"]
        return found


class Receiver:
    """``answer`` gives the status of the next answer; with a redirect also where to."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.answer: Callable[[Told], int] = lambda told: 200
        self.location = ""
        self._news = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def until(self, seen: Callable[[list[Told]], Any], patience: float = 60.0) -> list[Told]:
        """Waits until what was told satisfies the test."""
        with self._news:
            if not self._news.wait_for(lambda: seen(self.told), patience):
                raise AssertionError(f"Told so far: {[told.event['type'] for told in self.told]}")
            return list(self.told)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                told = Told(self.path, {k.lower(): v for k, v in self.headers.items()}, raw)
                status = receiver.answer(told)
                with receiver._news:
                    receiver.told.append(told)
                    receiver._news.notify_all()
                self.send_response(status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing to the terminal."""

        return Handler
