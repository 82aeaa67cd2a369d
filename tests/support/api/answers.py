"""Check every answer: by the project's own types, and by the published schemas if they are here."""

import json
from contextlib import suppress
from typing import Any

import msgspec

from moot.api.app import Router
from moot.conformance.routes import SEAMS
from moot.core.catalogue import CATALOGUE
from moot.core.events import decode
from moot.core.payloads.base import OpaquePayload
from moot.core.workflows.definition import parse_definition
from tests.support.api.published import Published, kind_of

#: types of events that no log of a run has
BESIDE_LOGS = {"state.snapshot", "ai.message.chunk", "trigger.subscription.state.changed"}
TYPES = BESIDE_LOGS.union(row.name for row in CATALOGUE)
ROUTER = Router(SEAMS)


def fits_one_of(document: Any, types: Any) -> None:
    """Raise unless the document is of the type, or of one of a tuple of types."""
    *others, last = types if isinstance(types, tuple) else (types,)
    for each in others:
        with suppress(msgspec.ValidationError):
            msgspec.convert(document, each)
            return
    msgspec.convert(document, last)


class AnswerChecks:
    """The checks that every answer of a host passes."""

    def __init__(self, published: Published | None = None) -> None:
        self._published = published

    def answer(self, method: str, path: str, status: int, media: str, body: bytes) -> None:
        """Every answer of every test of the API comes through here."""
        if method == "HEAD" or status in (204, 304):
            assert body == b"", f"{method} {path}: {status} with a body"
        elif status >= 400:
            assert media == "application/json", f"{method} {path}: {status} as {media!r}: {body!r}"
            self._refusal(path, status, json.loads(body))
        elif media == "application/json":
            self._success(method, path, status, json.loads(body))

    def error(self, document: Any) -> None:
        assert {"error", "message"} <= set(document) <= {"error", "message", "details"}, document
        assert document["error"] and document["message"], document
        if self._published is not None:
            self._published.error(document)

    def event(self, document: Any) -> None:
        assert document["type"] in TYPES, document["type"]
        if document["type"] not in BESIDE_LOGS and not document["runId"].startswith("sub_"):
            payload = decode(msgspec.json.encode(document)).payload
            assert not isinstance(payload, OpaquePayload), document
        if self._published is not None:
            self._published.event(document)

    def document(self, schema: str, document: Any) -> None:
        """Check a part of an answer that only a published schema describes."""
        if self._published is not None:
            self._published.document(schema, document)

    def _refusal(self, path: str, status: int, document: Any) -> None:
        about = document["error"]
        if status == 409 and path.startswith("/threads/") and isinstance(about, dict):
            assert set(about) == {"code", "message", "thread", "participant"}, about
        else:
            self.error(document)

    def _success(self, method: str, path: str, status: int, document: Any) -> None:
        methods, _ = ROUTER.find(path) or ({}, {})
        route = methods.get(method)
        if route is not None and route.status == status and route.answer is not None:
            fits_one_of(document, route.answer)
        kind = kind_of(path) if method == "GET" else None
        if kind == "events":
            for event in document["events"]:
                self.event(event)
        elif kind == "workflow":
            parse_definition(document)
        if kind is not None and self._published is not None:
            self._published.check(kind, document)
