"""Random workflows and random lives for them."""

import os
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings

from moot.core.commands import CancelRun, FinishNode, PauseRun, ResumeRun, SetVariables, TimePassed
from moot.core.events import new_event
from moot.core.runs.nodes import Emit
from moot.core.runs.start import RunLimits
from moot.core.state.status import NodeStatus
from moot.core.workflows.flow import Flow
from moot.core.workflows.node_types import Artifact, ChannelWrite, Completed, Failed, NodeError
from tests.support.core.random_gates import ASKER, GIVEN, PEOPLE, answers, fitting, gates
from tests.support.core.simulator import CHAIR, Life, World, chain, compiled, definition, edge, node

LONG = os.environ.get("MOOT_LONG") == "1"
SECRET = "hush-4711-hush"


def examples(count: int) -> settings:
    """So many random cases; twenty times as many in the long form."""
    return settings(
        max_examples=count * (20 if LONG else 1),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# -- definitions ---------------------------------------------------------------------------------

RULES = ("all_success", "any_success", "all_complete", "none_failed", "any_failed")
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -2, 2.5, "", "x", [], [1, [2]], {}, {"a": 1}, {"userId": "u"},
    {"userId": "v", "_ts": 1}, {"messageId": "m"}, {"messageId": "n", "_ts": "x"}, {"_ts": 5},
    {"value": 1, "_ts": 2},
)  # fmt: skip
CHANNELS = ("log", "tally", "open", "hidden")
REDUCERS = ("replace", "append", "merge", "counter", "votes", "feedback", "message")
VARIABLES = ("v", "w", "secret")

values = st.sampled_from(VALUES)
variables = st.sampled_from(VARIABLES)
small = st.integers(0, 3)


def _port(name: str, optional: bool = True) -> dict[str, Any]:
    return {"type": "variable", "variableName": name, "optional": optional}


@st.composite
def _conditional(draw: st.DrawFn) -> dict[str, Any]:
    config = draw(
        st.sampled_from(
            [
                {"expression": "variables.v == 1"},
                {"expression": "variables.missing"},
                {"condition": {"type": "equals", "left": "v", "right": 1}},
                {},
            ]
        )
    )
    return {"typeId": "core.conditional", "config": config, "inputs": {"value": _port("v")}}


@st.composite
def _channel_write(draw: st.DrawFn) -> dict[str, Any]:
    config = {
        "channelName": draw(st.sampled_from(CHANNELS)),
        "reducer": draw(st.sampled_from(REDUCERS)),
        "value": draw(values),
    }
    if draw(st.booleans()):
        config["ttlMs"] = draw(st.sampled_from([0, 1, 40, 1000]))
    if draw(st.booleans()):
        config["maxSize"] = draw(st.integers(1, 2))
    return {"typeId": "core.channelWrite", "config": config}


@st.composite
def _sub_workflow(draw: st.DrawFn) -> dict[str, Any]:
    config: dict[str, Any] = {
        "workflowId": draw(st.sampled_from(["kid", "grandkid", "asker", "self", "missing"])),
        "onChildFailure": draw(st.sampled_from(["fail-parent", "absorb"])),
        "inputMapping": {"given": draw(st.sampled_from(["v", "nobody"]))},
        "outputMapping": {draw(st.sampled_from(["v", "w", "log"])): "given"},
        "propagateCancellation": draw(st.booleans()),
    }
    if draw(st.booleans()):
        return {"typeId": "core.subWorkflow", "config": config}
    items = draw(st.sampled_from([[], [1], [1, 2, 3]]))
    return {"typeId": "moot.forEach", "config": {**config, "items": items, "maxIterations": 2}}


plain_bodies: list[st.SearchStrategy[dict[str, Any]]] = [
    st.just({"typeId": "core.noop"}),
    st.builds(lambda v: {"typeId": "core.identity", "inputs": {"payload": _port(v)}}, st.just("v")),
    st.builds(
        lambda again: {"typeId": "core.fail", "config": {"retryable": again}}, st.booleans()
    ),
    st.builds(
        lambda ms: {"typeId": "core.delay", "config": {"ms": ms}}, st.sampled_from([0, 1, 30, 500])
    ),
    st.just({"typeId": "core.delay", "inputs": {"delayMs": _port("v")}}),
    st.builds(
        lambda name, value: {
            "typeId": "core.setVariable", "config": {"name": name, "value": value}
        },
        st.sampled_from(["v", "w", "log"]), values,
    ),
    st.just({"typeId": "core.setVariable", "config": {"name": "secret", "value": SECRET}}),
    st.just({"typeId": "core.getVariable", "config": {"name": "secret"}}),
    st.just({"typeId": "core.merge"}),
    st.just({"typeId": "acme.work", "inputs": {"key": _port("secret")}}),
    st.just({"typeId": "acme.work"}),
    st.just({"typeId": "acme.lacking"}),
    st.just({"typeId": "core.identity", "inputs": {"payload": {
        "type": "expression", "expression": "channels.log[0]"}}}),
    st.just({"typeId": "core.loop", "config": {"times": 2, "set": {"v": "index"}}}),
    _conditional(),
    _channel_write(),
    gates(),
    gates(),
]  # fmt: skip


@st.composite
def _condition(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["expression", "equals", "notEquals", "contains", "regex"]))
    if kind == "expression":
        source = draw(st.sampled_from(["variables.v == 1", "outputs.nothing", "true", "false"]))
        return {"type": kind, "expression": source}
    left = draw(st.sampled_from(["variables.v", "output", "outputs.payload", "channels.log.0"]))
    return {"type": kind, "left": left, "right": "x" if kind == "regex" else draw(values)}


@st.composite
def bodies(draw: st.DrawFn, with_children: bool = True) -> dict[str, Any]:
    """A random acyclic workflow of one to seven nodes."""
    kinds = [*plain_bodies, _sub_workflow()] if with_children else plain_bodies
    names = [f"n{number}" for number in range(draw(st.integers(1, 7)))]
    nodes = [_settings(draw, node(name, **draw(st.one_of(kinds)))) for name in names]
    edges = []
    for target, name in enumerate(names):
        rule = draw(st.sampled_from(RULES))
        edges += [
            _edge(draw, source, name, rule)
            for source in nodes[:target]
            if draw(st.integers(0, 2)) == 0
        ]
    channels: dict[str, Any] = {"log": {"reducer": "append", "maxSize": 3}}
    if draw(st.booleans()):
        channels["tally"] = {"reducer": "counter", "default": 1}
    if draw(st.booleans()):
        channels["hidden"] = {"reducer": draw(st.sampled_from(REDUCERS)), "sensitive": True}
    return definition(
        nodes, edges, id="self", channels=channels,
        variables=[
            {"name": "v", "type": "object", "defaultValue": draw(values)},
            {"name": "w", "type": "object"},
            {"name": "secret", "type": "string", "defaultValue": SECRET, "sensitive": True},
        ],
        metadata={"complianceConfig": {
            "maskingMode": draw(st.sampled_from(["mask", "omit", "hash"]))}},
        settings={"timeout": draw(st.sampled_from([0, 0, 100, 2000]))},
    )  # fmt: skip


def _settings(draw: st.DrawFn, made: dict[str, Any]) -> dict[str, Any]:
    settings_: dict[str, Any] = {}
    if draw(st.booleans()):
        settings_ = {"maxRetries": draw(st.integers(0, 2)), "retryDelayMs": draw(small) * 10}
    if draw(st.integers(0, 3)) == 0:
        settings_["timeoutMs"] = draw(st.sampled_from([1, 40, 400]))
    agent = draw(st.sampled_from([None, None, None, "host:one", "host:two"]))
    pin = {} if agent is None else {"agent": {"agentId": agent}}
    return {**made, **pin, "settings": settings_, "disabled": draw(st.integers(0, 5)) == 0}


def _edge(draw: st.DrawFn, source: dict[str, Any], target: str, rule: str) -> dict[str, Any]:
    if draw(st.integers(0, 9)) == 0:
        rule = draw(st.sampled_from(RULES))
    made = edge(source["id"], target, rule)
    if source["typeId"] == "core.conditional":
        made["sourceOutput"] = draw(st.sampled_from(["true", "false", "output"]))
    if draw(st.integers(0, 3)) == 0:
        made["condition"] = draw(_condition())
    return made


KIDS = {
    "asker": ASKER,
    "grandkid": chain(
        node("wait", "core.delay", config={"ms": 20}), node("do", "acme.work"),
        id="grandkid", variables=GIVEN,
    ),
    "kid": chain(
        node("set", "core.setVariable", config={"name": "given", "value": 1}),
        node("sub", "core.subWorkflow", config={"workflowId": "grandkid"}),
        id="kid", variables=GIVEN,
    ),
}  # fmt: skip


def flows_of(body: dict[str, Any]) -> dict[str, Flow]:
    return {name: compiled(each) for name, each in [*KIDS.items(), ("self", body)]}


limits = st.builds(
    RunLimits,
    node_executions=st.sampled_from([1, 2, 3, 5, 10_000]),
    duration_ms=st.sampled_from([10, 300, 86_400_000]),
    parallel=st.sampled_from([1, 2, 32]),
    depth=st.integers(1, 3),
)

# -- lives ---------------------------------------------------------------------------------------

outcomes = st.one_of(
    st.builds(
        lambda output, name, value: Completed({"output": output}, {name: value}),
        values, st.sampled_from(["v", "w", "secret"]), values,
    ),
    st.builds(
        lambda name, value, reducer: Completed(
            writes=(ChannelWrite(channel=name, value=value, reducer=reducer),) * 2,
            artifacts=(Artifact(artifact_type="note", data=value),),
        ),
        st.sampled_from(CHANNELS), values, st.sampled_from([None, *REDUCERS]),
    ),
    st.builds(
        lambda again: Failed(NodeError(code="broken", message="broke", retryable=again)),
        st.booleans(),
    ),
)  # fmt: skip

#: something that happens: its name, two numbers to choose with, and a value
moves = st.tuples(
    st.sampled_from(
        ["finish", "finish", "finish", "pass", "pass", "ring", "tell", "tell", "again", "go on",
         "answer", "answer", "answer", "answer right", "mirror", "mirror",
         "cancel", "pause", "pause now", "resume", "set", "report"]
    ),
    st.integers(0, 7), st.sampled_from([0, 1, 10, 35, 600]), outcomes, values,
    st.tuples(answers, PEOPLE),
)  # fmt: skip
Move = tuple[str, int, int, Any, Any, Any]


class Story:
    """Lets moves happen to a world; what cannot happen now does not."""

    def __init__(self, world: World) -> None:
        self.world = world

    def happen(self, move: Move) -> None:
        name, number, ms, outcome, value, said = move
        acts: dict[str, Callable[[], Any]] = {
            "finish": lambda: self._finish(number, outcome),
            "pass": lambda: self._pass(ms),
            "ring": lambda: self._any(number, lambda life: TimePassed(self.world.at)),
            "tell": lambda: self._tell(number),
            "again": lambda: self._again(number),
            "go on": self._go_on,
            "cancel": lambda: number == 0 and self._any(ms, lambda _: CancelRun(self.world.at)),
            "pause": lambda: self._any(number, lambda _: PauseRun(self.world.at)),
            "pause now": lambda: self._any(
                number, lambda _: PauseRun(self.world.at, "immediate", "why", "who")
            ),
            "resume": lambda: self._any(number, lambda _: ResumeRun(self.world.at)),
            "set": lambda: self._any(
                number, lambda _: SetVariables({("v", "log")[number % 2]: value}, self.world.at)
            ),
            "report": lambda: self._report(number, value),
            "answer": lambda: self._answer(number, *said),
            "answer right": lambda: self._answer(number),
            "mirror": lambda: self._mirror(number),
        }
        acts[name]()

    def _any(self, number: int, command: Callable[[Life], Any]) -> None:
        lives = list(self.world.lives.values())
        life = lives[number % len(lives)]
        self.world.refused(life, command(life))

    def _owed_activities(self) -> list[tuple[Life, str, int]]:
        return [
            (life, node_id, attempt)
            for life in self.world.alive
            for node_id, attempt in self.world.owed(life).activities
        ]

    def _finish(self, number: int, outcome: Any) -> None:
        found = self._owed_activities()
        if found:
            life, node_id, attempt = found[number % len(found)]
            self.world.take(life, FinishNode(node_id, attempt, outcome, self.world.at))

    def _report(self, number: int, value: Any) -> None:
        found = self._owed_activities()
        if found:
            life, node_id, attempt = found[number % len(found)]
            payload = {"level": "info", "message": "m", "fields": {"value": value}}
            events = (new_event("log.appended", payload, node_id),)
            assert len(self.world.take(life, Emit(node_id, attempt, events, self.world.at))) >= 1

    def _pass(self, ms: int) -> None:
        """Time goes by, and whoever's time has come is rung."""
        self.world.pass_time(ms)
        for life in self.world.alive:
            due = self.world.owed(life).due
            if due is not None and due <= self.world.at:
                self.world.take(life, TimePassed(self.world.at))

    def _answer(self, number: int, value: Any = None, who: Any = CHAIR) -> None:
        """Any answer to any question, also to one that is closed; without a value, a right one."""
        asked = [
            (life, key)
            for life in self.world.lives.values()
            for key in {**life.run.interrupts, **life.run.answered}
        ]
        if asked:
            life, key = asked[number % len(asked)]
            found = life.run.interrupts.get(key)
            right = fitting(found.kind if found else "")
            said = right if value is None else value
            self.world.refused(life, self.world.answering(key, said, who))

    def _mirror(self, number: int) -> None:
        living = [life for life in self.world.alive if life.run.parent_run is not None]
        if living:
            self.world.mirror(living[number % len(living)])

    def _tell(self, number: int) -> None:
        untold = self.world.untold()
        if untold:
            self.world.tell_parent(untold[number % len(untold)])

    def _again(self, number: int) -> None:
        """A command that was already decided, once more: nothing comes of it."""
        spent = [
            pair for pair in self.world.spent
            if type(pair[1]).__name__ in ("StartRun", "FinishNode", "ChildEnded", "CancelRun")
        ]  # fmt: skip
        if spent:
            run_id, command = spent[number % len(spent)]
            assert not self.world.decided(self.world.lives[run_id], command)

    def _go_on(self) -> None:
        """The host comes back to runs whose last batch was full."""
        from moot.core.commands import Advance

        for run_id in sorted(self.world.unfinished):
            life = self.world.lives[run_id]
            self.world.unfinished.discard(run_id)
            self.world.take(life, Advance(self.world.at))

    def to_the_end(self) -> None:
        """Nobody interferes any more: everything owed is given until all is over."""
        for _ in range(2000):
            if not self.world.alive:
                return
            self._one_more_round()
        raise AssertionError(f"no end: {[life.order()[-3:] for life in self.world.alive]}")

    def _one_more_round(self) -> None:
        world = self.world
        self._go_on()
        for life in world.alive:
            if life.run.paused_at and life.run.status == "paused":
                world.take(life, ResumeRun(world.at))
        for life, node_id, attempt in self._owed_activities():
            world.take(life, FinishNode(node_id, attempt, Completed(), world.at))
        for child in world.untold():
            world.tell_parent(child)
        self._answer_all()
        dues = [due for life in world.alive if (due := self._next_due(life)) is not None]
        if dues and not self._owed_activities() and not world.untold():
            world.pass_time(max(0, min(dues) - world.at))
        self._pass(0)

    def _answer_all(self) -> None:
        for life in self.world.alive:
            for key, found in list(life.run.interrupts.items()):
                late = found.due is not None and self.world.at >= found.due
                if key in life.run.interrupts and life.run.going and not late:
                    voter = {"voter": f"last{len(found.votes)}"} if found.kind == "approval" else {}
                    self.world.answer(life, key, {**fitting(found.kind), **voter})

    def _next_due(self, life: Life) -> int | None:
        """Without the deadline: that one would end everything and hide what hangs."""
        run = life.run
        moments = [
            node_.due
            for name in run.active
            if (node_ := run.nodes[name]).due is not None
            and (run.pause is None or node_.status is not NodeStatus.RETRYING)  # it waits as well
        ]
        for name in run.active:
            limit = life.flow.nodes[name].timeout_ms
            if limit and (state := run.nodes[name]).status is NodeStatus.RUNNING:
                moments.append(state.started_at + state.paused_ms + limit)
        return min(moments, default=None) if run.going else None
