"""A request of Interactions is read as a conversation; faults are repaired by name, and wrong fields are refused."""

from typing import Any, Final

import pytest

from gateway.core.conversation import (
    ALL_CONTENT,
    File,
    Image,
    JsonObject,
    NamedTool,
    OtherTool,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.provider_state import with_provider_state
from tests.adapters.gemini_interactions.client.stored import DIALECT, HELLO, Shelf, read, refused

LOOK: Final = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
POINT: Final = {"type": "function", "name": "point"}
TEXT: Final = {"type": "text", "text": "Hello"}
USER: Final = {"type": "user_input", "content": [TEXT]}
PNG: Final = "iVBORw0KGgo="


def signed(signature: str) -> JsonObject:
    return with_provider_state("google", {"thought_signature": signature})


def faults(*steps: Any) -> list[tuple[str, str]]:
    return [(fault.rule, fault.param) for fault in read([USER, *steps]).faults]


@pytest.mark.parametrize(
    "input",
    [
        "Hello",
        TEXT,
        [TEXT],
        [USER],
        [{"type": "user_input", "content": "Hello"}],
        [{"type": "user_input", "content": TEXT}],
        [{"role": "user", "content": "Hello"}],
    ],
)
def test_the_input_may_be_a_text_a_content_or_steps(input: Any) -> None:
    conversation = read(input)
    assert conversation.turns == (Turn("user", (Text("Hello"),), index=0),)
    assert conversation.faults == ()


def test_neighbouring_contents_are_one_step() -> None:
    image = {"type": "image", "mime_type": "image/png", "data": PNG}
    turns = read([TEXT, image, {"type": "model_output", "content": [TEXT]}, TEXT]).turns
    assert [(turn.role, len(turn.blocks), turn.index) for turn in turns] == [
        ("user", 2, 0),
        ("assistant", 1, 2),
        ("user", 1, 3),
    ]


def test_what_follows_neighbouring_contents_is_named_by_its_place_in_the_input() -> None:
    broken = {"type": "model_output", "content": 3}
    assert [fault.param for fault in read([TEXT, TEXT, broken, TEXT, TEXT, None]).faults] == [
        "input[2].content",
        "input[5]",
    ]


def test_steps_inside_turns_of_the_older_form_are_read() -> None:
    call = {"type": "function_call", "id": "a", "name": "look", "arguments": {}}
    model = {"role": "model", "content": [{"type": "thought", "signature": "c2ln"}, TEXT, call]}
    result = {"type": "function_result", "call_id": "a", "result": "A cloud."}
    searched = {"type": "google_search_result", "call_id": "b", "result": []}
    conversation = read(
        [{"role": "user", "content": "Hi"}, model, {"role": "user", "content": [result, searched, TEXT]}]
    )
    assert conversation.turns == (
        Turn("user", (Text("Hi"),), index=0),
        Turn(
            "assistant",
            (Reasoning("", extra=signed("c2ln")), Text("Hello"), ToolCall("a", "look", "{}", item=1)),
            index=1,
        ),
        Turn("tool", (ToolResult("a", (Text("A cloud."),), item=2),), index=2),
        Turn("user", (Text("Hello"),), index=2),
    )
    assert [(notice.rule, notice.index) for notice in conversation.notices] == [("ITEM_NOT_SENT", 2)]


def test_what_the_model_did_is_one_turn_and_each_result_another() -> None:
    calls = [{"type": "function_call", "id": name, "name": "look", "arguments": {"at": name}} for name in "ab"]
    results = [{"type": "function_result", "call_id": name, "result": f"The {name}."} for name in "ba"]
    thought = {"type": "thought", "summary": [{"type": "text", "text": "Hm"}, {"type": "text", "text": "m."}]}
    said = {"type": "model_output", "content": [TEXT]}
    turns = read([USER, {**thought, "signature": "c2ln"}, said, *calls, *results, USER]).turns
    assert turns[1:] == (
        Turn(
            "assistant",
            (
                Reasoning("Hmm.", extra=signed("c2ln")),
                Text("Hello"),
                ToolCall("a", "look", '{"at":"a"}', item=3),
                ToolCall("b", "look", '{"at":"b"}', item=4),
            ),
            index=1,
        ),
        Turn("tool", (ToolResult("b", (Text("The b."),), item=5),), index=5),
        Turn("tool", (ToolResult("a", (Text("The a."),), item=6),), index=6),
        Turn("user", (Text("Hello"),), index=7),
    )


def test_the_signature_of_a_call_is_its_state() -> None:
    call = {"type": "function_call", "id": "a", "name": "look", "arguments": {}, "signature": "c2ln"}
    assert read([USER, call]).turns[1].calls[0].extra == signed("c2ln")


def test_a_thought_without_text_and_signature_is_nothing() -> None:
    assert [turn.role for turn in read([USER, {"type": "thought"}, USER]).turns] == ["user", "user"]


@pytest.mark.parametrize("said", [{}, {"content": None}, {"content": []}, {"error": {"code": 13}}])
def test_an_output_without_content_is_nothing(said: Any) -> None:
    conversation = read([USER, {"type": "model_output", **said}, USER])
    assert [turn.role for turn in conversation.turns] == ["user", "user"]
    assert conversation.faults == ()


def test_calls_without_ids_are_matched_by_name() -> None:
    call = {"type": "function_call", "name": "look", "arguments": {}}
    result = {"type": "function_result", "name": "look", "result": "A cloud."}
    _, said, brought = read([USER, call, result]).turns
    (made,) = said.calls
    assert made.id and made.id_derived
    assert brought.results[0].call_id == made.id


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        ("A cloud.", (Text("A cloud."),)),
        ([TEXT, TEXT], (Text("Hello"), Text("Hello"))),
        ({"sky": "blue"}, (Text('{"sky":"blue"}'),)),
        # An object is never a content, whatever its fields mean to the function.
        ({**TEXT, "line": 4}, (Text('{"type":"text","text":"Hello","line":4}'),)),
        ({"type": "video", "uri": "https://host/a"}, (Text('{"type":"video","uri":"https://host/a"}'),)),
        (
            [{"type": "image", "mime_type": "image/png", "data": PNG}],
            (Image(f"data:image/png;base64,{PNG}", item=0),),
        ),
    ],
)
def test_a_result_may_be_a_text_contents_or_an_object(result: Any, blocks: tuple[Any, ...]) -> None:
    asked = {"type": "function_result", "call_id": "a", "result": result, "is_error": True}
    (found,) = read([USER, asked]).turns[1].results
    assert (found.content, found.is_error) == (blocks, True)


@pytest.mark.parametrize(
    ("content", "block"),
    [
        ({"type": "image", "uri": "https://host/a.png"}, Image("https://host/a.png", item=0)),
        (
            {"type": "image", "uri": "https://host/v1beta/files/a"},
            File("image", {"type": "image", "uri": "https://host/v1beta/files/a"}, 0),
        ),
        (
            {"type": "document", "mime_type": "application/pdf", "data": "eA==", "name": "a.pdf"},
            File(
                "file",
                {"type": "document", "mime_type": "application/pdf", "data": "eA==", "name": "a.pdf"},
                0,
                "data:application/pdf;base64,eA==",
                "a.pdf",
            ),
        ),
        ({"type": "hologram", "data": "x"}, File("hologram", {"type": "hologram", "data": "x"}, 0)),
    ],
)
def test_a_content_becomes_a_block(content: Any, block: Any) -> None:
    assert read([{"type": "user_input", "content": [content]}]).turns[0].blocks == (block,)


def test_a_step_that_google_runs_is_left_out_with_a_notice() -> None:
    conversation = read([USER, {"type": "google_search_call", "id": "a", "arguments": {"queries": ["sky"]}}])
    assert len(conversation.turns) == 1
    (told,) = conversation.notices
    assert (told.rule, told.action, told.index) == ("ITEM_NOT_SENT", "dropped", 1)


def test_an_unknown_field_of_a_step_is_reported_once() -> None:
    (told,) = read([{**USER, "mood": 1}, {**USER, "mood": 2}]).notices
    assert (told.rule, told.detail) == ("FIELD_NOT_SENT", "no other API has a field for 'input[0].mood'")


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"type": "thought", "summary": "Hm."}, "'input[1].summary' is text and is not read"),
        ({"type": "thought", "signature": 5}, "'input[1].signature' is a number and is not read"),
        (
            {"type": "thought", "summary": [{"type": "image", "mime_type": "image/png", "data": PNG}, TEXT]},
            "1 of the pieces of 'input[1].summary' have no text",
        ),
        (
            {"type": "function_result", "call_id": "a", "result": "x", "is_error": "true"},
            "'input[1].is_error' is text and is not read",
        ),
        (
            {"type": "function_result", "call_id": 5, "name": "look", "result": "x"},
            "'input[1].call_id' is a number and is not read",
        ),
        (
            {"type": "function_call", "id": 5, "name": "look", "arguments": {}},
            "'input[1].id' is a number and is not read",
        ),
    ],
)
def test_what_a_step_loses_is_told(step: Any, told: str) -> None:
    (notice,) = read([USER, step]).notices
    assert (notice.rule, notice.action, notice.detail, notice.index) == ("FIELD_NOT_SENT", "dropped", told, 1)


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (None, ("NOT_OBJECT", "input[1]")),
        ({}, ("ROLE_TYPE", "input[1].type")),
        ({"type": 3, "content": "x"}, ("ROLE_TYPE", "input[1].type")),
        ({"type": "user_input"}, ("CONTENT_MISSING", "input[1].content")),
        ({"type": "user_input", "content": []}, ("CONTENT_EMPTY_ARRAY", "input[1].content")),
        ({"type": "model_output", "content": 3}, ("CONTENT_TYPE", "input[1].content")),
        ({"type": "user_input", "content": [{"type": "text"}]}, ("PART_TYPE", "input[1].content[0]")),
        ({"type": "user_input", "content": [{"type": "image", "data": PNG}]}, ("PART_TYPE", "input[1].content[0]")),
        ({"type": "user_input", "content": ["x"]}, ("PART_TYPE", "input[1].content[0]")),
        ({"type": "function_call", "id": "a", "arguments": {}}, ("CALL_NAME", "input[1].name")),
        (
            {"type": "function_call", "id": "a", "name": "f", "arguments": "{}"},
            ("CALL_ARGS_TYPE", "input[1].arguments"),
        ),
        ({"type": "function_result", "result": "x"}, ("TOOL_ID_MISSING", "input[1].call_id")),
        ({"type": "function_result", "call_id": "a"}, ("CONTENT_MISSING", "input[1].result")),
    ],
)
def test_a_fault_of_a_step_is_named_and_repaired(step: Any, fault: tuple[str, str]) -> None:
    assert fault in faults(step)


def test_a_fault_in_a_stored_step_has_a_place_below_0() -> None:
    shelf = Shelf()
    first = shelf.answer([{"type": "user_input", "content": 3}], HELLO)
    conversation = shelf.read("And?", previous_interaction_id=first).conversation
    assert [fault.param for fault in conversation.faults] == ["input[-2].content"]
    assert [turn.index for turn in conversation.turns] == [-2, -1, 0]


@pytest.mark.parametrize(
    ("choice", "read_as", "offered"),
    [
        (None, "auto", ["look", "point"]),
        ("any", "required", ["look", "point"]),
        ("ANY", "required", ["look", "point"]),
        ("none", "none", ["look", "point"]),
        ("validated", "auto", ["look", "point"]),
        ({"allowed_tools": {"mode": "any"}}, "required", ["look", "point"]),
        ({"allowed_tools": {"mode": "any", "tools": ["look"]}}, NamedTool("look"), ["look"]),
        ({"allowed_tools": {"tools": ["look"]}}, "auto", ["look"]),
    ],
)
def test_a_tool_choice_is_read(choice: Any, read_as: Any, offered: list[str]) -> None:
    conversation = read(tools=[LOOK, POINT], generation_config={"tool_choice": choice})
    assert (conversation.tool_choice, [tool.name for tool in conversation.tools]) == (read_as, offered)
    assert [notice.rule for notice in conversation.notices] == (["TOOL_NOT_ALLOWED"] if len(offered) == 1 else [])


@pytest.mark.parametrize("choice", ["always", {"function": "look"}, {"allowed_tools": {"mode": "always"}}])
def test_an_unknown_tool_choice_is_one_of_the_api_alone(choice: Any) -> None:
    conversation = read(tools=[LOOK], generation_config={"tool_choice": choice})
    assert conversation.own_fields == ("generation_config.tool_choice",)


def test_an_undeclared_function_cannot_be_allowed() -> None:
    error = refused(tools=[LOOK], generation_config={"tool_choice": {"allowed_tools": {"tools": ["lock"]}}})
    assert error.param == "generation_config.tool_choice.allowed_tools.tools[0]"


def test_a_tool_of_google_is_no_function() -> None:
    conversation = read(tools=[{"type": "google_search"}, LOOK, {"type": "mcp_server", "url": "https://host"}])
    assert conversation.other_tools == (OtherTool("google_search"), OtherTool("mcp_server"))
    assert [(tool.name, tool.description, tool.parameters) for tool in conversation.tools] == [
        ("look", "Looks.", {"type": "object"})
    ]


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"name": "f"}, "tools[0].type"),
        ({"type": "function"}, "tools[0].name"),
        ({"type": "function", "name": "f", "description": 3}, "tools[0].description"),
        ({"type": "function", "name": "f", "parameters": []}, "tools[0].parameters"),
    ],
)
def test_a_wrong_tool_is_refused(tool: Any, param: str) -> None:
    assert refused(tools=[tool]).param == param


SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
AS_SCHEMA: Final = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
JSON: Final = "application/json"


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        ({"response_format": {"type": "text", "mime_type": JSON, "schema": SCHEMA}}, AS_SCHEMA),
        ({"response_format": [{"type": "text", "mime_type": JSON, "schema": SCHEMA}]}, AS_SCHEMA),
        ({"response_format": {"type": "text", "schema": SCHEMA}}, AS_SCHEMA),
        ({"response_format": {"type": "text", "mime_type": JSON}}, {"type": "json_object"}),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "text", "mime_type": "text/plain"}}, None),
        ({"response_format": SCHEMA, "response_mime_type": JSON}, AS_SCHEMA),
        ({"response_mime_type": JSON}, {"type": "json_object"}),
        ({"response_mime_type": "text/plain"}, None),
    ],
)
def test_a_format_is_read(fields: Any, form: Any) -> None:
    conversation = read(**fields)
    assert conversation.params.get("response_format") == form
    assert conversation.own_fields == ()


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"response_format": {"type": "image"}}, "response_format"),
        ({"response_format": [{"type": "text"}, {"type": "audio"}]}, "response_format[1]"),
        ({"response_format": {"type": "text", "mime_type": "text/csv"}}, "response_format.mime_type"),
        ({"response_mime_type": "text/csv"}, "response_mime_type"),
        ({"generation_config": {"thinking_level": "extreme"}}, "generation_config.thinking_level"),
        ({"generation_config": {"thinking_summaries": "long"}}, "generation_config.thinking_summaries"),
    ],
)
def test_what_only_the_api_itself_answers_is_named(fields: Any, place: str) -> None:
    assert read(**fields).own_fields == (place,)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"model": "models/"}, "model"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": 3}, "input"),
        ({"stream": "yes"}, "stream"),
        ({"generation_config": {"temperature": "hot"}}, "generation_config.temperature"),
        ({"generation_config": {"max_output_tokens": 1.5}}, "generation_config.max_output_tokens"),
        ({"response_format": {"type": "text", "mime_type": "text/plain", "schema": {}}}, "response_format.mime_type"),
        ({"response_format": [{"type": "text"}, {"type": "text"}]}, "response_format"),
        ({"response_format": {"type": "text", "schema": 3}}, "response_format.schema"),
        ({"agent": "deep-research"}, "agent"),
        ({"background": True}, "background"),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(fields: Any, param: str) -> None:
    asked = {"input": "Hello", **fields}
    error = refused(**asked)
    assert (error.status, error.param) == (400, param)


def test_a_model_may_have_a_prefix() -> None:
    assert read(model="models/m").model == "m"


def test_numbers_of_languages_with_one_type_are_whole() -> None:
    assert read(generation_config={"max_output_tokens": 7.0}).sampling.max_tokens == 7


def test_summaries_of_thoughts_are_read_only_where_they_are_asked_for() -> None:
    assert read().reads == {"calls", "state"}
    assert read(generation_config={"thinking_summaries": "none"}).reads == {"calls", "state"}
    assert read(generation_config={"thinking_summaries": "auto"}).reads == ALL_CONTENT


def test_the_steps_that_are_written_for_a_turn_are_read_back() -> None:
    turns = (
        Turn("user", (Text("Look."), Image(f"data:image/png;base64,{PNG}", item=1)), index=0),
        Turn(
            "assistant",
            (
                Reasoning("Hm.", extra=signed("c2ln")),
                Text("So."),
                ToolCall("a", "f", '{"b":1}', signed("Yg=="), item=3),
            ),
            index=1,
        ),
        Turn("tool", (ToolResult("a", (Text("Done."),), is_error=True, item=4),), index=4),
    )
    assert read([step for turn in turns for step in DIALECT.encode_turn(turn)]).turns == turns
    assert DIALECT.encode_turn(Turn("system", (Text("Be brief."),))) == []
