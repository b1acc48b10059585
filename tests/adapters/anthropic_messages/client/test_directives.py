"""What the messages of the role system that change something are decoded to.

The forms are those of Anthropic's SDK (`BetaSystemMessageParam` and the types that it names), the errors those of
"Mid-conversation system messages".
"""

from typing import Any, Final

import pytest

from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.core.conversation import (
    Conversation,
    Directive,
    EffortChange,
    Text,
    ToolAddition,
    ToolRemoval,
    ToolSpec,
    TurnScope,
)
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.history.directives import in_force
from tests.adapters.anthropic_messages.client.requests import HELLO, conversation

SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"at": {"type": "string"}}}
LOOK: Final[dict[str, Any]] = {"name": "look", "description": "Looks", "input_schema": SCHEMA}
READ: Final[dict[str, Any]] = {"name": "read", "input_schema": SCHEMA}
SEARCH: Final[dict[str, Any]] = {"type": "web_search_20250305", "name": "web_search"}
SAID: Final[dict[str, Any]] = {"role": "assistant", "content": "Hm."}
TOOLS: Final = [LOOK, SEARCH]


def named(name: str) -> dict[str, Any]:
    return {"type": "tool_reference", "name": name}


def defined(definition: Any) -> dict[str, Any]:
    return {"type": "tool_definition", "definition": definition}


def added(tool: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": tool, **fields}


def removed(tool: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_removal", "tool": tool, **fields}


def system(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "system", "content": content, **fields}


def effort(word: Any) -> dict[str, Any]:
    return system([], output_config={"effort": word})


def read(*messages: Any, tools: Any = TOOLS) -> Conversation:
    return conversation(messages=[*messages], tools=tools)


def rules(found: Conversation) -> list[str]:
    return [notice.rule for notice in found.notices]


@pytest.mark.parametrize(
    ("message", "directives"),
    [
        (effort("low"), (EffortChange(1, "low", waits=True),)),
        ({"role": "system", "output_config": {"effort": "max"}}, (EffortChange(1, "max", waits=True),)),
        (system("Now.", output_config={"effort": "xhigh"}), (EffortChange(1, "xhigh", waits=True),)),
        (system("Now.", output_config={}), ()),
        (system("Now.", output_config={"effort": None}), ()),
        (system("Now.", clear_at="next_user_message"), (TurnScope(1),)),
        (system("Now.", clear_at="never"), ()),
        (system("Now.", clear_at=None), ()),
        (system([removed(named("look"))]), (ToolRemoval(1, "look"),)),
        (system([removed(named("look")), added(named("look"))]), (ToolRemoval(1, "look"), ToolAddition(1, "look"))),
        (system([added(defined(READ))]), (ToolAddition(1, "read", READ),)),
        (
            system([added(defined(READ)), removed(named("read"))]),
            (ToolAddition(1, "read", READ), ToolRemoval(1, "read")),
        ),
        (
            system([removed(named("look"))], output_config={"effort": "low"}),
            (ToolRemoval(1, "look"), EffortChange(1, "low", waits=True)),
        ),
    ],
)
def test_a_message_is_read_as_its_directives(message: dict[str, Any], directives: tuple[Directive, ...]) -> None:
    found = read(HELLO, message)
    assert found.directives == directives
    assert found.faults == () and rules(found) == []
    assert [turn.role for turn in found.turns] == ["user", "system"]


def test_text_beside_a_change_of_tools_stays() -> None:
    found = read(HELLO, system([{"type": "text", "text": "No looking."}, removed(named("look"))]))
    assert found.turns[1].blocks == (Text("No looking."),)


def test_an_inline_definition_is_declared_behind_the_tools_of_the_request() -> None:
    found = read(HELLO, system([added(defined(READ))]))
    assert found.tools == (ToolSpec("look", "Looks", SCHEMA), ToolSpec("read", parameters=SCHEMA))


def test_a_definition_of_a_declared_name_replaces_it() -> None:
    """The SDK's `add_tools`: the new tool is run in place of any tool of the same name."""
    other = LOOK | {"description": "Looks twice"}
    found = read(HELLO, system([added(defined(other))]))
    assert found.tools == (ToolSpec("look", "Looks twice", SCHEMA),)
    assert rules(found) == ["TOOL_REPEATED"]
    assert rules(read(HELLO, system([added(defined(LOOK))]))) == []


def test_a_reference_may_name_what_an_earlier_message_defined() -> None:
    found = read(HELLO, system([added(defined(READ))]), SAID, HELLO, system([removed(named("read"))]))
    assert in_force(found).removed == {"read": 4}


def test_a_compaction_says_which_tools_its_range_left_in_force() -> None:
    block = {
        "type": "compaction",
        "content": "Until now.",
        "tool_changes": [removed(named("look")), added(defined(READ))],
    }
    found = read(HELLO, {"role": "assistant", "content": [block]}, HELLO)
    assert found.directives == (ToolRemoval(1, "look"), ToolAddition(1, "read", READ))


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        (named("web_search"), "tool_removal"),
        ({"type": "mcp_tool_reference", "server_name": "s", "name": "x"}, "tool_removal"),
        ({"type": "mcp_toolset_reference", "server_name": "s"}, "tool_removal"),
        ({"type": "x_reference"}, "tool_removal"),
        (defined(SEARCH | {"name": "other_search"}), "tool_addition"),
        (defined({"type": "mcp_toolset", "mcp_server_name": "s"}), "tool_addition"),
    ],
)
def test_a_change_of_a_tool_that_the_client_does_not_run_is_told(tool: dict[str, Any], kind: str) -> None:
    found = read(HELLO, system([{"type": kind, "tool": tool}]))
    assert found.directives == () and rules(found) == ["PART_NOT_SENT"]


def test_other_fields_of_a_directive_are_told() -> None:
    """The SDK: "`format` remains top-level only"."""
    found = read(HELLO, system([], output_config={"effort": "low", "format": {"type": "json_schema"}}, x=1))
    assert [notice.detail for notice in found.notices] == [
        "no other API has a field for 'messages[1].x'",
        "no other API has a field for 'messages[1].output_config.format'",
    ]


def test_an_unknown_directive_is_told() -> None:
    found = read(HELLO, system([{"type": "x_directive", "tool": named("look")}]))
    assert found.directives == () and rules(found) == ["PART_NOT_SENT"]


def test_a_new_word_of_effort_is_for_a_backend_of_the_same_api() -> None:
    found = read(HELLO, effort("most"))
    with pytest.raises(Unsupported) as refused:
        check_capabilities(found, Capabilities())
    assert refused.value.param == "messages[1].output_config.effort"


REMINDER: Final = {"clear_at": "next_user_message"}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (effort(1), "messages[1].output_config.effort"),
        (system([], output_config=1), "messages[1].output_config"),
        (system("x", clear_at="tomorrow"), "messages[1].clear_at"),
        (system("x", clear_at=1), "messages[1].clear_at"),
        ({"role": "user", "content": "x", **REMINDER}, "messages[1].clear_at"),
        ({"role": "assistant", "content": "x", **REMINDER}, "messages[1].clear_at"),
        ({"role": "user", "content": "x", "output_config": {"effort": "low"}}, "messages[1].output_config"),
        (system([removed(named("look"))], **REMINDER), "messages[1]"),
        (system("x", output_config={"effort": "low"}, **REMINDER), "messages[1]"),
        (
            system([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}], **REMINDER),
            "messages[1].content[0].cache_control",
        ),
        ({"role": "user", "content": [removed(named("look"))]}, "messages[1].content[0]"),
        ({"role": "assistant", "content": [added(named("look"))]}, "messages[1].content[0]"),
        (system([removed(named("nothing"))]), "messages[1].content[0].tool.name"),
        (system([{"type": "text", "text": "x"}, added(named("nothing"))]), "messages[1].content[1].tool.name"),
        (system([removed(named(""))]), "messages[1].content[0].tool.name"),
        (system([removed({"type": "tool_reference"})]), "messages[1].content[0].tool.name"),
        (system([removed(defined(READ))]), "messages[1].content[0].tool"),
        (system([{"type": "tool_removal"}]), "messages[1].content[0].tool"),
        (system([removed("look")]), "messages[1].content[0].tool"),
        (system([removed({})]), "messages[1].content[0].tool.type"),
        (system([added({"type": "tool_definition"})]), "messages[1].content[0].tool.definition"),
        (system([added(defined("read"))]), "messages[1].content[0].tool.definition"),
        (system([added(defined({"input_schema": SCHEMA}))]), "messages[1].content[0].tool.definition.name"),
        (system([added(defined(READ | {"input_schema": 1}))]), "messages[1].content[0].tool.definition.input_schema"),
    ],
)
def test_a_directive_of_a_wrong_form_is_refused_at_its_place(message: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(HELLO, message)
    assert refused.value.param == param
    assert param in str(refused.value)


def test_a_reference_to_what_a_later_message_defines_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(HELLO, system([added(named("read"))]), SAID, HELLO, system([added(defined(READ))]))
    assert refused.value.param == "messages[1].content[0].tool.name"


def test_a_directive_in_the_system_prompt_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        conversation(system=[removed(named("look"))], tools=TOOLS)
    assert refused.value.param == "system[0]"


RESULTS: Final = (
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "7"}]},
)


@pytest.mark.parametrize(
    ("messages", "word"),
    [
        ([HELLO, effort("low")], "low"),
        ([HELLO, SAID, effort("low"), HELLO], "low"),
        ([HELLO, effort("low"), SAID, HELLO], "low"),
        ([effort("low"), HELLO], "low"),
        ([HELLO, *RESULTS, effort("low")], None),
        ([HELLO, *RESULTS, effort("low"), SAID, HELLO], "low"),
        ([HELLO, RESULTS[0], effort("low"), RESULTS[1]], None),
        ([HELLO, SAID, effort("low"), system("Now."), HELLO, effort("max")], "max"),
        ([HELLO, effort("low"), *RESULTS, effort("max")], "low"),
        ([HELLO, system("Now."), effort("low")], "low"),
    ],
)
def test_an_effort_begins_with_new_words_of_the_user(messages: list[Any], word: str | None) -> None:
    """Anthropic, "Per-message effort": directly behind a user turn with new input it is for the answer to that,
    anywhere else it begins with the next user turn with new input; a turn of results alone is none."""
    found = in_force(read(*messages)).effort
    assert (None if found is None else found.effort) == word


@pytest.mark.parametrize(
    ("behind", "cleared"),
    [((), set()), ((SAID,), set()), ((SAID, HELLO), {1}), (RESULTS, {1}), ((system("x", **REMINDER),), set())],
)
def test_the_text_of_one_turn_is_cleared_by_the_next_message_of_the_user(
    behind: tuple[dict[str, Any], ...], cleared: set[int]
) -> None:
    """Anthropic, "Turn-scoped system messages": a message of results is one of the user; an answer clears nothing."""
    assert in_force(read(HELLO, system("Now.", **REMINDER), *behind)).cleared == cleared


def test_a_tool_may_come_back() -> None:
    away, back = system([removed(named("look"))]), system([added(named("look"))])
    assert in_force(read(HELLO, away, SAID, HELLO)).removed == {"look": 1}
    assert in_force(read(HELLO, away, SAID, HELLO, back)).removed == {}
    assert in_force(read(HELLO, away, SAID, HELLO, back, SAID, HELLO, away)).removed == {"look": 7}
    assert in_force(read(away, HELLO)).removed == {"look": 0}
