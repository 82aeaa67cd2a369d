"""The demo model: streams text, follows a script, and fails on request."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence

import msgspec
from msgspec import Struct

from moot.agents.models.demo import turn
from moot.agents.models.demo.scene import Scene, SeededChoice, scene_from_request
from moot.agents.models.demo.structured import value_for_schema
from moot.agents.models.protocol import (
    AnswerStart,
    AnswerStop,
    ModelRequest,
    ModelToolCall,
    Piece,
    RefusalPiece,
    StopReason,
    TextPiece,
    TokenUsage,
)
from moot.agents.models.retry import Wait
from moot.config.models import DemoFailure, ScriptLine
from moot.core.errors.models import (
    ModelBadRequest,
    ModelDisconnected,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
)
from moot.core.text.fencing import content_text

NAME = "demo"
REFUSAL = "I would rather not answer that."
LIMIT_WAIT_S = 0.2
#: the most turns whose failed attempts are counted
MOST_COUNTED = 1024

_TOKENS = re.compile(r"\w+|[^\w\s]")


class _Options(Struct, frozen=True, forbid_unknown_fields=True):
    script: list[str | ScriptLine] = []
    fail: DemoFailure | None = None


class DemoModel:
    """Answers offline. The same request gets the same text."""

    provider = NAME

    def __init__(
        self,
        script: Sequence[str | ScriptLine] = (),
        fail: DemoFailure | None = None,
        wps: float = 0,
        wait: Wait = asyncio.sleep,
    ) -> None:
        self._script, self._fail = list(script), fail
        self._pause_s = 1 / wps if wps > 0 else 0.0
        self._wait = wait
        self._failed: OrderedDict[tuple[str, str, int], int] = OrderedDict()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        options = _options(request)
        scene = scene_from_request(request)
        line = _script_line(options.script or self._script, scene, request)
        fail = self._failure_kind(options.fail or self._fail, scene)
        context = scene.context
        mark = SeededChoice(scene.me, context.conversation_id, context.turn_index).mark()
        self._fail_at_once(fail)
        yield AnswerStart(model=NAME, response_id=f"demo_{mark}")
        if fail == "refusal":
            line = ScriptLine(refusal=REFUSAL)
        elif fail == "bad_json":
            line = ScriptLine(say='{"vote": "yes", "reason": ')
        text, reason = _cut(line.refusal or line.say or "", request)
        words = re.findall(r"\S+\s*|\s+", text)
        piece_type = RefusalPiece if line.refusal else TextPiece
        for number, word in enumerate(words):
            if fail == "disconnect" and number >= len(words) // 2:
                raise ModelDisconnected("The demo model was told to break off in the middle.")
            if self._pause_s:
                await self._wait(self._pause_s)
            yield piece_type(word)
        for piece in _last_pieces(line, reason, request, text, mark):
            yield piece

    async def aclose(self) -> None:
        """Do nothing."""

    def _failure_kind(self, fail: DemoFailure | None, scene: Scene) -> str | None:
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


def _script_line(
    script: Sequence[str | ScriptLine], scene: Scene, request: ModelRequest
) -> ScriptLine:
    """Return the line of the script for this turn. After the script the model writes its own."""
    if scene.round < len(script):
        line = script[scene.round]
        if isinstance(line, str):
            return ScriptLine(say=line)
        text = line.say if line.json is None else msgspec.json.encode(line.json).decode()
        return msgspec.structs.replace(line, say=text)
    if request.response_format is not None:
        value = value_for_schema(request.response_format.schema, scene)
        return ScriptLine(say=msgspec.json.encode(value).decode())
    writers = {"turn": turn.write_turn, "synthesis": turn.write_synthesis, "vote": turn.write_vote}
    return ScriptLine(say=writers[scene.context.purpose](scene))


def _cut(text: str, request: ModelRequest) -> tuple[str, StopReason]:
    """Return the text up to its limit, and why it ends."""
    for word in filter(None, request.stop):
        text = text.partition(word)[0]
    limit = request.max_output_tokens
    tokens = list(_TOKENS.finditer(text))
    if limit is not None and len(tokens) > limit:
        return text[: tokens[limit].start()].rstrip(), "length"
    return text, "end"


def _last_pieces(
    line: ScriptLine, reason: StopReason, request: ModelRequest, text: str, mark: str
) -> list[Piece]:
    pieces: list[Piece] = []
    if line.tool is not None:
        arguments = msgspec.json.encode(line.arguments).decode()
        pieces.append(ModelToolCall(id=f"call_{mark}", name=line.tool, arguments=arguments))
        reason = "tool_calls"
    if line.refusal:
        reason = "refusal"
    input_tokens = sum(count_tokens(content_text(message.content)) for message in request.messages)
    usage = TokenUsage(input_tokens=input_tokens, output_tokens=count_tokens(text))
    return [*pieces, usage, AnswerStop(reason)]


def count_tokens(text: str) -> int:
    """Count words and marks, as an estimate that is the same everywhere."""
    return len(_TOKENS.findall(text))
