"""Defines scenarios that end in tool calls, and the tools, declared as an OpenAI client would declare them."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo import actions
from adapters.warp.demo.scenario import Expect, WarpScenario, failure
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    NEXT_PRELUDE,
    PRELUDE,
    ScenarioState,
    Step,
    act,
    call,
    calls,
    finish,
    text_message,
    text_start,
)
from gateway.core.conversation import Json, JsonObject


def _tool(name: str, description: str, properties: dict[str, Json], required: list[Json]) -> JsonObject:
    parameters: Json = {"type": "object", "properties": properties, "required": required}
    function: Json = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_COUNTED: Final[Json] = {"type": "object", "properties": {"n": {"type": "integer"}}}

TOOLS: Final[tuple[JsonObject, ...]] = (
    _tool("Execute", "Run a shell command.", {"command": {"type": "string"}}, ["command"]),
    _tool(
        "get_weather",
        "The weather of a city.",
        {"city": {"type": "string"}, "days": {"type": "integer"}},
        ["city"],
    ),
    _tool(
        "measure",
        "Take values of every type.",
        {
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "big": {"type": "integer"},
            "nested": {"type": "array", "items": _COUNTED},
            "nul": {"type": ["integer", "null"]},
            "s": {"type": "string"},
        },
        ["count"],
    ),
)


CAT: Final[JsonObject] = {"command": "cat config.json"}
PARIS: Final[JsonObject] = {"city": "Paris", "days": 3}
ROME: Final[JsonObject] = {"city": "Rome", "days": 3}
NUMBERS: Final[JsonObject] = {"count": 5, "ratio": 1.5, "big": 2**53 + 1, "nested": [{"n": 1}], "nul": None, "s": "5"}

_HEAD: Final = (*PRELUDE, BEGIN)
_END: Final = (COMMIT, finish())
_CAT: Final = ("Execute", '{"command":"cat config.json"}')
_PARIS: Final = ("get_weather", '{"city":"Paris","days":3}')
_ROME: Final = ("get_weather", '{"city":"Rome","days":3}')
# A Struct holds doubles: 2^53 + 1 is 2^53 on this wire.
_NUMBERS: Final = (
    "measure",
    '{"count":5,"ratio":1.5,"big":9007199254740992,"nested":[{"n":1}],"nul":null,"s":"5"}',
)


def _native(command: str) -> Step:
    shell = pb.Message.ToolCall.RunShellCommand(command=command)
    return act(
        lambda state: _tool_call(state, pb.Message.ToolCall(tool_call_id=state.call_id(9), run_shell_command=shell))
    )


def _internal(payload: str) -> Step:
    inner = pb.Message.ToolCall.Server(payload=payload)
    return act(lambda state: _tool_call(state, pb.Message.ToolCall(tool_call_id=state.call_id(8), server=inner)))


def _subagent() -> Step:
    def build(state: ScenarioState) -> pb.ClientAction:
        task = state.ids.task
        return actions.add(task, actions.call_native(state.new_message(), task, state.call_id(7), "subagent"))

    return act(build)


def _tool_call(state: ScenarioState, tool_call: pb.Message.ToolCall) -> pb.ClientAction:
    return actions.add(state.ids.task, pb.Message(id=state.new_message(), task_id=state.ids.task, tool_call=tool_call))


def _calls(*wanted: tuple[str, str], text: str = "") -> Expect:
    return Expect(text=text, calls=wanted, finish="tool_calls")


CALLS: Final[dict[str, WarpScenario]] = {
    "single_mcp_call": WarpScenario(
        about="a little text, then one call",
        turns=((*_HEAD, text_start("Let me"), call("Execute", CAT), *_END),),
        expect=_calls(_CAT, text="Let me"),
    ),
    "parallel_calls": WarpScenario(
        about="two calls in one action",
        turns=((*_HEAD, calls(("Execute", CAT), ("get_weather", PARIS)), *_END),),
        expect=_calls(_CAT, _PARIS),
    ),
    "parallel_calls_two_events": WarpScenario(
        about="two calls in two events",
        turns=((*_HEAD, call("Execute", CAT), call("get_weather", PARIS, position=2), *_END),),
        expect=_calls(_CAT, _PARIS),
    ),
    "parallel_calls_same_tool": WarpScenario(
        about="the same tool twice",
        turns=((*_HEAD, calls(("get_weather", PARIS), ("get_weather", ROME)), *_END),),
        expect=_calls(_PARIS, _ROME),
    ),
    "call_then_result": WarpScenario(
        about="one call, then text after its result",
        turns=(
            (*_HEAD, text_start("Let me"), call("Execute", CAT), *_END),
            (*NEXT_PRELUDE, BEGIN, text_message("The file holds what the result says."), *_END),
        ),
        expect=_calls(_CAT, text="Let me"),
    ),
    "native_tool": WarpScenario(
        about="only a built-in shell command of the backend",
        turns=((*_HEAD, _native("ls"), *_END),),
        expect=failure("", 502, "upstream_unsupported_tool"),
    ),
    "native_tool_and_text": WarpScenario(
        about="text, calls that the backend executes itself, a subagent and a shell command",
        turns=((*_HEAD, text_message("I looked around."), _internal("IgA="), _subagent(), _native("ls"), *_END),),
        expect=Expect(text="I looked around."),
    ),
    "server_tool": WarpScenario(
        about="a call that the backend executes itself, then text",
        turns=((*_HEAD, _internal("IgA="), text_message("Done without you."), *_END),),
        expect=Expect(text="Done without you."),
    ),
    "numbers": WarpScenario(
        about="arguments of every type; a Struct converts integers to doubles",
        turns=((*_HEAD, call("measure", NUMBERS), *_END),),
        expect=_calls(_NUMBERS),
    ),
    "duplicate_tool_id": WarpScenario(
        about="two calls with one id",
        turns=((*_HEAD, calls(("get_weather", PARIS), ("get_weather", ROME), call_id="same-id"), *_END),),
        expect=_calls(_PARIS, _ROME),
    ),
    "missing_tool_id": WarpScenario(
        about="a call without an id",
        turns=((*_HEAD, call("Execute", CAT, call_id=""), *_END),),
        expect=_calls(_CAT),
    ),
    "empty_tool_name": WarpScenario(
        about="a call without a name",
        turns=((*_HEAD, call("", CAT), *_END),),
        expect=failure("lost_call", 502, "upstream_invalid_tool_call"),
    ),
    "missing_args": WarpScenario(
        about="a call without arguments",
        turns=((*_HEAD, call("Execute", None), *_END),),
        expect=_calls(("Execute", "{}")),
    ),
    "empty_args": WarpScenario(
        about="a call with an empty object as its arguments",
        turns=((*_HEAD, call("Execute", {}), *_END),),
        expect=_calls(("Execute", "{}")),
    ),
}
