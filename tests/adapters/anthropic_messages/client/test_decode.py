"""What a request of the Messages API is decoded to, field by field and block by block."""

import hashlib
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.dialect import AnthropicMessagesDialect
from adapters.anthropic_messages.messages import encode_message
from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.core.conversation import (
    Block,
    File,
    Image,
    Json,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.history.prepare import prepare
from tests.adapters.anthropic_messages.client.requests import (
    HELLO,
    conversation,
    decoded,
    history,
    merged_messages,
    request,
)

CACHED: Final[dict[str, Json]] = {"cache_control": {"type": "ephemeral"}}
PNG: Final = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
REMOTE_PDF: Final[dict[str, Json]] = {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}}
PDF: Final[dict[str, Json]] = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
}
CALL: Final = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": 1, "a": [2.50, "é"]}}
CALLING: Final = {"role": "assistant", "content": [CALL]}


def state(**fields: object) -> dict[str, Any]:
    return {"extra_content": {"anthropic": fields}}


STORED: Final[tuple[dict[str, Any], ...]] = tuple(
    {"type": kind, "source": {"type": "file", "file_id": "file_1"}} for kind in ("image", "document")
)


def result(content: object = None, **fields: object) -> dict[str, Any]:
    given = {} if content is None else {"content": content}
    return {"type": "tool_result", "tool_use_id": "toolu_1", **given, **fields}


@pytest.mark.parametrize(
    ("field", "value", "name", "expected"),
    [
        ("stop_sequences", ["a", "b"], "stop", ["a", "b"]),
        ("temperature", 0.5, "temperature", 0.5),
        ("top_p", 0.5, "top_p", 0.5),
        ("top_k", 5, "top_k", 5),
        ("top_k", 5.0, "top_k", 5),
        ("output_config", {"effort": "medium"}, "reasoning_effort", "medium"),
        ("output_config", {"effort": "max"}, "reasoning_effort", "max"),
        ("output_config", {"effort": "xhigh"}, "reasoning_effort", "xhigh"),
        ("thinking", {"type": "enabled", "budget_tokens": 1024}, "reasoning_effort", "low"),
        ("thinking", {"type": "enabled", "budget_tokens": 4096}, "reasoning_effort", "medium"),
        ("thinking", {"type": "enabled", "budget_tokens": 16384}, "reasoning_effort", "high"),
        ("thinking", {"type": "enabled", "budget_tokens": -1}, "reasoning_effort", None),
        ("thinking", {"type": "adaptive", "budget_tokens": 0}, "reasoning_effort", None),
        ("thinking", {"type": "disabled"}, "reasoning_effort", None),
        ("thinking", {"type": "disabled"}, "thinking", {"type": "disabled"}),
        ("thinking", {"type": "adaptive"}, "thinking", {"type": "adaptive"}),
        ("thinking", {"type": "enabled", "budget_tokens": 1024}, "thinking", None),
        ("metadata", {"user_id": "u" * 64}, "user", "u" * 64),
        ("metadata", {"user_id": "u" * 65}, "user", hashlib.sha256(b"u" * 65).hexdigest()),
        ("metadata", {}, "user", None),
        ("tool_choice", {"type": "auto", "disable_parallel_tool_use": True}, "parallel_tool_calls", False),
        ("tool_choice", {"type": "auto", "disable_parallel_tool_use": False}, "parallel_tool_calls", None),
        ("mcp_servers", [], "mcp_servers", None),
    ],
)
def test_a_field_has_its_canonical_name(field: str, value: object, name: str, expected: object) -> None:
    assert conversation(**{field: value}).params.get(name) == expected


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"output_config": {"effort": "max"}}, []),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}}, []),
        ({"thinking": {"type": "adaptive"}}, []),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, ["EFFORT_CHANGED"]),
        (
            {"output_config": {"effort": "low"}, "thinking": {"type": "enabled", "budget_tokens": 20000}},
            ["FIELD_NOT_SENT"],
        ),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "enabled"}}, []),
        ({"output_config": {"effort": "low"}, "thinking": {"type": "disabled", "budget_tokens": 2}}, []),
        ({"thinking": {"type": "enabled", "budget_tokens": -1}}, []),
        ({"metadata": {"user_id": "u" * 65, "other": 1}}, ["FIELD_NOT_SENT", "USER_HASHED"]),
        ({"output_config": {"task_budget": {"total": 1}}}, ["FIELD_NOT_SENT"]),
        ({"context_management": None}, []),
    ],
)
def test_what_has_no_canonical_name_is_reported(fields: dict[str, Any], rules: list[str]) -> None:
    assert [notice.rule for notice in conversation(**fields).notices] == rules


def test_the_sampling_and_the_schema() -> None:
    schema = {"type": "object", "properties": {}}
    asked = conversation(
        stop_sequences=["x"],
        temperature=0,
        top_p=1,
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert asked.sampling == Sampling(0, 1, 64, ("x",))
    assert asked.params["response_format"] == {
        "type": "json_schema",
        "json_schema": {"schema": schema, "strict": True},
    }
    assert asked.include_usage and not asked.stream


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "messages"),
        ({"model": " "}, "model"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stream": "yes"}, "stream"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"type": "bash_20250124"}]}, "tools[0].name"),
        ({"tools": [{"name": "f", "input_schema": "x"}]}, "tools[0].input_schema"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tool_choice": {"type": 1}}, "tool_choice.type"),
        ({"output_config": {"effort": 1}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"thread": {"type": "continue", "previous_message_id": "msg_1"}}, "thread"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"tool_choice": {"type": "all"}}, "tool_choice.type"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type"),
    ],
)
def test_a_new_word_is_for_a_backend_of_the_same_api_alone(fields: dict[str, Any], path: str) -> None:
    asked = conversation(**fields)
    assert asked.own_fields == (path,)
    with pytest.raises(Unsupported) as caught:
        check_capabilities(asked, Capabilities(tools=True))
    assert (caught.value.status, caught.value.param) == (400, path)


def test_a_thread_is_refused_in_the_words_that_claude_code_knows() -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(thread={"type": "continue", "previous_message_id": "msg_1"})
    assert "capability_rejected: beta_header:message-threads-2026-08-12" in caught.value.message
    assert caught.value.extra["details"] == {"error_code": "thread_unsupported_request"}


@pytest.mark.parametrize("missing", ["model", "messages", "max_tokens"])
def test_a_required_field_is_named(missing: str) -> None:
    body = {"model": "m", "max_tokens": 64, "messages": [HELLO]}
    del body[missing]
    with pytest.raises(InvalidRequest) as caught:
        decoded(body)
    assert (caught.value.code, caught.value.param) == ("missing_required_parameter", missing)


def test_a_count_needs_no_limit() -> None:
    head = RequestHead("/v1/messages/count_tokens")
    assert decoded({"model": "m", "messages": [HELLO]}, head).conversation.sampling.max_tokens is None


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": "a", "citations": None, **CACHED}, Text("a", CACHED)),
        ({"type": "image", "source": PNG}, Image("data:image/png;base64,AAAA", item=1)),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}, **CACHED}, Image("https://x", CACHED, 1)),
        (PDF, File("document", PDF, 1, "data:application/pdf;base64,AAAA")),
        ({**PDF, "title": "T"}, File("document", {**PDF, "title": "T"}, 1, "data:application/pdf;base64,AAAA", "T")),
        (REMOTE_PDF, File("document", REMOTE_PDF, 1, "https://x/a.pdf")),
        *((block, File("file", block, 1)) for block in STORED),
        (
            {"type": "document", "source": {"type": "content", "content": [STORED[0]]}},
            File("file", STORED[0], 1),
        ),
        ({"type": "document", "title": "T", "source": {"type": "text", "data": "a"}}, Text("T\na")),
        ({"type": "document", "context": "C", "source": {"type": "content", "content": "a"}}, Text("C\na")),
        (
            {"type": "document", "title": "T", "source": {"type": "text", "data": "a"}, **CACHED},
            Text("T\na", CACHED),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": PNG}]}},
            Image("data:image/png;base64,AAAA", item=1),
        ),
        (
            {"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "a"}]},
            Text("T\nS\na"),
        ),
        (
            {"type": "container_upload", "file_id": "f"},
            File("container_upload", {"type": "container_upload", "file_id": "f"}, 1),
        ),
    ],
)
def test_a_block_of_a_user_is_read(block: dict[str, Any], expected: Block) -> None:
    asked = history({"role": "user", "content": [{"type": "text", "text": "first"}, block]})
    assert asked.turns[0].blocks == (Text("first"), expected)
    assert not asked.faults


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (CALL, ToolCall("toolu_1", "f", '{"b":1,"a":[2.5,"é"]}', item=1)),
        (
            {**CALL, "input": {}, "caller": {"type": "direct"}},
            ToolCall("toolu_1", "f", "{}", {"caller": {"type": "direct"}}, item=1),
        ),
        ({"type": "thinking", "thinking": "t", "signature": "s"}, Reasoning("t", extra=state(signature="s"))),
        ({"type": "thinking", "thinking": "t", "signature": ""}, Reasoning("t")),
        ({"type": "thinking", "thinking": "", "signature": "s"}, Reasoning("", extra=state(signature="s"))),
        ({"type": "redacted_thinking", "data": "d"}, Reasoning("", extra=state(data="d"))),
        ({"type": "compaction", "content": "summary"}, Text("summary")),
    ],
)
def test_a_block_of_the_assistant_is_read(block: dict[str, Any], expected: Block) -> None:
    asked = history(HELLO, {"role": "assistant", "content": [{"type": "text", "text": "first"}, block]})
    assert asked.turns[1].blocks == (Text("first"), expected)
    assert [turn.compaction for turn in asked.turns] == [False, block["type"] == "compaction"]
    assert not asked.faults


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "compaction", "content": None},
    ],
)
def test_a_block_that_says_nothing_is_left_out(block: dict[str, Any]) -> None:
    asked = history(HELLO, {"role": "assistant", "content": [{"type": "text", "text": "first"}, block]})
    assert asked.turns[1].blocks == (Text("first"),) and not asked.faults
    assert not asked.turns[1].compaction


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (result(), ToolResult("toolu_1", (), item=0)),
        (result([]), ToolResult("toolu_1", (), item=0)),
        (result("ok"), ToolResult("toolu_1", (Text("ok"),), item=0)),
        (result("no", is_error=True), ToolResult("toolu_1", (Text("no"),), True, item=0)),
        (
            result(
                [
                    {"type": "text", "text": "a"},
                    {"type": "image", "source": PNG},
                    {"type": "tool_reference", "tool_name": "g"},
                ]
            ),
            ToolResult("toolu_1", (Text("a"), Image("data:image/png;base64,AAAA", item=1), Text("g")), item=0),
        ),
    ],
)
def test_a_result_is_a_turn_of_its_own(block: dict[str, Any], expected: ToolResult) -> None:
    asked = history(HELLO, CALLING, {"role": "user", "content": [block]})
    assert [(turn.role, turn.blocks) for turn in asked.turns[2:]] == [("tool", (expected,))]
    assert not asked.faults and not asked.notices


def test_results_stand_before_the_rest_of_their_message() -> None:
    said, other = {"type": "text", "text": "and now?"}, result("two", tool_use_id="toolu_2", **CACHED)
    message = {"role": "user", "content": [said, result("one"), other]}
    calling = {"role": "assistant", "content": [CALL, {**CALL, "id": "toolu_2"}]}
    asked = history(HELLO, calling, message)
    turns = asked.turns[2:]
    assert [(turn.role, turn.index) for turn in turns] == [("tool", 2), ("tool", 2), ("user", 2)]
    assert [block.text for turn in turns for block in turn.blocks if isinstance(block, Text | ToolResult)] == [
        "one",
        "two",
        "and now?",
    ]
    assert (turns[0].extra, turns[1].extra) == ({}, CACHED)
    assert [(notice.rule, notice.action) for notice in asked.notices] == [("RESULTS_FIRST", "moved")]
    merged = merged_messages(turns)
    assert merged == [{"role": "user", "content": [result("one"), other, said]}]


def test_empty_text_beside_results_is_no_turn() -> None:
    empty = {"type": "text", "text": ""}
    for content in ([result("ok"), empty], [empty, result("ok"), empty]):
        asked = history(HELLO, CALLING, {"role": "user", "content": content})
        assert [turn.role for turn in asked.turns[2:]] == ["tool"]
        assert not asked.faults and not asked.notices
    unread = {"type": "new_block"}
    asked = history(HELLO, CALLING, {"role": "user", "content": [result("ok"), unread]})
    assert [turn.role for turn in asked.turns[2:]] == ["tool", "user"]


def test_arguments_that_are_text_are_taken_as_json_text() -> None:
    written = '{"b": 1}'
    asked = history(HELLO, {"role": "assistant", "content": [{**CALL, "input": written}]})
    assert [call.arguments for call in asked.turns[1].calls] == [written]
    assert [fault.rule for fault in asked.faults] == ["CALL_ARGS_TYPE"]


def test_the_blocks_of_tools_that_ran_elsewhere_are_reported() -> None:
    hosted = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}] * 2
    asked = history(HELLO, {"role": "assistant", "content": [*hosted, {"type": "text", "text": "found"}]})
    assert asked.turns[1].blocks == (Text("found"),)
    (notice,) = asked.notices
    assert (notice.rule, notice.action, notice.index, notice.level) == ("PART_NOT_SENT", "dropped", 1, "warning")
    assert "server_tool_use" in notice.detail and "2" in notice.detail
    source = asked.turns[1].source
    assert source is not None and source.value["content"] == [*hosted, {"type": "text", "text": "found"}]


@pytest.mark.parametrize("system", ["You are brief.", [{"type": "text", "text": "You are brief.", **CACHED}]])
def test_the_system_prompt_is_the_first_turn(system: object) -> None:
    asked = conversation(system=system)
    assert [(turn.role, turn.text, turn.index) for turn in asked.turns] == [
        ("system", "You are brief.", None),
        ("user", "Hello", 0),
    ]
    assert asked.source is not None and "system" not in asked.source.value


def test_the_billing_header_is_left_out_for_other_backends_alone() -> None:
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1"},
        {"type": "text", "text": "Be brief."},
    ]
    asked = conversation(system=system)
    assert asked.turns[0].text == "Be brief."
    assert [notice.rule for notice in asked.notices] == ["FIELD_NOT_SENT"]
    assert encode_message(asked.turns[0]) == {"role": "system", "content": system}


def test_a_system_message_may_stand_anywhere() -> None:
    asked = history(HELLO, {"role": "system", "content": "Now be brief."}, HELLO)
    assert [turn.role for turn in asked.turns] == ["user", "system", "user"] and not asked.faults


@pytest.mark.parametrize(
    ("message", "rule", "param"),
    [
        ("Hello", "NOT_OBJECT", "messages[1]"),
        ({"content": "x"}, "ROLE_TYPE", "messages[1].role"),
        ({"role": "robot", "content": "x"}, "ROLE_UNKNOWN", "messages[1].role"),
        ({"role": "user"}, "CONTENT_MISSING", "messages[1].content"),
        ({"role": "user", "content": []}, "CONTENT_EMPTY_ARRAY", "messages[1].content"),
        ({"role": "user", "content": 5}, "CONTENT_TYPE", "messages[1].content"),
        ({"role": "user", "content": ["x"]}, "PART_TYPE", "messages[1].content[0]"),
        ({"role": "user", "content": [{"text": "x"}]}, "PART_TYPE", "messages[1].content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "PART_TYPE", "messages[1].content[0]"),
        ({"role": "user", "content": [CALL]}, "PART_TYPE", "messages[1].content[0]"),
        ({"role": "assistant", "content": [result("x")]}, "PART_TYPE", "messages[1].content[0]"),
        ({"role": "assistant", "content": [{**CALL, "id": ""}]}, "CALL_ID_MISSING", "messages[1].content[0].id"),
        ({"role": "assistant", "content": [{**CALL, "name": None}]}, "CALL_NAME", "messages[1].content[0].name"),
        ({"role": "assistant", "content": [{**CALL, "input": "x"}]}, "CALL_ARGS_TYPE", "messages[1].content[0].input"),
        (
            {"role": "user", "content": [result("x", tool_use_id=None)]},
            "TOOL_ID_MISSING",
            "messages[1].content[0].tool_use_id",
        ),
        (
            {"role": "user", "content": [result([{"type": "text"}])]},
            "PART_TYPE",
            "messages[1].content[0].content[0]",
        ),
    ],
)
def test_a_fault_is_found_at_the_clients_own_path(message: object, rule: str, param: str) -> None:
    (fault,) = history(HELLO, message).faults
    assert (fault.rule, fault.index, fault.param) == (rule, 1, param)


def test_the_path_of_an_unanswered_call_is_the_clients_own() -> None:
    asked = history(HELLO, {"role": "assistant", "content": [{"type": "text", "text": "a"}, CALL]}, HELLO)
    (found,) = prepare(asked, Policy()).violations
    assert found.rule == "CALLS_UNANSWERED" and found.param.startswith("messages[1].content")


def test_neighbouring_messages_with_calls_are_one_turn_whose_calls_have_paths_of_their_own() -> None:
    said = {"type": "text", "text": "Hm."}
    calling = [{"role": "assistant", "content": [said, {**CALL, "id": name}]} for name in "ab"]
    asked = history(HELLO, *calling)
    _, turn = asked.turns
    assert [(call.id, call.item) for call in turn.calls] == [("a", 1), ("b", 3)]
    assert turn.source is not None
    assert turn.source.value["content"] == [block for message in calling for block in message["content"]]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, "auto"),
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, NamedTool("f")),
    ],
)
def test_the_tool_choice(choice: object, expected: ToolChoice) -> None:
    assert conversation(tool_choice=choice).tool_choice == expected


def test_the_tools() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = conversation(
        tools=[
            {
                "name": "f",
                "description": "One.",
                "input_schema": schema,
                "strict": True,
                "defer_loading": True,
                **CACHED,
            },
            {"type": "custom", "name": "g", "input_schema": schema},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 1000},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
            {"type": "mcp_toolset", "mcp_server_name": "x"},
        ]
    )
    assert [tool.name for tool in asked.tools] == ["f", "g", "bash", "str_replace_based_edit_tool"]
    first, second, bash, editor = asked.tools
    assert (first.description, first.parameters, first.strict) == ("One.", schema, True)
    assert first.extra == {"defer_loading": True, **CACHED}
    assert (second.extra, second.strict) == ({}, None)
    assert bash.parameters["properties"].keys() == {"command", "restart"}  # type: ignore[union-attr]  # an object
    assert bash.description and editor.extra == {"max_characters": 1000}
    assert [tool.kind for tool in asked.other_tools] == ["web_search_20250305", "mcp_toolset"]


def test_the_source_holds_the_fields_and_the_betas_as_sent() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [HELLO], "system": "s", "context_management": {"edits": []}}
    head = RequestHead("/v1/messages", headers={b"anthropic-beta": b"one,two"})
    source = decoded(body, head).conversation.source
    assert source is not None and source.dialect == AnthropicMessagesDialect.name
    assert source.value == {
        "model": "m",
        "max_tokens": 1,
        "context_management": {"edits": []},
        "anthropic_beta": "one,two",
    }
