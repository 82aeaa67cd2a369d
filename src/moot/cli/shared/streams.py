"""Follow a stream of the server across its restarts."""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from moot.cli.shared.client import TIMEOUT_SECONDS, Api, ServerUnreachable
from moot.cli.shared.errors import CommandError
from moot.client.http.attempts import LARGEST_FRAME
from moot.client.http.operation import PreparedCall
from moot.wire.sse import SseFrame, SseParser

RETRY_SECONDS = 0.2
#: status of a server that is stopping or starting
UNAVAILABLE = 503


class StreamFrame(NamedTuple):
    """One step of a stream.

    ``kind`` is ``event``, ``speech.*`` or ``presence``, and of the connection ``open``, ``quiet``
    (the server has nothing to report), ``ended``, ``lost``, ``back`` or ``trouble``.
    """

    kind: str
    data: Any = None


def follow_stream(
    api: Api, call: PreparedCall[Any], after: int, patience: float, deadline: float = float("inf")
) -> Iterator[StreamFrame]:
    """Yield each event after a sequence once, and the frames between them.

    Raise ServerUnreachable when a lost server does not come back within ``patience`` seconds.
    The stream has no end of its own: the caller stops at the last event, or after ``deadline``.
    """
    lost_at: float | None = None
    while True:
        try:
            for frame in _read_connection(api, call, after, deadline):
                if lost_at is not None:
                    lost_at = None
                    yield StreamFrame("back")
                if frame.kind == "event":
                    after = frame.data["sequence"]
                yield frame
        except ServerUnreachable:
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                yield StreamFrame("lost")
            if now - lost_at > patience and now < deadline:
                raise
        yield StreamFrame("ended")
        time.sleep(RETRY_SECONDS)


def _read_connection(
    api: Api, call: PreparedCall[Any], after: int, deadline: float
) -> Iterator[StreamFrame]:
    seconds = max(0.001, min(TIMEOUT_SECONDS, deadline - time.monotonic()))
    try:
        with api.open_stream(call, after, seconds) as pieces:
            yield StreamFrame("open")
            yield from _parse_frames(pieces)
    except CommandError as error:
        if error.status != UNAVAILABLE:
            raise


def _parse_frames(pieces: Iterator[bytes]) -> Iterator[StreamFrame]:
    parser = SseParser(LARGEST_FRAME)
    for piece in pieces:
        comments = parser.comments
        for frame in parser.take(piece):
            yield _read_frame(frame)
        if parser.comments > comments:
            yield StreamFrame("quiet")


def _read_frame(frame: SseFrame) -> StreamFrame:
    is_live = frame.event == "presence" or frame.event.startswith("speech.")
    return StreamFrame(frame.event if is_live else "event", json.loads(frame.data))
