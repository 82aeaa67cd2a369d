"""Server-sent events, cut anywhere, within a size."""

import pytest

from moot.wire.sse import FrameTooLarge, SseFrame, SseParser

STREAM = (
    b": hello\n\nretry: 1500\n\nid: 7\nevent: run.started\ndata: {\ndata: }\n\n"
    b"event: speech.delta\r\ndata:words\r\n\r\nid: a\x00b\ndata: x\nunknown: y\n\nevent: empty\n\n"
)
FRAMES = [
    SseFrame("run.started", b"{\n}", "7"), SseFrame("speech.delta", b"words"), SseFrame("", b"x"),
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    parser = SseParser(1000)
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [frame for piece in pieces for frame in parser.take(piece)] == FRAMES
    assert (parser.comments, parser.retry_s) == (1, 1.5)


@pytest.mark.parametrize("pieces", [[b"data: " + b"x" * 99], [b"data: " + b"x" * 60 + b"\n"] * 2])
def test_a_frame_that_does_not_end_is_refused(pieces: list[bytes]) -> None:
    parser = SseParser(100)
    with pytest.raises(FrameTooLarge):
        for piece in pieces:
            parser.take(piece)


def test_many_frames_may_be_larger_than_one() -> None:
    parser = SseParser(100)
    assert len(parser.take((b"data: " + b"x" * 60 + b"\n\n") * 50)) == 50
