import msgspec
import pytest

from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import EMULATED, GATEWAY_FIELDS, REFUSED, check_capabilities, unsent_fields
from gateway.core.conversation import (
    Conversation,
    Json,
    JsonObject,
    NamedTool,
    OtherTool,
    Text,
    ToolChoice,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported

TEXT_ONLY = Capabilities(tools=False)
TOOLS = Capabilities()
NATIVE = Capabilities(passthrough="chat")
TOOL = ToolSpec("f")

REFUSALS: list[tuple[str, Json]] = [
    ("logprobs", True),
    ("top_logprobs", 3),
    ("response_format", {"type": "json_object"}),
    ("response_format", {"type": "json_schema", "json_schema": {}}),
    ("modalities", ["text", "audio"]),
    ("audio", {"voice": "alloy"}),
    ("logit_bias", {"50256": -100}),
    ("web_search_options", {}),
]
HARMLESS: list[tuple[str, Json]] = [
    ("logprobs", False),
    ("logprobs", None),
    ("top_logprobs", 0),
    ("response_format", {"type": "text"}),
    ("response_format", {}),
    ("modalities", ["text"]),
    ("logit_bias", {}),
    ("web_search_options", None),
]


def test_every_refusal_is_tested() -> None:
    assert {name for name, _ in REFUSALS} == set(REFUSED)


@pytest.mark.parametrize(("name", "value"), REFUSALS)
def test_a_field_that_changes_the_answer_is_refused(name: str, value: Json) -> None:
    with pytest.raises(Unsupported) as caught:
        check_capabilities(_asking({name: value}), TOOLS)
    assert caught.value.param == name and name in caught.value.message
    assert caught.value.status == 400 and caught.value.code == "unsupported_parameter"


@pytest.mark.parametrize(("name", "value"), REFUSALS)
def test_a_backend_that_honours_the_field_receives_it(name: str, value: Json) -> None:
    assert check_capabilities(_asking({name: value}), Capabilities(supported_params=frozenset({name}))) == []
    assert check_capabilities(_asking({name: value}), NATIVE) == []


@pytest.mark.parametrize(("name", "value"), HARMLESS)
def test_a_value_that_asks_for_nothing_is_not_refused(name: str, value: Json) -> None:
    assert check_capabilities(_asking({name: value}), TOOLS) == []


def test_deprecated_fields_are_read_as_the_newer_ones_unless_both_are_sent() -> None:
    deprecated: dict[str, Json] = {"functions": [{"name": "f"}], "function_call": "auto"}
    assert check_capabilities(_asking(deprecated), TOOLS) == []
    both = check_capabilities(_asking({**deprecated, "tools": [], "tool_choice": "auto"}), TOOLS)
    assert [notice.rule for notice in both] == ["FIELD_NOT_SENT"] * 2


@pytest.mark.parametrize("name", ["temperature", "user", "metadata", "invented_tomorrow"])
def test_a_field_without_effect_is_reported_by_name(name: str) -> None:
    (notice,) = check_capabilities(_asking({name: "secret value"}), TOOLS)
    assert (notice.stage, notice.action, notice.rule) == ("encode", "dropped", "FIELD_NOT_SENT")
    assert name in notice.detail and "secret" not in notice.detail


@pytest.mark.parametrize("name", sorted((EMULATED | GATEWAY_FIELDS) - {"n"}))
def test_our_own_fields_are_not_reported(name: str) -> None:
    assert check_capabilities(_asking({name: "anything"}), TOOLS) == []


@pytest.mark.parametrize("capabilities", [TOOLS, NATIVE])
@pytest.mark.parametrize("n", [0, 2, "1"])
def test_more_than_one_answer_is_refused_everywhere(capabilities: Capabilities, n: Json) -> None:
    with pytest.raises(Unsupported) as caught:
        check_capabilities(_asking({"n": n}), capabilities)
    assert caught.value.param == "n"


@pytest.mark.parametrize("n", [1, None])
def test_one_answer_is_what_everybody_gets(n: Json) -> None:
    assert check_capabilities(_asking({"n": n}), TOOLS) == []


def test_tools_are_refused_by_a_backend_without_them() -> None:
    with pytest.raises(Unsupported) as caught:
        check_capabilities(_asking({}, tools=(TOOL,)), TEXT_ONLY)
    assert caught.value.param == "tools"
    assert check_capabilities(_asking({}, tools=(TOOL,)), TOOLS) == []


@pytest.mark.parametrize("choice", ["required", NamedTool("f")])
def test_a_forced_call_is_refused_where_nobody_can_force(choice: ToolChoice) -> None:
    conversation = _asking({}, tools=(TOOL,), tool_choice=choice)
    with pytest.raises(Unsupported) as caught:
        check_capabilities(conversation, TOOLS)
    assert caught.value.param == "tool_choice"
    assert check_capabilities(conversation, Capabilities(supported_params=frozenset({"tool_choice"}))) == []


@pytest.mark.parametrize("value", [True, False])
def test_parallel_calls_can_be_forbidden_at_any_backend(value: bool) -> None:
    asked = _asking({"parallel_tool_calls": value}, tools=(TOOL,))
    assert check_capabilities(asked, TOOLS) == []
    assert unsent_fields(asked, TOOLS) == ()


def _asking(params: JsonObject, tools: tuple[ToolSpec, ...] = (), tool_choice: ToolChoice = "auto") -> Conversation:
    return Conversation((Turn("user", (Text("hi"),), index=0),), tools, tool_choice, params=params, dialect="chat")


def test_a_tool_that_only_its_provider_has_is_reported() -> None:
    others = (OtherTool("web_search"), OtherTool("custom"))
    conversation = Conversation((Turn("user", (Text("x"),)),), (TOOL,), dialect="chat", other_tools=others)
    told = check_capabilities(conversation, Capabilities())
    assert [(notice.rule, notice.action) for notice in told] == [("TOOL_NOT_SENT", "dropped")] * 2
    assert "web_search" in told[0].detail
    assert check_capabilities(conversation, NATIVE) == []


@pytest.mark.parametrize(
    ("choice", "tools", "refused"),
    [
        ("auto", (), False),
        ("none", (), False),
        ("required", (), True),
        ("required", (TOOL,), False),
        (NamedTool("f"), (TOOL,), False),
        (NamedTool("web_search"), (TOOL,), True),
    ],
)
def test_a_choice_that_only_a_tool_of_the_provider_fulfils_is_refused(
    choice: ToolChoice, tools: tuple[ToolSpec, ...], refused: bool
) -> None:
    asked = msgspec.structs.replace(_asking({}, tools, choice), other_tools=(OtherTool("web_search"),))
    forcible = Capabilities(supported_params=frozenset({"tool_choice"}))
    assert len(check_capabilities(asked, NATIVE)) == 0
    if not refused:
        assert len(check_capabilities(asked, forcible)) == 1
        return
    with pytest.raises(Unsupported) as caught:
        check_capabilities(asked, forcible)
    assert caught.value.param == "tool_choice"


def test_no_notice_holds_a_line_break() -> None:
    asked = msgspec.structs.replace(_asking({"a\nb": 1}), other_tools=(OtherTool("c\nd"),))
    told = check_capabilities(asked, TOOLS)
    assert [notice.rule for notice in told] == ["TOOL_NOT_SENT", "FIELD_NOT_SENT"]
    assert not [notice for notice in told if "\n" in notice.detail]
