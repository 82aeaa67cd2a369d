"""@tool: a function, its types and its words are all a model needs."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from msgspec import Meta, Struct

from moot import tool
from moot.agents.tools import functions
from moot.agents.tools.toolbox import ToolError, ToolInvocation, UsableTool
from moot.config import user_files
from moot.core.json.schema import schema_problems
from moot.core.trace import run_trace

ERRAND = ToolInvocation("call-1", run_trace("run_x", None))


class Part(Struct):
    sku: str
    count: int = 1


@dataclass
class Place:
    street: str
    number: int


class Note(TypedDict):
    text: str


def made(function: Any) -> UsableTool:
    found = function.moot_tool
    assert isinstance(found, UsableTool)
    return found


@tool
def order(
    part: Part,
    to: Place,
    note: Note,
    days: Annotated[int, Meta(ge=1, le=30, description="how long it may take")],
    mode: Literal["air", "sea"] = "sea",
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Order a part.

    More about it that a model need not read.
    """
    return {"part": part, "street": to.street, "note": note, "days": days, "mode": mode}


def test_parameters_become_a_schema_with_everything_in_it() -> None:
    found = made(order)
    assert (found.name, found.description) == ("order", "Order a part.")
    schema = found.parameters
    assert schema["required"] == ["part", "to", "note", "days"]
    assert schema["properties"]["days"]["description"] == "how long it may take"
    assert schema["properties"]["mode"]["default"] == "sea"
    good = {
        "part": {"sku": "x"},
        "to": {"street": "High", "number": 1},
        "note": {"text": "t"},
        "days": 3,
    }
    assert schema_problems(schema, good) == []
    for wrong in ({"days": 0}, {"part": {}}, {"mode": "foot"}, {"more": 1}, {"to": {"number": 1}}):
        assert schema_problems(schema, {**good, **wrong}) != []


async def test_a_function_gets_what_its_types_say_and_gives_json() -> None:
    given = {
        "part": {"sku": "x"},
        "to": {"street": "High", "number": 1},
        "note": {"text": "t"},
        "days": 3,
    }
    found = await made(order).call(given, ERRAND)
    assert found["part"] == {"sku": "x", "count": 1} and found["street"] == "High"


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    @tool
    def blocking() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool(name="awaited")
    async def waiting() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await made(blocking).call({}, ERRAND) is False
    assert await made(waiting).call({}, ERRAND) is True and made(waiting).name == "awaited"


def _positional(x: int, /) -> None: ...


def _rest(*x: int) -> None: ...


def _named(**x: int) -> None: ...


def _bare(x) -> None: ...  # type: ignore[no-untyped-def]


def _odd(x: threading.Thread) -> None: ...


def _nested(x: list[threading.Thread]) -> None: ...


def _default(x: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013


def _wrong_default(x: Annotated[int, Meta(ge=1)] = 0) -> None: ...


@pytest.mark.parametrize(
    "function",
    [_positional, _rest, _named, _bare, _odd, _nested, _default, _wrong_default],
)
def test_a_parameter_no_model_could_fill_in_is_named_at_import(function: Any) -> None:
    with pytest.raises(ValueError, match=f"Tool '{function.__name__}': parameter 'x'"):
        tool(function)


@pytest.mark.parametrize("name", ["", "two words", "1st", "x" * 65, "mcp:x"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a tool"):
        tool(name=name or "-")(made)


async def test_what_takes_too_long_or_is_no_json_is_said() -> None:
    gate = threading.Event()

    @tool(timeout=0.05)
    def slow() -> None:
        gate.wait(10)

    @tool
    def strange() -> object:
        return object()

    @tool
    def own() -> None:
        raise TimeoutError("mine")

    with pytest.raises(ToolError) as caught:
        await made(slow).call({}, ERRAND)
    gate.set()
    assert caught.value.code == "tool_timeout" and "may have happened" in caught.value.message
    with pytest.raises(ToolError) as caught:
        await made(strange).call({}, ERRAND)
    assert caught.value.code == "tool_result_not_json"
    with pytest.raises(TimeoutError, match="mine"):
        await made(own).call({}, ERRAND)


FILE = """
from moot import tool
from msgspec import Struct

class Thing(Struct):
    name: str

@tool(dangerous=True)
def {name}(thing: Thing) -> str:
    "Do {name}."
    return thing.name

again = {name}
"""


async def test_tools_are_found_in_a_file_and_in_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(FILE.format(name=name))
    (tmp_path / "_ignored.py").write_text("raise SystemExit")
    assert list(functions.tools_from_path(tmp_path / "one.py")) == ["one"]
    found = functions.tools_from_path(tmp_path)
    assert list(found) == ["one", "two"] and found["two"][1].endswith("two.py")
    assert await found["two"][0].call({"thing": {"name": "x"}}, ERRAND) == "x"


def test_a_name_that_is_there_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    for file in ("a.py", "b.py"):
        (tmp_path / file).write_text(FILE.format(name="same"))
    with pytest.raises(ValueError, match=r"b\.py: tool 'same' is defined in .*a\.py"):
        functions.tools_from_path(tmp_path)


def test_a_file_that_is_broken_or_missing_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("from moot import tool\n@tool\ndef f(x): ...\n")
    with pytest.raises(ValueError, match=r"broken\.py cannot be loaded: .*parameter 'x' has no"):
        functions.tools_from_path(broken)
    with pytest.raises(ValueError, match="There is no Python file"):
        functions.tools_from_path(tmp_path / "none.py")


def test_installed_packages_have_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "acme", "acme.tools"

        def load(self) -> Any:
            return [order]

    monkeypatch.setattr(user_files, "entry_points", lambda group: [Entry()])
    [(name, (found, source))] = functions.tools_from_entry_points().items()
    assert name == "order" and found is made(order) and "acme" in source
    assert msgspec.json.encode(found.parameters)
