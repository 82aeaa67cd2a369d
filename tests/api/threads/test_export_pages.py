"""Long threads leave in pieces of a size, and the pieces come to the same whatever their size."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from moot.api.threads import export
from moot.testing import Bench

#: what begins and ends lines, and what Markdown does not show at an end
SAID = ("# A heading", "two\nlines", "blank ends \n \n", "<b>&", {"a": [1, None]}, "long " * 500)
FORMS = ("md", "html", "json")
LARGEST = 65_536


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


@pytest.fixture(scope="module")
def thread(bench: Bench) -> str:
    """Some hundred turns, with what else is told of."""
    made = bench.client.threads.begin("Long")
    for role in ("clerk", "cook"):
        made.invite("rex", profile={"role": role})
    for number in range(50):
        for each in SAID:
            made.say(each)
        made.say(f"{number}", speaker="host:rex")
    made.uninvite("rex")
    return str(made.id)


def sent(bench: Bench, thread: str, form: str) -> list[bytes]:
    """The pieces of the answer, as they are handed on."""
    hosting, pieces = bench.hosting, list[bytes]()
    scope = {
        "type": "http", "method": "GET", "path": f"/v1/host/moot/threads/{thread}/export",
        "raw_path": f"/v1/host/moot/threads/{thread}/export".encode(),
        "query_string": f"format={form}".encode(), "client": ("127.0.0.1", 1),
        "headers": [(b"authorization", f"Bearer {hosting.key}".encode())],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        assert message.get("status", 200) == 200
        pieces.append(message.get("body", b""))

    hosting.loop.call(hosting.app(scope, receive, send))
    return [piece for piece in pieces if piece]


@pytest.mark.parametrize("form", FORMS)
def test_an_export_is_sent_in_pieces_of_which_none_is_large(
    bench: Bench, thread: str, form: str
) -> None:
    pieces = sent(bench, thread, form)
    most = LARGEST + max(len(str(each)) for each in SAID) * 2
    assert len(pieces) > 3 and max(map(len, pieces)) < most, [len(each) for each in pieces]


@pytest.mark.parametrize("form", FORMS)
def test_the_pieces_come_to_the_same_whatever_their_size(
    bench: Bench, thread: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = b"".join(sent(bench, thread, form))
    for page, piece in ((1, 1), (7, 1000), (100_000, 10**9)):
        monkeypatch.setattr(export, "PAGE", page)
        monkeypatch.setattr(export, "PIECE", piece)
        assert b"".join(sent(bench, thread, form)) == usual
    assert usual.endswith({"md": b"sent rex away*\n", "html": b"</html>\n", "json": b"]}"}[form])
