"""A provider on this machine: speaks the two wire formats, and misbehaves as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """How one request is answered; by itself two words and a good end."""

    words: list[str] = field(default_factory=lambda: ["Good ", "day."])
    thoughts: list[str] = field(default_factory=list)
    #: name -> JSON text of its arguments, sent in splinters
    calls: dict[str, str] = field(default_factory=dict)
    refusal: str | None = None
    #: in our words: end, length, tool_calls, refusal
    finish: str = "end"
    tokens: tuple[int, int] = (11, 2)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] = field(default_factory=dict)
    #: after this many words the connection is cut
    cut_after: int | None = None
    #: after the first word comes something that is not JSON, or an error
    garbage: bool = False
    error_event: dict[str, Any] | None = None
    #: nothing at all is sent before this is set
    wait_for: asyncio.Event | None = None
    #: the same, for who waits beside the loop
    pause: Callable[[], Any] | None = None
    #: seconds between one piece and the next
    between: float = 0.0
    #: put into every chunk of a chat, into its first delta, and in the place of the usage
    chunk: dict[str, Any] = field(default_factory=dict)
    delta: dict[str, Any] = field(default_factory=dict)
    usage: Any = field(default_factory=dict)


@dataclass
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class StandIn:
    """Answers requests with the replies it was given, one after the other; then the last again."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []
        self.replies: list[Reply] = [Reply()]

    def will(self, *replies: Reply) -> None:
        self.replies = list(replies)

    async def replying(self, asked: "Asked") -> Reply:
        return self.reply_to(asked)

    def reply_to(self, asked: "Asked") -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await _read(reader):
                self.asked.append(asked)
                if not await _answer(writer, asked, await self.replying(asked)):
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def stand_in() -> AsyncIterator[StandIn]:
    provider = StandIn(0)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (row.partition(": ") for row in rest)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(line.split()[1], headers, json.loads(body or b"{}"))


def _refused(asked: Asked) -> str | None:
    """What the messages API does not take, in its words."""
    if "completions" in asked.path:
        return None
    blocks = [
        block
        for message in asked.body.get("messages", [])
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    spoken_of = any(block.get("type") in ("tool_use", "tool_result") for block in blocks)
    if spoken_of and not asked.body.get("tools"):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools."
    return None


async def _answer(writer: asyncio.StreamWriter, asked: Asked, reply: Reply) -> bool:
    """Whether the connection goes on."""
    if said := _refused(asked):
        reply = Reply(status=400, error={"type": "invalid_request_error", "message": said})
    if reply.wait_for is not None:
        await reply.wait_for.wait()
    if reply.pause is not None:
        await asyncio.to_thread(reply.pause)
    if reply.status != 200:
        body = json.dumps({"type": "error", "error": reply.error}).encode()
        _head(writer, reply, "application/json", f"content-length: {len(body)}")
        writer.write(body)
        await writer.drain()
        return True
    _head(writer, reply, "text/event-stream", "transfer-encoding: chunked")
    frames = _chat(asked, reply) if "completions" in asked.path else _messages(asked, reply)
    for frame in frames:
        if frame is None:
            writer.transport.abort()
            return False
        writer.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        await writer.drain()
        if reply.between:
            await asyncio.sleep(reply.between)
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


def _head(writer: asyncio.StreamWriter, reply: Reply, kind: str, length: str) -> None:
    more = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    writer.write(
        f"HTTP/1.1 {reply.status} X\r\ncontent-type: {kind}\r\n{length}\r\n{more}\r\n".encode()
    )


def _halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _chat(asked: Asked, reply: Reply) -> list[bytes | None]:
    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return data({"choices": [choice], **more})

    def data(body: dict[str, Any]) -> bytes:
        whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                 "model": f"{asked.body['model']}-0613", **body, **reply.chunk}  # fmt: skip
        return b"data: " + json.dumps(whole).encode() + b"\n\n"

    frames: list[bytes | None] = [chunk({"role": "assistant", "content": "", **reply.delta})]
    frames += [chunk({"reasoning_content": thought}) for thought in reply.thoughts]
    for number, word in enumerate(reply.words):
        if number == reply.cut_after:
            return [*frames, None]
        frames.append(chunk({"content": word}))
        if reply.garbage:
            return [*frames, b"data: {this is no JSON\n\n"]
        if reply.error_event:
            return [
                *frames,
                b"data: " + json.dumps({"error": reply.error_event}).encode() + b"\n\n",
            ]
    if reply.refusal:
        frames += [chunk({"refusal": half}) for half in _halves(reply.refusal)]
    for index, (name, arguments) in enumerate(reply.calls.items()):
        head = {"index": index, "id": f"call_{index}", "type": "function",
                "function": {"name": name, "arguments": ""}}  # fmt: skip
        frames.append(chunk({"tool_calls": [head]}))
        frames += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
            for half in _halves(arguments)
        ]
    words = {"end": "stop", "refusal": "stop" if reply.refusal else "content_filter"}
    frames.append(chunk({}, words.get(reply.finish, reply.finish)))
    spent = {"prompt_tokens": reply.tokens[0], "completion_tokens": reply.tokens[1],
             "total_tokens": sum(reply.tokens)}  # fmt: skip
    if reply.usage is None:
        return [*frames, b"data: [DONE]\n\n"]
    spent |= reply.usage
    return [*frames, data({"choices": [], "usage": spent}), b"data: [DONE]\n\n"]


def _messages(asked: Asked, reply: Reply) -> list[bytes | None]:
    def event(kind: str, **body: Any) -> bytes:
        whole = json.dumps({"type": kind, **body})
        return f"event: {kind}\ndata: {whole}\n\n".encode()

    def block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
        begun = event("content_block_start", index=index, content_block=start)
        said = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        return [begun, *said, event("content_block_stop", index=index)]

    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
               "model": f"{asked.body['model']}-0613", "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": reply.tokens[0], "output_tokens": 1}}  # fmt: skip
    frames: list[bytes | None] = [event("message_start", message=message), event("ping")]
    if reply.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": one} for one in reply.thoughts]
        frames += block(0, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
    words = [{"type": "text_delta", "text": word} for word in reply.words]
    text = block(1, {"type": "text", "text": ""}, words)
    if reply.cut_after is not None:
        return [*frames, *text[: 1 + reply.cut_after], None]
    if reply.garbage:
        broken = b"event: content_block_delta\ndata: {this is no JSON\n\n"
        return [*frames, *text[:2], broken]
    if reply.error_event:
        return [*frames, *text[:2], event("error", error=reply.error_event)]
    frames += text if words else []
    for index, (name, arguments) in enumerate(reply.calls.items(), start=2):
        splinters = [{"type": "input_json_delta", "partial_json": h} for h in _halves(arguments)]
        start = {"type": "tool_use", "id": f"call_{index - 2}", "name": name, "input": {}}
        frames += block(index, start, splinters)
    reasons = {"end": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    delta: dict[str, Any] = {"stop_reason": reasons.get(reply.finish, reply.finish)}
    if reply.refusal:
        delta["stop_details"] = {"type": "refusal", "explanation": reply.refusal}
    spent = {"output_tokens": reply.tokens[1]}
    return [*frames, event("message_delta", delta=delta, usage=spent), event("message_stop")]
