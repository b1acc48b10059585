import msgspec
import pytest

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import Conversation, Json, ToolSpec
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from tests.adapters.warp.backend.sent import EXECUTE, both, conversation, rules, sent, user

MCP = pb.TOOL_CALL_MCP_TOOL
GREP = ToolSpec("grep")
SHELL = ToolSpec("run_shell_command")


def asking(*tools: ToolSpec) -> Conversation:
    return conversation(user("hi"), tools=tools)


def test_all_tools_stand_on_one_server_with_their_schemas() -> None:
    schema: dict[str, Json] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    request = sent(asking(ToolSpec("a", "does a", schema), EXECUTE), server_name="mine", server_id="7")
    (server,) = request.mcp_context.servers
    assert (server.name, server.id, [tool.name for tool in server.tools]) == ("mine", "7", ["a", "Execute"])
    assert server.tools[0].description == "does a"
    assert server.tools[0].input_schema.fields["required"].list_value.values[0].string_value == "n"
    assert not request.mcp_context.tools


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    (server,) = sent(asking(GREP)).mcp_context.servers
    assert server.tools[0].input_schema.fields["type"].string_value == "object"


def test_without_tools_there_is_no_server() -> None:
    assert not sent(asking()).HasField("mcp_context")


@pytest.mark.parametrize("disabled", [True, False])
@pytest.mark.parametrize("tools", [(), (EXECUTE,), (GREP, SHELL)])
def test_the_list_of_supported_tools_is_never_empty_and_opens_no_tool_of_the_wire(
    tools: tuple[ToolSpec, ...], disabled: bool
) -> None:
    assert list(sent(asking(*tools), Policy(disable_warp_tools=disabled)).settings.supported_tools) == [MCP]


def test_an_exposed_tool_of_the_wire_is_one_that_the_client_declares() -> None:
    settings = sent(asking(SHELL, EXECUTE, SHELL), native_tools="expose").settings
    assert list(settings.supported_tools) == [MCP, pb.TOOL_RUN_SHELL_COMMAND]
    assert list(sent(asking(EXECUTE), native_tools="expose").settings.supported_tools) == [MCP]


def test_a_tool_of_the_wire_whose_arguments_cannot_be_read_is_not_exposed() -> None:
    assert list(sent(asking(GREP), native_tools="expose").settings.supported_tools) == [MCP]


def test_disabled_tools_of_the_wire_are_not_exposed() -> None:
    settings = sent(asking(GREP, SHELL), Policy(disable_warp_tools=True), native_tools="expose").settings
    assert list(settings.supported_tools) == [MCP]


# Every tool of the wire, by the name under which a client could declare it.
OF_THE_WIRE = [ToolSpec(name.removeprefix("TOOL_").lower()) for name in pb.ToolType.DESCRIPTOR.values_by_name]


def test_every_type_of_tool_has_its_call() -> None:
    calls = pb.Message.ToolCall.DESCRIPTOR.oneofs_by_name["tool"].fields
    assert {tool.name for tool in OF_THE_WIRE} == {field.name for field in calls} - {"server"}


@pytest.mark.parametrize("native_tools", ["drop", "expose"])
def test_disabling_the_tools_of_the_wire_disables_every_one(native_tools: str) -> None:
    disabled = Policy(disable_warp_tools=True)
    settings = sent(asking(*OF_THE_WIRE), disabled, native_tools=native_tools).settings
    assert list(settings.supported_tools) == [MCP]
    assert not settings.supported_cli_agent_tools


def test_only_tools_whose_arguments_can_be_read_are_ever_exposed() -> None:
    settings = sent(asking(*OF_THE_WIRE), native_tools="expose").settings
    assert list(settings.supported_tools) == [MCP, pb.TOOL_RUN_SHELL_COMMAND]


def test_tool_choice_none_offers_nothing_and_says_so() -> None:
    asked = msgspec.structs.replace(asking(SHELL), tool_choice="none")
    request, notices = both(asked, native_tools="expose")
    assert not request.HasField("mcp_context")
    assert list(request.settings.supported_tools) == [MCP]
    assert "TOOLS_NOT_OFFERED" in rules(notices)


@pytest.mark.parametrize("parallel", [True, False])
def test_parallel_calls_are_allowed_or_not_as_the_client_says(parallel: bool) -> None:
    settings = sent(msgspec.structs.replace(asking(EXECUTE), parallel_tool_calls=parallel)).settings
    assert settings.HasField("supports_parallel_tool_calls")
    assert settings.supports_parallel_tool_calls is parallel


def test_rounded_numbers_of_a_schema_are_counted() -> None:
    tool = ToolSpec("big", "", {"type": "object", "properties": {"n": {"maximum": 2**63 - 1}}})
    _, notices = both(asking(tool))
    assert rules(notices) == ["NUMBER_INEXACT"]


def test_a_schema_that_nests_too_deep_is_refused_by_its_place() -> None:
    schema: dict[str, Json] = {}
    for _ in range(40):
        schema = {"items": schema}
    with pytest.raises(Unsupported) as caught:
        sent(asking(EXECUTE, ToolSpec("deep", "", schema)))
    assert caught.value.param == "tools[1].function.parameters"
