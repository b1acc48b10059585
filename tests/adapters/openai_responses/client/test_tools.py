"""Every tool that the client runs is a function to the backend, and itself again to the client."""

from typing import Any, Final

import pytest

from adapters.openai_responses.function_names import LONGEST, ClientTool, ToolNames, stored_names
from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.core.conversation import DeferredTools, Json, NamedTool, OtherTool, ToolChoice
from gateway.core.errors import Unsupported
from gateway.core.events import Event, Finish, ResponseStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.testing.dialect_case import HEAD
from tests.adapters.openai_responses.client.requests import decoded, read, refused
from tests.adapters.openai_responses.client.test_stream import answered

FUNCTION: Final[dict[str, Any]] = {
    "type": "function",
    "name": "f",
    "description": "One.",
    "parameters": {"type": "object"},
}
CUSTOM: Final[dict[str, Any]] = {"type": "custom", "name": "patch"}
SPACE: Final[dict[str, Any]] = {"type": "namespace", "name": "mcp__x", "tools": [FUNCTION, CUSTOM]}

NAMED: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "function": (FUNCTION, ["f"]),
    "function without a type": ({"name": "f"}, ["f"]),
    "custom": (CUSTOM, ["patch"]),
    "namespace": (SPACE, ["mcp__x__f", "mcp__x__patch"]),
    "namespace that ends in the separator": ({**SPACE, "name": "mcp__x__"}, ["mcp__x__f", "mcp__x__patch"]),
    "namespace with other characters": ({**SPACE, "name": "a.b"}, ["a_b__f", "a_b__patch"]),
    "tool_search of the client": ({"type": "tool_search", "execution": "client"}, ["tool_search"]),
    "tool_search of the server": ({"type": "tool_search"}, []),
    "local_shell": ({"type": "local_shell"}, ["local_shell"]),
    "shell": ({"type": "shell", "environment": {"type": "local"}}, ["shell"]),
    "shell in a container": ({"type": "shell", "environment": {"type": "container_auto"}}, []),
    "apply_patch": ({"type": "apply_patch"}, ["apply_patch"]),
    "hosted": ({"type": "web_search"}, []),
    "a new kind": ({"type": "teleport", "name": 7}, []),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_tool_is_offered_as_functions(name: str) -> None:
    tool, names = NAMED[name]
    conversation = read(tools=[tool])
    assert [spec.name for spec in conversation.tools] == names
    assert conversation.other_tools == (() if names else (OtherTool(tool["type"]),))


def test_a_custom_tool_takes_one_text_and_tells_its_grammar() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: LINE"}
    (spec,) = read(tools=[{**CUSTOM, "description": "Patches.", "format": grammar}]).tools
    assert spec.description.startswith("Patches.") and "lark" in spec.description and "start: LINE" in spec.description
    assert spec.parameters["required"] == ["input"]


def test_tools_inside_items_join_those_of_the_request() -> None:
    found = {"type": "tool_search_output", "call_id": "c", "tools": [{**FUNCTION, "name": "found"}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [{**FUNCTION, "name": "added"}, FUNCTION]}
    conversation = read([added, found, {"role": "user", "content": "x"}], tools=[FUNCTION])
    assert [spec.name for spec in conversation.tools] == ["f", "added", "found"]


def test_a_name_that_is_taken_is_shortened_to_one_of_its_own() -> None:
    joined = {**FUNCTION, "name": "mcp__x__f"}
    names = [spec.name for spec in read(tools=[joined, SPACE, {**CUSTOM, "name": "mcp__x__f"}]).tools]
    assert len(set(names)) == 4 and names[0] == "mcp__x__f"
    assert all(0 < len(name) <= LONGEST for name in names)


def test_a_long_name_is_shortened_alike_in_every_request() -> None:
    space = {**SPACE, "name": "n" * 64, "tools": [FUNCTION, {**FUNCTION, "name": "g"}]}
    names = [spec.name for spec in read(tools=[space]).tools]
    assert names == [spec.name for spec in read(tools=[FUNCTION, space]).tools[1:]]
    assert len(set(names)) == 2 and all(len(name) == LONGEST for name in names)


def test_the_history_calls_a_function_by_the_name_that_the_tools_have() -> None:
    space = {**SPACE, "name": "n" * 64}
    call = {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n" * 64, "arguments": "{}"}
    conversation = read([{"role": "user", "content": "x"}, call], tools=[space])
    assert conversation.turns[1].calls[0].name == conversation.tools[0].name


def test_names_can_be_stored() -> None:
    names = ToolNames()
    tool = ClientTool("custom", "patch", "mcp__x")
    names.add([tool, ClientTool("function", "f")])
    again = stored_names({"mcp__x__patch": {"kind": "custom", "name": "patch", "namespace": "mcp__x"}})
    assert again.tools == names.tools and again.name(tool) == "mcp__x__patch"
    assert again.tool("mcp__x__patch") == tool and again.tool("f") == ClientTool("function", "f")


WRONG: Final[dict[str, tuple[Any, str, str]]] = {
    "no array": ({}, "invalid_type", "tools"),
    "no object": ([7], "invalid_type", "tools[0]"),
    "a type that is a number": ([{"type": 7}], "invalid_type", "tools[0].type"),
    "a function without a name": ([{"type": "function"}], "missing_required_parameter", "tools[0].name"),
    "the form of chat completions": (
        [{"type": "function", "function": {"name": "f"}}],
        "missing_required_parameter",
        "tools[0].name",
    ),
    "parameters that are an array": ([{**FUNCTION, "parameters": []}], "invalid_type", "tools[0].parameters"),
    "a wrong tool in a namespace": (
        [FUNCTION, {**SPACE, "tools": [FUNCTION, {"name": 7}]}],
        "invalid_type",
        "tools[1].tools[1].name",
    ),
    "a wrong grammar": ([{**CUSTOM, "format": {"definition": 7}}], "invalid_type", "tools[0].format.definition"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tool_is_refused_at_its_place(name: str) -> None:
    tools, code, param = WRONG[name]
    error = refused(tools=tools)
    assert (error.status, error.code, error.param) == (400, code, param)


def test_a_wrong_tool_inside_an_item_is_refused_at_its_place() -> None:
    error = refused([{"role": "user", "content": "x"}, {"type": "additional_tools", "tools": [{"type": "function"}]}])
    assert error.param == "input[1].tools[0].name"


def test_a_name_that_no_api_accepts_is_a_fault() -> None:
    (fault,) = read(tools=[FUNCTION, {**FUNCTION, "name": "a b"}]).faults
    assert (fault.rule, fault.param) == ("TOOLS_NAME", "tools[1].name")


OFFERED: Final = [FUNCTION, CUSTOM, SPACE, {"type": "shell"}, {"type": "web_search"}]
ALL: Final = ["f", "patch", "mcp__x__f", "mcp__x__patch", "shell"]
CHOICES: Final[dict[str, tuple[Any, ToolChoice, list[str]]]] = {
    "none at all": (None, "auto", ALL),
    "auto": ("auto", "auto", ALL),
    "none": ("none", "none", ALL),
    "required": ("required", "required", ALL),
    "a function": ({"type": "function", "name": "f"}, NamedTool("f"), ALL),
    "a custom tool": ({"type": "custom", "name": "patch"}, NamedTool("patch"), ALL),
    "in a namespace": ({"type": "function", "name": "f", "namespace": "mcp__x"}, NamedTool("mcp__x__f"), ALL),
    "a built-in tool": ({"type": "shell"}, NamedTool("shell"), ALL),
    "allowed": (
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "patch"}, {"type": "mcp"}]},
        "required",
        ["patch"],
    ),
    "an allowed namespace": (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "mcp__x"}]},
        "auto",
        ["mcp__x__f", "mcp__x__patch"],
    ),
    "nothing allowed": ({"type": "allowed_tools", "mode": "auto", "tools": []}, "auto", []),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_read(name: str) -> None:
    choice, expected, names = CHOICES[name]
    conversation = read(tools=OFFERED, tool_choice=choice)
    assert conversation.tool_choice == expected
    assert [spec.name for spec in conversation.tools] == names


TOLD: Final[dict[str, tuple[Any, list[str]]]] = {
    "two tools": (
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "patch"}, {"type": "shell"}]},
        ["the model is not offered 'f', 'mcp__x__f', 'mcp__x__patch', which tool_choice.tools does not name"],
    ),
    "a namespace": (
        {"type": "allowed_tools", "tools": [{"type": "namespace", "name": "mcp__x"}]},
        ["the model is not offered 'f', 'patch', 'shell', which tool_choice.tools does not name"],
    ),
    "all of them": (
        {
            "type": "allowed_tools",
            "tools": [
                {"type": "function", "name": "f"},
                {"type": "custom", "name": "patch"},
                {"type": "namespace", "name": "mcp__x"},
                {"type": "shell"},
            ],
        },
        [],
    ),
    "a forced function": ({"type": "function", "name": "f"}, []),
}


@pytest.mark.parametrize("name", TOLD)
def test_functions_that_are_not_allowed_are_told(name: str) -> None:
    choice, details = TOLD[name]
    notices = read(tools=OFFERED, tool_choice=choice).notices
    assert [notice.detail for notice in notices if notice.rule == "TOOL_NOT_ALLOWED"] == details


REFUSED: Final[dict[str, tuple[Any, str, str]]] = {
    "a number": (7, "invalid_type", "tool_choice"),
    "no type": ({"name": "f"}, "missing_required_parameter", "tool_choice.type"),
    "no name": ({"type": "function"}, "missing_required_parameter", "tool_choice.name"),
    "an allowed list that is no list": (
        {"type": "allowed_tools", "mode": "auto", "tools": {}},
        "invalid_type",
        "tool_choice.tools",
    ),
    "an allowed number": (
        {"type": "allowed_tools", "mode": "auto", "tools": [7]},
        "invalid_type",
        "tool_choice.tools[0]",
    ),
    "a mode that is a number": ({"type": "allowed_tools", "mode": 7, "tools": []}, "invalid_type", "tool_choice.mode"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_choice_that_cannot_be_met_is_refused(name: str) -> None:
    choice, code, param = REFUSED[name]
    error = refused(tools=OFFERED, tool_choice=choice)
    assert (error.status, error.code, error.param) == (400, code, param)


def test_of_two_functions_of_one_name_the_last_one_is_sent_and_told() -> None:
    other = {**FUNCTION, "description": "Two."}
    found = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}
    cases: list[tuple[dict[str, Any], str, list[str]]] = [
        ({"tools": [FUNCTION, other]}, "Two.", ["warning"]),
        ({"tools": [SPACE, {**SPACE, "tools": [other]}]}, "Two.", ["warning"]),
        ({"tools": [FUNCTION, FUNCTION]}, "One.", ["info"]),
        # What a search has found may be found again.
        ({"tools": [FUNCTION], "input": [found, {"role": "user", "content": "x"}]}, "One.", []),
        ({"tools": [other], "input": [found, {"role": "user", "content": "x"}]}, "One.", ["warning"]),
    ]
    for fields, description, levels in cases:
        conversation = read(**fields)
        assert conversation.tools[0].description == description
        told = [notice for notice in conversation.notices if notice.rule == "TOOL_REPEATED"]
        assert [notice.level for notice in told] == levels


OWN: Final[dict[str, dict[str, Any]]] = {
    "a new word": {"tool_choice": "any"},
    "a hosted tool": {"tool_choice": {"type": "web_search"}},
    "a built-in tool that is not offered": {"tool_choice": {"type": "apply_patch"}},
    "only hosted tools allowed": {
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    },
    "a new mode": {"tool_choice": {"type": "allowed_tools", "mode": "any", "tools": []}},
    "a forced call of hosted tools": {"tools": [{"type": "web_search"}], "tool_choice": "required"},
}


@pytest.mark.parametrize("name", OWN)
def test_a_choice_that_only_openai_meets_is_refused_by_any_other_backend(name: str) -> None:
    conversation = decoded(**{"tools": OFFERED, **OWN[name]}).conversation
    assert check_capabilities(conversation, Capabilities(passthrough="openai_responses")) == []
    with pytest.raises(Unsupported) as caught:
        check_capabilities(conversation, Capabilities(passthrough="openai_chat"))
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")


BACK: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "function": ("f", '{"a":1}', {"type": "function_call", "name": "f", "arguments": '{"a":1}'}),
    "truncated arguments": (
        "f",
        '{"a',
        {"type": "function_call", "name": "f", "arguments": '{"a', "status": "incomplete"},
    ),
    "broken arguments": ("f", '{"a"}', {"type": "function_call", "name": "f", "arguments": '{"a"}'}),
    "no arguments": ("f", "", {"type": "function_call", "name": "f", "arguments": "{}"}),
    "unknown function": ("g", "{}", {"type": "function_call", "name": "g", "arguments": "{}"}),
    "namespace": (
        "mcp__x__f",
        "{}",
        {"type": "function_call", "name": "f", "namespace": "mcp__x", "arguments": "{}"},
    ),
    "custom": (
        "patch",
        '{"input":"*** Begin \\"Patch\\"\\n+\\u2028\\n"}',
        {"type": "custom_tool_call", "name": "patch", "input": '*** Begin "Patch"\n+\u2028\n'},
    ),
    "custom without an object": (
        "patch",
        "*** Begin",
        {"type": "custom_tool_call", "name": "patch", "input": "*** Begin"},
    ),
    "custom with more than its input": (
        "patch",
        '{"input":"a","b":1}',
        {"type": "custom_tool_call", "name": "patch", "input": 'a","b":1}'},
    ),
    "custom truncated": (
        "patch",
        '{"input":"a\\u00',
        {"type": "custom_tool_call", "name": "patch", "input": "a\\u00", "status": "incomplete"},
    ),
    "custom without input": ("patch", "", {"type": "custom_tool_call", "name": "patch", "input": ""}),
    "custom in a namespace": (
        "mcp__x__patch",
        '{"input":"a"}',
        {"type": "custom_tool_call", "name": "patch", "namespace": "mcp__x", "input": "a"},
    ),
    "shell": ("shell", '{"commands":["ls"]}', {"type": "shell_call", "action": {"commands": ["ls"]}}),
    "shell truncated": (
        "shell",
        '{"commands":["l',
        {"type": "shell_call", "action": {"arguments": '{"commands":["l'}, "status": "incomplete"},
    ),
    "shell with text": ("shell", "ls", {"type": "shell_call", "action": {"arguments": "ls"}}),
}


@pytest.mark.parametrize("pieces", [1, 3, 100])
@pytest.mark.parametrize("name", BACK)
def test_a_call_comes_back_as_the_client_knows_it(name: str, pieces: int) -> None:
    function, arguments, expected = BACK[name]
    cuts = [arguments[at : at + pieces] for at in range(0, len(arguments), pieces)]
    events: list[Event] = [
        ResponseStart(),
        ToolCallStart(4, "call_1", function),
        *[ToolCallDelta(4, cut) for cut in cuts],
        ToolCallEnd(4),
        Finish("tool_calls"),
    ]
    (item,) = answered(events, decoded(tools=OFFERED), HEAD).done.values()
    assert {"call_id": "call_1", "status": "completed", **expected} == {key: item[key] for key in item if key != "id"}


def deferred(tools: list[Json], *items: Json) -> DeferredTools | None:
    return decoded([{"role": "user", "content": "x"}, *items], tools=tools).conversation.deferred


LATER: Final[dict[str, Json]] = {**FUNCTION, "name": "later", "defer_loading": True}


def test_deferred_tools_wait_for_the_search() -> None:
    inner: Json = {"type": "namespace", "name": "crm", "description": "d", "tools": [{**LATER, "name": "inner"}]}
    custom: Json = {"type": "custom", "name": "patch", "defer_loading": True}
    found = deferred([{"type": "tool_search"}, FUNCTION, LATER, inner, custom])
    assert found == DeferredTools(frozenset({"later", "crm__inner", "patch"}), (), frozenset({"tool_search"}))


def test_a_search_of_the_client_loads_what_its_output_holds() -> None:
    search: Json = {"type": "tool_search", "execution": "client"}
    call: Json = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}}
    output: Json = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [LATER]}
    found = deferred([search, FUNCTION, LATER, {**LATER, "name": "other"}], call, output)
    assert found == DeferredTools(frozenset({"later", "other"}), ((2, "later"),))


def test_without_a_search_nothing_waits() -> None:
    assert deferred([FUNCTION, LATER]) is None
    assert deferred([{"type": "tool_search"}, FUNCTION]) is None
