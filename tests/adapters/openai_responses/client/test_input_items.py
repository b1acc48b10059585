"""Items become turns, faults are listed at the client's own paths, and nothing is lost for a backend of the dialect."""

from typing import Any, Final

import pytest

from adapters.openai_responses.call_items import OUTPUT_KINDS
from adapters.openai_responses.client.decode import decode_document
from adapters.openai_responses.tools import tool_names
from adapters.openai_responses.turn_items import ItemEncoder, encode_turn
from gateway.core.conversation import Conversation, File, Image, Reasoning, Text, ToolCall, ToolResult
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.core.provider_state import provider_state
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.history.own_state import UNREADABLE
from gateway.testing.dialect_case import GREETING
from tests.adapters.openai_responses.client.requests import read, refused
from tests.adapters.openai_responses.client.wires import NATIVE

USER: Final[dict[str, Any]] = {"role": "user", "content": "Hi"}
ROME: Final = '{"city":"Rome"}'


def blocks(*items: Any, **fields: Any) -> list[Any]:
    """The blocks of the turn that these items are."""
    (turn,) = read([*items], **fields).turns
    return [*turn.blocks]


def rules(conversation: Conversation) -> list[tuple[str, str]]:
    return [(fault.rule, fault.param) for fault in conversation.faults]


CALLS: Final[dict[str, tuple[dict[str, Any], str, str]]] = {
    "function": ({"type": "function_call", "call_id": "c", "name": "f", "arguments": ROME}, "f", ROME),
    "function in a namespace": (
        {"type": "function_call", "call_id": "c", "name": "f", "namespace": "mcp__x__", "arguments": "{"},
        "mcp__x__f",
        "{",
    ),
    "custom": (
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": 'a "b"'},
        "patch",
        '{"input":"a \\"b\\""}',
    ),
    "tool_search": (
        {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}, "execution": "client"},
        "tool_search",
        '{"query":"x"}',
    ),
    "local_shell": (
        {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        "local_shell",
        '{"type":"exec","command":["ls"],"env":{}}',
    ),
    "shell": (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        "shell",
        '{"commands":["ls"]}',
    ),
    "apply_patch": (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        '{"type":"delete_file","path":"a"}',
    ),
}


def test_a_custom_call_that_the_backend_ran_is_no_call() -> None:
    """xAI writes the calls of its own search as those of a custom tool, and runs them."""
    call = {"type": "custom_tool_call", "call_id": "c", "name": "x_keyword_search", "input": "{}"}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    user = {"role": "user", "content": "x"}
    conversation = read([call, user], tools=[{"type": "x_search"}])
    assert [turn.role for turn in conversation.turns] == ["user"]
    assert [notice.rule for notice in conversation.notices] == ["ITEM_NOT_SENT"]
    # A client that has run it no longer needs to offer it.
    assert [turn.role for turn in read([call, output, user]).turns] == ["assistant", "tool", "user"]


@pytest.mark.parametrize("kind", OUTPUT_KINDS)
def test_a_custom_call_with_an_output_of_any_type_is_one_that_the_client_ran(kind: str) -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}
    output = {"type": kind, "call_id": "c", "output": "ok"}
    conversation = read([call, output, USER])
    assert [turn.role for turn in conversation.turns] == ["assistant", "tool", "user"]
    assert conversation.notices == ()


def test_an_output_may_have_any_value_as_its_type() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}
    assert [turn.role for turn in read([call, {"type": [], "call_id": "c"}, USER]).turns] == ["user", "user"]


@pytest.mark.parametrize("written", [None, {"a": 1}])
def test_the_input_of_a_custom_call_that_is_no_text_stays_its_input(written: Any) -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": written}
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    conversation = read([call, output, USER])
    (made,) = conversation.turns[0].calls
    assert made.arguments == ('{"input":""}' if written is None else '{"input":"{\\"a\\":1}"}')
    assert rules(conversation) == [("CALL_ARGS_TYPE", "input[0].input")]


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_becomes_a_call_of_a_function(kind: str) -> None:
    item, name, arguments = CALLS[kind]
    # A custom tool is the backend's own unless the request offers it.
    assert blocks(item, tools=[{"type": "custom", "name": "patch"}]) == [ToolCall("c", name, arguments, item=0)]


OUTPUTS: Final[dict[str, tuple[dict[str, Any], str, bool]]] = {
    "text": ({"type": "function_call_output", "call_id": "c", "output": "19"}, "19", False),
    "parts": (
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "19"}]},
        "19",
        False,
    ),
    "custom": ({"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}, "ok", False),
    "local_shell": ({"type": "local_shell_call_output", "id": "c", "output": "ok"}, "ok", False),
    "shell": (
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "stderr": ""}]},
        '[{"stdout":"a","stderr":""}]',
        False,
    ),
    "failed patch": (
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such line"},
        "no such line",
        True,
    ),
    "patch without words": (
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        "completed",
        False,
    ),
    "tool_search": (
        {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "found"}]},
        '{"tools":["found"]}',
        False,
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_becomes_a_result(name: str) -> None:
    item, text, failed = OUTPUTS[name]
    assert blocks(item) == [ToolResult("c", (Text(text),), is_error=failed, item=0)]


def test_neighbouring_items_of_the_assistant_are_one_turn() -> None:
    call, output = CALLS["function"][0], OUTPUTS["text"][0]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "So.", "annotations": []}],
    }
    other = {**call, "call_id": "d"}
    turns = read([USER, thought, said, call, other, output, {**output, "call_id": "d"}, said, USER]).turns
    assert [(turn.role, turn.index) for turn in turns] == [
        ("user", 0),
        ("assistant", 1),
        ("tool", 5),
        ("tool", 6),
        ("assistant", 7),
        ("user", 8),
    ]
    assert [type(block) for block in turns[1].blocks] == [Reasoning, Text, ToolCall, ToolCall]
    assert [call.item for call in turns[1].calls] == [3, 4]


def test_a_text_is_the_turn_of_a_user_behind_the_instructions() -> None:
    turns = read("Hi", instructions="Be brief.").turns
    assert [(turn.role, turn.text, turn.index) for turn in turns] == [("system", "Be brief.", None), ("user", "Hi", 0)]


def test_the_content_of_a_message_becomes_blocks() -> None:
    content = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "file_data": "data:,x", "filename": "x.txt"},
    ]
    assert blocks({**USER, "content": content}) == [
        Text("a"),
        Image("https://x/y.png", {"detail": "low"}),
        File("input_image", content[2]),
        File("input_file", content[3], url="data:,x", name="x.txt"),
    ]
    assert blocks({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}) == [
        Text("No.", {"type": "refusal"})
    ]


def test_encrypted_reasoning_is_state_of_its_maker() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    (thought,) = blocks(item)
    assert thought.text == "" and provider_state(thought.extra, "openai") == {"id": "rs_1", "encrypted_content": "gAAA"}
    assert provider_state(thought.extra, "anthropic") == {}
    assert read([{"type": "reasoning", "id": "rs_1", "summary": []}, USER]).turns[0].role == "user"


FAULTS: Final[dict[str, tuple[Any, str, str]]] = {
    "no object": (7, "NOT_OBJECT", "input[1]"),
    "a role that is no text": ({"role": 7, "content": "x"}, "ROLE_TYPE", "input[1].role"),
    "an unknown role": ({"role": "wizard", "content": "x"}, "ROLE_UNKNOWN", "input[1].role"),
    "no content": ({"role": "user"}, "CONTENT_MISSING", "input[1].content"),
    "a content that is a number": ({"role": "user", "content": 7}, "CONTENT_TYPE", "input[1].content"),
    "no parts": ({"role": "user", "content": []}, "CONTENT_EMPTY_ARRAY", "input[1].content"),
    "a part without a type": ({"role": "user", "content": [{"text": "x"}]}, "PART_TYPE", "input[1].content[0]"),
    "a text without text": ({"role": "user", "content": [{"type": "input_text"}]}, "PART_TYPE", "input[1].content[0]"),
    "a call without an id": (
        {"type": "function_call", "name": "f", "arguments": "{}"},
        "CALL_ID_MISSING",
        "input[1].call_id",
    ),
    "a call without a name": (
        {"type": "function_call", "call_id": "c", "arguments": "{}"},
        "CALL_NAME",
        "input[1].name",
    ),
    "arguments that are an object": (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
        "CALL_ARGS_TYPE",
        "input[1].arguments",
    ),
    "an action that is a text": (
        {"type": "shell_call", "call_id": "c", "action": "ls"},
        "CALL_ARGS_TYPE",
        "input[1].action",
    ),
    "an output without an id": ({"type": "function_call_output", "output": "x"}, "TOOL_ID_MISSING", "input[1].call_id"),
    "an output without output": (
        {"type": "function_call_output", "call_id": "c"},
        "CONTENT_MISSING",
        "input[1].output",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_listed_at_its_place(name: str) -> None:
    item, rule, param = FAULTS[name]
    assert (rule, param) in rules(read([USER, item]))


@pytest.mark.parametrize(
    ("item", "code", "words"),
    [
        ({"type": "item_reference", "id": "msg_1"}, "item_not_found", "store: false"),
        ({"id": "msg_1"}, "item_not_found", "store: false"),
    ],
)
def test_what_refers_to_a_store_is_refused(item: dict[str, Any], code: str, words: str) -> None:
    error = refused([USER, item])
    assert (error.status, error.code, error.param) == (400, code, "input[1]")
    assert words in error.message


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_a_note_stands_for_a_compaction_that_the_backend_cannot_read(kind: str) -> None:
    conversation = read([USER, {"type": kind, "encrypted_content": "x"}, USER])
    assert [turn.compaction for turn in conversation.turns] == [False, True, False]
    exchange = Exchange(NATIVE, conversation, Policy(), label="Dragoman0123456789abcdef")
    assert [turn.text for turn in exchange.conversation.turns] == ["Hi", UNREADABLE, "Hi"]
    assert [(notice.rule, notice.index) for notice in exchange.notices] == [("COMPACTION_UNREADABLE", 1)]


def test_a_trigger_asks_for_a_compaction_and_reaches_a_backend_of_the_api() -> None:
    request = decode_document(Document({"model": "m", "input": [USER, {"type": "compaction_trigger"}]}))
    assert request.compacts and not request.compacted
    assert items_of(request.conversation) == [USER, {"type": "compaction_trigger"}]
    with pytest.raises(InvalidRequest) as caught:
        read([{"type": "compaction_trigger"}, USER])
    assert caught.value.param == "input[1]"


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_call", "image_generation_call", "a_new_kind"])
def test_an_item_of_another_type_is_left_out_with_a_notice_but_not_for_its_maker(kind: str) -> None:
    item = {"type": kind, "id": "x_1"}
    conversation = read([USER, item, USER], store=False)
    assert [turn.role for turn in conversation.turns] == ["user", "user"]
    (notice,) = conversation.notices
    assert (notice.rule, notice.index) == ("ITEM_NOT_SENT", 1) and kind in notice.detail
    assert items_of(conversation) == [USER, item, USER]


def items_of(conversation: Conversation) -> list[Any]:
    """The input that a backend of the dialect gets."""
    encoder = ItemEncoder(tool_names(conversation))
    return [item for turn in conversation.turns for item in encoder.encode(turn)]


def test_a_backend_of_the_dialect_gets_the_input_as_it_was() -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "patch"}]}
    history = [
        tools,
        USER,
        *[call for call, _, _ in CALLS.values()],
        *[out for out, _, _ in OUTPUTS.values()],
        USER,
        tools,
    ]
    assert items_of(read(history)) == history


def test_a_changed_turn_keeps_the_kinds_of_its_calls_and_outputs() -> None:
    tools = [
        {"type": "custom", "name": "patch"},
        {"type": "namespace", "name": "mcp__x__", "description": "", "tools": [{"type": "function", "name": "f"}]},
        *[{"type": kind} for kind in ("local_shell", "shell", "apply_patch")],
        {"type": "tool_search", "execution": "client"},
    ]
    outputs = {item["type"]: item for item, _, _ in OUTPUTS.values()}
    history: list[Any] = [USER]
    for name, (call, _, _) in CALLS.items():
        output = outputs[f"{call['type']}_output".replace("search_call_output", "search_output")]
        history += [{**call, "call_id": name}, {**output, "call_id": name}]
    conversation = read(history, tools=tools)
    encoder = ItemEncoder(tool_names(conversation))
    made = [item for turn in conversation.turns for item in encoder.encode(turn.changed(*turn.blocks))]
    assert [item["type"] for item in made] == ["message", *[item["type"] for item in history[1:]]]
    calls = [(item, want) for item, want in zip(made, history, strict=True) if str(want.get("type")).endswith("_call")]
    for item, wanted in calls:
        assert wanted.items() <= item.items()


def test_a_turn_is_shown_as_items() -> None:
    (turn,) = GREETING.turns
    assert encode_turn(turn) == [{"type": "message", "role": "user", "content": "Good morning."}]
