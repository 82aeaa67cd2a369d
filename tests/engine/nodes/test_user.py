"""@node: how a function of the user's is called, and what its answer means."""

import threading
from typing import Any

import msgspec
import pytest

import moot
from moot import Completed, Failed, NodeContext, node
from moot.core.workflows.node_types import NodeError, NodeKind, NodeType
from tests.support.engine.node_calls import Recorded, call, performed


async def ran(function: Any, ctx: Recorded | None = None, **given: Any) -> Any:
    return await performed(function.node_type, ctx or Recorded(**given))


@node("acme.shout")
def shout(text: str, times: int = 1) -> dict[str, str]:
    return {"text": text.upper() * times}


def test_the_function_stays_a_function() -> None:
    assert shout("a", 2) == {"text": "AA"}
    assert isinstance(shout.node_type, NodeType)  # type: ignore[attr-defined]
    assert shout.node_type.kind is NodeKind.ACTIVITY  # type: ignore[attr-defined]


def test_the_package_exports_what_a_node_needs() -> None:
    assert {"node", "Completed", "Failed", "NodeContext"} <= set(moot.__all__)


async def test_parameters_are_filled_from_inputs_then_config_then_defaults() -> None:
    config = {"text": "config", "times": 2}
    assert (await ran(shout, inputs={"text": "a"}, config=config)).outputs == {"text": "AA"}
    assert (await ran(shout, config={"text": "b"})).outputs == {"text": "B"}


async def test_a_missing_parameter_fails_for_good() -> None:
    error = (await ran(shout)).error
    assert (error.code, error.retryable) == ("input_unresolved", False)
    assert "'text'" in error.message


@pytest.mark.parametrize("inputs", [{"text": 3}, {"text": "a", "times": "2"}, {"text": None}])
async def test_a_value_of_another_type_fails_for_good(inputs: dict[str, Any]) -> None:
    error = (await ran(shout, inputs=inputs)).error
    assert (error.code, error.retryable) == ("validation_error", False)


class Order(msgspec.Struct):
    id: int


async def test_a_struct_is_built_from_its_json() -> None:
    @node("acme.order")
    def take(order: Order, rest: list[Order] | None = None) -> int:
        return order.id + len(rest or [])

    found = await ran(take, inputs={"order": {"id": 7}, "rest": [{"id": 1}]})
    assert found == Completed({"output": 8})


async def test_an_annotation_that_says_nothing_about_json_is_left_alone() -> None:
    @node("acme.anything")
    def anything(a: threading.Thread, b: "Missing") -> Any:  # type: ignore[name-defined] # noqa: F821
        return [a, b]

    assert (await ran(anything, inputs={"a": 1, "b": 2})).outputs == {"output": [1, 2]}


async def test_what_is_left_goes_to_keyword_arguments() -> None:
    @node("acme.rest")
    def rest(a: int, **more: Any) -> dict[str, Any]:
        return {"more": more}

    found = await ran(rest, inputs={"a": 1, "b": 2}, config={"c": 3})
    assert found.outputs == {"more": {"b": 2, "c": 3}}


async def test_an_async_function_gets_the_context() -> None:
    @node("acme.talk")
    async def talk(ctx: NodeContext, word: str) -> None:
        await ctx.emit_chunk(word, True)

    ctx = Recorded(inputs={"word": "hi"})
    assert await ran(talk, ctx) == Completed()
    assert ctx.chunks == [("hi", True, {})]


async def test_a_plain_function_does_not_hold_up_the_loop() -> None:
    @node("acme.where")
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await ran(where)).outputs == {"output": False}


async def test_an_exception_is_left_to_the_engine() -> None:
    @node("acme.broken")
    def broken() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await ran(broken)


FAILURE = Failed(NodeError(code="x", message="y"))


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, Completed()),
        ({"a": 1}, Completed({"a": 1})),
        ([1], Completed({"output": [1]})),
        (False, Completed({"output": False})),
        (Order(3), Completed({"id": 3})),
        (Completed(variables={"a": 1}), Completed(variables={"a": 1})),
        (FAILURE, FAILURE),
    ],
)
async def test_what_is_returned_means(value: Any, outcome: Any) -> None:
    @node("acme.returns")
    def returns() -> Any:
        return value

    assert await ran(returns) == outcome


async def test_what_json_cannot_say_is_refused() -> None:
    @node("acme.thread")
    def thread() -> Any:
        return threading.Lock()

    error = (await ran(thread)).error
    assert (error.code, error.retryable) == ("output_not_json", False)


def test_a_pure_function_is_decided_at_once() -> None:
    @node("acme.double", pure=True)
    def double(n: int) -> int:
        return n * 2

    found: NodeType = double.node_type  # type: ignore[attr-defined]
    assert found.kind is NodeKind.INSTANT
    assert found.activity is None
    assert found.instant is not None
    assert found.instant(call(inputs={"n": 4})) == Completed({"output": 8})
    assert isinstance(found.instant(call()), Failed)


def test_the_authors_defaults_are_kept() -> None:
    @node("acme.careful", retries=2, timeout=1.5, requires=("gpu",))
    def careful() -> None: ...

    found: NodeType = careful.node_type  # type: ignore[attr-defined]
    assert (found.retries, found.timeout_ms, found.requires) == (2, 1500, ("gpu",))


@pytest.mark.parametrize("type_id", ["core.mine", "openwop.x", "moot.y", "core"])
def test_ids_of_the_host_cannot_be_taken(type_id: str) -> None:
    with pytest.raises(ValueError, match="belong to the host"):
        node(type_id)


@pytest.mark.parametrize("type_id", ["", "Acme.x", "acme x", "1.x"])
def test_an_id_must_look_like_one(type_id: str) -> None:
    with pytest.raises(ValueError, match="is not a node type id"):
        node(type_id)


def test_a_function_that_cannot_be_called_by_name_is_refused() -> None:
    def positional(a: int, /) -> None: ...

    def variadic(*a: int) -> None: ...

    for function in (positional, variadic):
        with pytest.raises(ValueError, match="no name to fill it by"):
            node("acme.x")(function)


def test_a_pure_function_has_no_context_and_does_not_wait() -> None:
    async def waits() -> None: ...

    def asks(ctx: NodeContext) -> None: ...

    for function in (waits, asks):
        with pytest.raises(ValueError, match="is pure"):
            node("acme.x", pure=True)(function)
