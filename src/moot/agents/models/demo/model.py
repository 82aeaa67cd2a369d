"""The demo model as a model: it streams, counts, follows a script, and fails when told to."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from moot.agents.models.config import Fail, Line
from moot.agents.models.demo import closing
from moot.agents.models.demo.choice import Draw
from moot.agents.models.demo.scene import Scene, scene_of
from moot.agents.models.demo.structured import shaped
from moot.agents.models.demo.turn import turn
from moot.agents.models.protocol import (
    Begun,
    ModelRequest,
    Piece,
    Reason,
    Refusal,
    Stop,
    Text,
    ToolCall,
    Usage,
)
from moot.agents.models.retry import Wait
from moot.core.errors.models import (
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
)

NAME = "demo"
REFUSAL = "I would rather not answer that."
LIMIT_WAIT_S = 0.2
#: turns whose failed attempts are remembered
MOST_COUNTED = 1024

_TOKENS = re.compile(r"\w+|[^\w\s]")


class _Options(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request may tell the demo model."""

    script: list[str | Line] = []
    fail: Fail | None = None


class DemoModel:
    """Says something sensible offline. The same request gets the same words."""

    provider = NAME

    def __init__(
        self,
        script: Sequence[str | Line] = (),
        fail: Fail | None = None,
        wps: float = 0,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self._script, self._fail = list(script), fail
        self._pause_s = 1 / wps if wps > 0 else 0.0
        self._wait = wait
        self._failed: OrderedDict[tuple[str, str, int], int] = OrderedDict()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        options = _options(request)
        scene = scene_of(request)
        line = _scripted(options.script or self._script, scene, request)
        fail = self._failing(options.fail or self._fail, scene)
        mark = Draw(scene.me, scene.context.conversation_id, scene.context.turn_index).mark()
        self._fail_at_once(fail)
        yield Begun(model=NAME, response_id=f"demo_{mark}")
        if fail == "refusal":
            line = Line(refusal=REFUSAL)
        elif fail == "bad_json":
            line = Line(say='{"vote": "yes", "reason": ')
        text, reason = _cut(line.refusal or line.say or "", request)
        words = re.findall(r"\S+\s*|\s+", text)
        kind = Refusal if line.refusal else Text
        for number, word in enumerate(words):
            if fail == "disconnect" and number >= len(words) // 2:
                raise ModelDisconnected("The demo model was told to break off in the middle.")
            if self._pause_s:
                await self._wait(self._pause_s)
            yield kind(word)
        for piece in _ending(line, reason, request, text, mark):
            yield piece

    async def aclose(self) -> None:
        """There is nothing to release."""

    def _failing(self, fail: Fail | None, scene: Scene) -> str | None:
        """The kind of failure this attempt has, if any."""
        if fail is None or fail.turn not in (None, scene.round + 1):
            return None
        turn_name = (scene.me, scene.context.conversation_id, scene.round)
        count = self._failed.get(turn_name, 0)
        if fail.times is not None and count >= fail.times:
            return None
        self._failed[turn_name] = count + 1
        if len(self._failed) > MOST_COUNTED:
            self._failed.popitem(last=False)
        return fail.kind

    @staticmethod
    def _fail_at_once(kind: str | None) -> None:
        if kind == "timeout":
            raise ModelTimeout("The demo model was told to be too slow.")
        if kind == "rate_limit":
            raise ModelRateLimited("The demo model was told to be busy.", LIMIT_WAIT_S)
        if kind == "error":
            raise ModelError("The demo model was told to fail.")


def _options(request: ModelRequest) -> _Options:
    try:
        return msgspec.convert(request.options, _Options)
    except msgspec.ValidationError as error:
        raise ModelBadRequest(f"demo does not take these options: {error}") from None


def _scripted(script: Sequence[str | Line], scene: Scene, request: ModelRequest) -> Line:
    """The line of the script for this turn; after its end the model speaks for itself."""
    if scene.round < len(script):
        line = script[scene.round]
        return Line(say=line) if isinstance(line, str) else _written(line)
    if request.response_format is not None:
        value = shaped(request.response_format.schema, scene)
        return Line(say=msgspec.json.encode(value).decode())
    spoken = {"turn": turn, "synthesis": closing.synthesis, "vote": closing.spoken_vote}
    return Line(say=spoken[scene.context.purpose](scene))


def _written(line: Line) -> Line:
    if line.json is None:
        return line
    return msgspec.structs.replace(line, say=msgspec.json.encode(line.json).decode())


def _cut(text: str, request: ModelRequest) -> tuple[str, Reason]:
    """The text up to where it has to end, and why it ends."""
    for word in filter(None, request.stop):
        text = text.partition(word)[0]
    most = request.max_output_tokens
    found = list(_TOKENS.finditer(text))
    if most is not None and len(found) > most:
        return text[: found[most].start()].rstrip(), "length"
    return text, "end"


def _ending(line: Line, reason: Reason, request: ModelRequest, text: str, mark: str) -> list[Piece]:
    pieces: list[Piece] = []
    if line.tool is not None:
        arguments = msgspec.json.encode(line.arguments).decode()
        pieces.append(ToolCall(id=f"call_{mark}", name=line.tool, arguments=arguments))
        reason = "tool_calls"
    if line.refusal:
        reason = "refusal"
    asked = sum(tokens(_words_of(message.content)) for message in request.messages)
    return [*pieces, Usage(input_tokens=asked, output_tokens=tokens(text)), Stop(reason)]


def _words_of(content: Any) -> str:
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def tokens(text: str) -> int:
    """Words and marks, which is near enough to be useful and the same everywhere."""
    return len(_TOKENS.findall(text))
