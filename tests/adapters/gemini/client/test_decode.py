"""Each field of a request, each part of a content, and each fault."""

import json
from typing import Any, Final

import msgspec
import pytest

from adapters.gemini.client.dialect import GeminiDialect
from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.capabilities.unsupported_content import keep_to
from gateway.core.conversation import (
    Conversation,
    File,
    Image,
    Json,
    NamedTool,
    OtherTool,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import Document
from gateway.history.prepare import prepare
from tests.fuzz.counted import Work, count_work, growth

HELLO: Final[list[Json]] = [{"role": "user", "parts": [{"text": "Hello"}]}]
STATE: Final = with_provider_state("google", {"thought_signature": "c2ln"})
DECLARED: Final = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}, {"name": "h"}]}]


def decode(fields: dict[str, Any], path: str = "/v1beta/models/m:generateContent", query: bytes = b"") -> ClientRequest:
    return GeminiDialect().decode(Document({"contents": HELLO, **fields}), RequestHead(path, query))


def conversation(*contents: Json) -> Conversation:
    return decode({"contents": [*contents]}).conversation


def parts(*written: Json, role: str = "user") -> tuple[Any, ...]:
    """The blocks of a content with these parts."""
    (turn,) = conversation({"role": role, "parts": [*written]}).turns
    return turn.blocks


def config(**fields: Json) -> Conversation:
    return decode({"generationConfig": fields}).conversation


@pytest.mark.parametrize(
    ("path", "query", "model", "stream", "form"),
    [
        ("/v1beta/models/m:generateContent", b"", "m", False, "json"),
        ("/v1/models/org/m:7b:streamGenerateContent", b"alt=sse", "org/m:7b", True, "sse"),
        ("/v1beta/models/m:streamGenerateContent", b"key=x", "m", True, "json"),
        ("/v1beta/models/m:streamGenerateContent", b"alt=json", "m", True, "json"),
        ("/v1beta/models/m:countTokens", b"", "m", False, "json"),
    ],
)
def test_the_path_says_the_model_and_the_form(path: str, query: bytes, model: str, stream: bool, form: str) -> None:
    request = decode({"model": "models/other"}, path, query)
    assert (request.conversation.model, request.conversation.stream, request.echo["form"]) == (model, stream, form)


def test_a_saved_request_has_its_model_in_the_body() -> None:
    assert decode({"model": "models/org/m"}, "").conversation.model == "org/m"


def test_tokens_are_counted_of_a_whole_request() -> None:
    inner: dict[str, Any] = {
        "model": "models/m",
        "contents": HELLO,
        "systemInstruction": {"parts": [{"text": "Be short."}]},
    }
    body: dict[str, Json] = {"generateContentRequest": inner}
    counted = GeminiDialect().decode(Document(body), RequestHead("/v1beta/models/m:countTokens")).conversation
    assert [(turn.role, turn.text) for turn in counted.turns] == [("system", "Be short."), ("user", "Hello")]


@pytest.mark.parametrize(
    ("written", "params"),
    [
        ({"temperature": 0.5}, {"temperature": 0.5}),
        ({"topP": 0.9, "topK": 40.0}, {"top_p": 0.9, "top_k": 40}),
        ({"top_p": 1, "top_k": 2}, {"top_p": 1.0, "top_k": 2}),
        ({"maxOutputTokens": 10.0}, {"max_tokens": 10}),
        ({"stopSequences": ["a", "b"]}, {"stop": ["a", "b"]}),
        (
            {"seed": 7, "presencePenalty": 1, "frequencyPenalty": -1},
            {"seed": 7, "presence_penalty": 1, "frequency_penalty": -1},
        ),
        ({"candidateCount": 1}, {"n": 1}),
        ({"responseModalities": ["TEXT"]}, {}),
        ({"responseModalities": ["TEXT", "IMAGE"]}, {"modalities": ["text", "image"]}),
        ({"responseMimeType": "text/plain"}, {}),
        ({"responseMimeType": "application/json"}, {"response_format": {"type": "json_object"}}),
        ({"thinkingConfig": {"thinkingLevel": "LOW"}}, {"reasoning_effort": "low"}),
        ({"thinking_config": {"thinking_level": "HIGH"}}, {"reasoning_effort": "high"}),
        ({"thinkingConfig": {"thinkingLevel": "low"}}, {"reasoning_effort": "low"}),
        ({"thinkingConfig": {"thinkingLevel": "Medium"}}, {"reasoning_effort": "medium"}),
        ({"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}}, {}),
        ({"thinkingConfig": {"thinkingBudget": 0}}, {"reasoning_effort": "none"}),
        ({"thinkingConfig": {"thinkingBudget": 1024}}, {"reasoning_effort": "low"}),
        ({"thinkingConfig": {"thinkingBudget": 8192}}, {"reasoning_effort": "medium"}),
        ({"thinkingConfig": {"thinkingBudget": 8193}}, {"reasoning_effort": "high"}),
        ({"thinkingConfig": {"thinkingBudget": -1}}, {}),
    ],
)
def test_a_field_of_the_config_gets_its_canonical_name(written: dict[str, Json], params: dict[str, Json]) -> None:
    assert config(**written).params == params


@pytest.mark.parametrize(("mode", "choice"), [("any", "required"), ("None", "none"), ("auto", "auto")])
def test_a_mode_is_read_in_any_case(mode: str, choice: str) -> None:
    calling: Json = {"functionCallingConfig": {"mode": mode}}
    assert decode({"tools": DECLARED, "toolConfig": calling}).conversation.tool_choice == choice


def test_tools_may_be_one_object() -> None:
    (declared,) = DECLARED
    asked = decode({"tools": {**declared, "googleSearch": {}}}).conversation
    assert [tool.name for tool in asked.tools] == ["f", "g", "h"]
    assert asked.other_tools == (OtherTool("googleSearch"),)


def test_a_backend_of_the_same_api_gets_these_words_as_they_were_written() -> None:
    fields: dict[str, Json] = {
        "tools": {"functionDeclarations": [{"name": "f"}]},
        "toolConfig": {"functionCallingConfig": {"mode": "any"}},
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}},
    }
    source = decode(fields).conversation.source
    assert source is not None and source.value == fields


def test_the_sampling_is_that_of_the_config() -> None:
    sampling = config(temperature=0.5, topP=0.9, maxOutputTokens=10, stopSequences=["a"], seed=7).sampling
    assert msgspec.structs.astuple(sampling) == (0.5, 0.9, 10, ("a",), 7)


@pytest.mark.parametrize("field", ["responseSchema", "response_json_schema"])
def test_a_schema_is_a_response_format(field: str) -> None:
    schema: Json = {"type": "OBJECT" if field == "responseSchema" else "object", "properties": {}}
    said = config(responseMimeType="application/json", **{field: schema}).params["response_format"]
    assert said == {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("asks", [True, False, None])
def test_thoughts_are_read_where_the_client_asks_for_them_and_their_signatures_always(asks: bool | None) -> None:
    asked: Any = {} if asks is None else {"generationConfig": {"thinkingConfig": {"includeThoughts": asks}}}
    reads = decode(asked).conversation.reads
    assert reads == ({"calls", "reasoning"} if asks else {"calls", "state"})


def test_functions_that_are_not_allowed_are_named() -> None:
    declared: Any = [{"functionDeclarations": [{"name": name} for name in "abcdef"]}]
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}
    (notice,) = decode({"tools": declared, "toolConfig": calling}).conversation.notices
    assert (notice.rule, notice.detail) == (
        "TOOL_NOT_ALLOWED",
        "the model is not offered 'a', 'c', 'd' and 2 more, "
        "which toolConfig.functionCallingConfig.allowedFunctionNames does not name",
    )


@pytest.mark.parametrize(
    ("mode", "names", "choice", "offered"),
    [
        (None, None, "auto", "fgh"),
        ("AUTO", None, "auto", "fgh"),
        ("MODE_UNSPECIFIED", None, "auto", "fgh"),
        ("ANY", None, "required", "fgh"),
        ("ANY", ["g"], NamedTool("g"), "g"),
        ("ANY", ["g", "h"], "required", "gh"),
        ("VALIDATED", ["f"], "auto", "f"),
        ("NONE", None, "none", "fgh"),
    ],
)
def test_the_choice_of_functions(mode: str | None, names: list[str] | None, choice: Any, offered: str) -> None:
    written = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}}
    read = decode({"tools": DECLARED, "toolConfig": written}).conversation
    assert (read.tool_choice, "".join(tool.name for tool in read.tools)) == (choice, offered)


SEEN: Final[dict[str, Any]] = {"name": "f", "id": "a", "response": {"output": "x"}}


def answered(**fields: Any) -> Conversation:
    """A call and its result with these fields."""
    call: Json = {"functionCall": {"name": "f", "id": "a", "args": {}}}
    return conversation(
        *HELLO, {"role": "model", "parts": [call]}, {"parts": [{"functionResponse": {**SEEN, **fields}}]}
    )


def test_a_field_that_only_this_api_has_is_reported_once_with_its_first_place() -> None:
    result: Json = {"functionResponse": {**SEEN, "scheduling": "SILENT"}, "thoughtSignature": "c2ln"}
    call: Json = {"functionCall": {"name": "f", "args": {}, "mood": 1, "id": "b"}}
    asked = conversation(*HELLO, {"role": "model", "parts": [call, call]}, {"parts": [result, result]})
    assert [(notice.rule, notice.detail) for notice in asked.notices] == [
        ("FIELD_NOT_SENT", f"no other API has a field for {param!r}")
        for param in (
            "contents[1].parts[0].functionCall.mood",
            "contents[2].parts[0].functionResponse.scheduling",
            "contents[2].parts[0].thoughtSignature",
        )
    ]
    assert answered(scheduling=None).notices == ()


def test_an_image_in_a_result_is_refused_by_its_own_path() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
    with pytest.raises(Unsupported) as caught:
        keep_to(answered(parts=[{"text": "see"}, image]), Capabilities(), Policy())
    assert caught.value.param == "contents[2].parts[0].functionResponse.parts[1]"


def test_tools_are_functions_or_the_providers_own() -> None:
    written = {
        "function_declarations": [
            {"name": "f", "description": "One.", "parameters": {"type": "OBJECT", "any_of": [{"type": "STRING"}]}},
            {"name": "g", "parametersJsonSchema": {"type": "object"}, "behavior": "BLOCKING"},
        ],
        "googleSearch": {},
    }
    read = decode({"tools": [written, {"codeExecution": {}}]}).conversation
    first, second = read.tools
    assert first.parameters == {"type": "object", "anyOf": [{"type": "string"}]}
    assert (first.description, second.parameters) == ("One.", {"type": "object"})
    assert second.extra == {"function": {"behavior": "BLOCKING"}}
    assert read.other_tools == (OtherTool("googleSearch"), OtherTool("codeExecution"))


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"text": "a"}, Text("a")),
        ({"text": "a", "thoughtSignature": "c2ln"}, Text("a", STATE)),
        ({"text": "a", "thought": True}, Reasoning("a")),
        ({"text": "a", "thought": True, "thought_signature": "c2ln"}, Reasoning("a", extra=STATE)),
        ({"text": "", "thoughtSignature": "c2ln"}, Reasoning("", extra=STATE)),
        ({"thoughtSignature": "c2ln"}, Reasoning("", extra=STATE)),
        ({"inline_data": {"mime_type": "image/png", "data": "eA=="}}, Image("data:image/png;base64,eA==", {}, 0)),
        ({"executableCode": {"language": "PYTHON", "code": "x = 1"}}, Text("```python\nx = 1\n```")),
        ({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, Text("```\n1\n```")),
    ],
)
def test_a_part_is_a_block(part: Json, block: Any) -> None:
    assert parts(part, role="model") == (block,)


@pytest.mark.parametrize(
    ("part", "kind", "url", "name"),
    [
        ({"inlineData": {"mimeType": "audio/wav", "data": "eA=="}}, "audio", "data:audio/wav;base64,eA==", ""),
        (
            {"inlineData": {"mimeType": "application/pdf", "data": "_-8", "displayName": "a.pdf"}},
            "file",
            "data:application/pdf;base64,/+8=",
            "a.pdf",
        ),
        ({"fileData": {"mimeType": "image/png", "fileUri": "files/1"}}, "file", "", ""),
        ({"toolResponse": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB"}}, "toolResponse", "", ""),
    ],
)
def test_other_parts_are_files_as_the_client_wrote_them(part: dict[str, Json], kind: str, url: str, name: str) -> None:
    assert parts(part) == (File(kind, part, 0, url, name),)


def test_calls_and_responses_with_ids() -> None:
    call: Any = {"functionCall": {"id": "k", "name": "f", "args": {"b": 1, "a": 2}}, "thoughtSignature": "c2ln"}
    answer: Any = {"functionResponse": {"id": "k", "name": "f", "response": {"output": "x"}}}
    _, asked, answered, said = conversation(
        *HELLO, {"role": "model", "parts": [call]}, {"role": "user", "parts": [{"text": "and"}, answer]}
    ).turns
    assert asked.blocks == (ToolCall("k", "f", '{"b":1,"a":2}', STATE, False, 0),)
    assert (answered.role, answered.blocks) == ("tool", (ToolResult("k", (Text("x"),), item=1),))
    assert (said.role, said.text, said.index) == ("user", "and", 2)


def test_calls_and_responses_without_ids_are_paired_by_name_and_order() -> None:
    calls: list[Json] = [{"functionCall": {"name": name}} for name in "ffg"]
    answers: list[Json] = [
        {"functionResponse": {"name": name, "response": {"result": text}}} for name, text in ("g3", "f1", "f2")
    ]
    read = conversation(*HELLO, {"role": "model", "parts": calls}, {"role": "function", "parts": answers})
    first, second, third = (call.id for call in read.turns[1].calls)
    results = [(turn.results[0].call_id, turn.text or turn.results[0].text) for turn in read.turns[2:]]
    assert results == [(third, "3"), (first, "1"), (second, "2")]
    assert not prepare(read, Policy(repair="strict")).conversation.faults


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"output": "a"}, "a", False),
        ({"result": "a"}, "a", False),
        ({"error": "a"}, "a", True),
        ({"error": {"code": 1}}, '{"error":{"code":1}}', True),
        ({"result": "a", "more": 1}, '{"result":"a","more":1}', False),
        ({"city": "Rome"}, '{"city":"Rome"}', False),
        ({}, "{}", False),
    ],
)
def test_a_response_is_unwrapped(response: Json, text: str, failed: bool) -> None:
    (block,) = parts({"functionResponse": {"id": "k", "name": "f", "response": response}})
    assert (block.text, block.is_error) == (text, failed)


def test_a_response_may_hold_images() -> None:
    image: Json = {"inlineData": {"mimeType": "image/png", "data": "eA=="}}
    (block,) = parts({"functionResponse": {"id": "k", "response": {}, "parts": [image]}})
    assert block.content == (Text("{}"), Image("data:image/png;base64,eA==", {}, 0))


@pytest.mark.parametrize(
    ("written", "role"),
    [
        ({"parts": [{"text": "a"}]}, "user"),
        ({"parts": {"text": "a"}}, "user"),
        ({"parts": [{"functionCall": {"name": "f"}}]}, "assistant"),
        ({"role": "model", "parts": [{"text": "a"}]}, "assistant"),
    ],
)
def test_the_role_of_a_content(written: Json, role: str) -> None:
    (turn,) = conversation(written).turns
    assert turn.role == role and not conversation(written).faults


@pytest.mark.parametrize(
    ("content", "rule", "param"),
    [
        ("x", "NOT_OBJECT", "contents[0]"),
        ({"role": "robot", "parts": [{"text": "a"}]}, "ROLE_UNKNOWN", "contents[0].role"),
        ({"role": 1, "parts": [{"text": "a"}]}, "ROLE_TYPE", "contents[0].role"),
        ({"role": "user", "parts": [{"functionCall": {"id": "k", "name": "f"}}]}, "ROLE_UNKNOWN", "contents[0].role"),
        ({"role": "user"}, "CONTENT_MISSING", "contents[0].parts"),
        ({"role": "user", "parts": []}, "CONTENT_EMPTY_ARRAY", "contents[0].parts"),
        ({"role": "user", "parts": "a"}, "CONTENT_TYPE", "contents[0].parts"),
        ({"role": "user", "parts": ["a"]}, "PART_TYPE", "contents[0].parts[0]"),
        ({"role": "user", "parts": [{}]}, "PART_TYPE", "contents[0].parts[0]"),
        ({"role": "user", "parts": [{"text": 1}]}, "PART_TYPE", "contents[0].parts[0]"),
        ({"role": "user", "parts": [{"inlineData": {}}]}, "PART_TYPE", "contents[0].parts[0]"),
        ({"role": "model", "parts": [{"functionCall": 1}]}, "CALL_TYPE", "contents[0].parts[0].functionCall"),
        ({"role": "model", "parts": [{"functionCall": {}}]}, "CALL_NAME", "contents[0].parts[0].functionCall.name"),
        (
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": "x"}}]},
            "CALL_ARGS_TYPE",
            "contents[0].parts[0].functionCall.args",
        ),
        (
            {"role": "model", "parts": [{"functionCall": {"name": "f", "partial_args": [1]}}]},
            "CALL_ARGS_TYPE",
            "contents[0].parts[0].functionCall.args",
        ),
        (
            {"parts": [{"functionResponse": {"response": {}}}]},
            "TOOL_ID_MISSING",
            "contents[0].parts[0].functionResponse.name",
        ),
        (
            {"parts": [{"functionResponse": {"id": "k"}}]},
            "CONTENT_MISSING",
            "contents[0].parts[0].functionResponse.response",
        ),
        (
            {"parts": [{"functionResponse": {"id": "k", "response": "x"}}]},
            "CONTENT_TYPE",
            "contents[0].parts[0].functionResponse.response",
        ),
    ],
)
def test_a_fault_names_its_place(content: Json, rule: str, param: str) -> None:
    assert (rule, param) in {(fault.rule, fault.param) for fault in conversation(content).faults}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"contents": "x"}, "contents"),
        ({"contents": []}, "contents"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "tools[0].functionDeclarations[0].name"),
        (
            {"tools": DECLARED, "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["x"]}}},
            "toolConfig.functionCallingConfig.allowedFunctionNames[0]",
        ),
        ({"generationConfig": {"topK": "x"}}, "generationConfig.topK"),
        ({"generation_config": {"max_output_tokens": 2**40}}, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"topP": 1, "top_p": 1}}, "topP"),
        ({"generationConfig": {"responseSchema": {}}}, "generationConfig.responseMimeType"),
        (
            {
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "responseSchema": {},
                    "responseJsonSchema": {},
                }
            },
            "generationConfig.responseJsonSchema",
        ),
        ({"systemInstruction": {"parts": [{"text": "a"}, {"fileData": {}}]}}, "systemInstruction.parts[1]"),
    ],
)
def test_a_wrong_field_is_an_error_that_names_it(fields: dict[str, Json], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(fields)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"toolConfig": {"functionCallingConfig": {"mode": "X"}}}, "toolConfig.functionCallingConfig.mode"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "generationConfig.responseMimeType"),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "X"}}},
            "generationConfig.thinkingConfig.thinkingLevel",
        ),
        ({"systemInstruction": {"parts": [{"text": "a"}, {"x_part": 1}]}}, "systemInstruction.parts[1]"),
        (
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "willContinue": True}}]}]},
            "contents[0].parts[0].functionResponse.willContinue",
        ),
    ],
)
def test_a_word_that_only_the_api_itself_may_know_is_refused_for_any_other(fields: dict[str, Json], param: str) -> None:
    with pytest.raises(Unsupported) as caught:
        check_capabilities(decode(fields).conversation, Capabilities())
    assert caught.value.param == param


def test_a_call_in_pieces_is_one_call() -> None:
    pieces: list[Json] = [
        {"name": "f", "id": "k", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a.b[1]", "stringValue": "x", "willContinue": True}], "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a.b[1]", "stringValue": "y"}], "willContinue": True},
        {},
        {"name": "g", "args": {"n": 1}},
    ]
    contents: list[Json] = [{"role": "model", "parts": [{"functionCall": piece}]} for piece in pieces]
    (turn,) = conversation(*contents).turns
    first, second = turn.calls
    assert (first.id, first.name, first.arguments) == ("k", "f", '{"a":{"b":[null,"xy"]}}')
    assert (second.name, second.arguments) == ("g", '{"n":1}')


def test_the_contents_of_a_call_in_pieces_stay_as_they_were() -> None:
    def content() -> dict[str, Any]:
        begun: Json = {"name": "f", "args": {"a": {"b": 1}}, "willContinue": True}
        more: Json = {"partialArgs": [{"jsonPath": "$.a.c", "numberValue": 2}]}
        return {"role": "model", "parts": [{"functionCall": begun}, {"functionCall": more}]}

    (turn,) = conversation(content()).turns
    assert turn.calls[0].arguments == '{"a":{"b":1,"c":2}}'
    assert turn.source is not None and turn.source.value == content()


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("$" + ".a" * 3000, "a partial argument is nested deeper than 64 levels"),
        ("$..a", "a partial argument has the JSON path '$..a', which names no value"),
    ],
    ids=["deep", "no name"],
)
def test_pieces_that_cannot_be_joined_are_a_fault_and_stay_as_written(path: str, detail: str) -> None:
    written: list[Json] = [
        {"b": 1},
        {"jsonPath": "$.c", "stringValue": "x"},
        {"jsonPath": path, "numberValue": 1},
        {"jsonPath": "$.d", "boolValue": True},
    ]
    whole, *partial = written
    calls: list[Any] = [
        {"name": "f", "args": whole, "willContinue": True},
        *({"partialArgs": [piece], "willContinue": True} for piece in partial),
        {},
        {"name": "g"},
    ]
    asked = conversation({"role": "model", "parts": [{"functionCall": call} for call in calls]})
    (fault,) = asked.faults
    assert (fault.rule, fault.param) == ("CALL_ARGS_TYPE", "contents[0].parts[0].functionCall.args")
    assert detail in fault.detail
    (turn,) = asked.turns
    assert [call.name for call in turn.calls] == ["f", "g"]
    assert json.loads(turn.calls[0].arguments) == written


@pytest.mark.full
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("apart", [True, False])
def test_the_work_grows_with_the_calls_in_pieces(apart: bool, named: bool) -> None:
    def work(size: int) -> Work:
        call: Json = {"functionCall": {**({"name": "f"} if named else {}), "willContinue": True}}
        begun: Json = {"functionCall": {"name": "f", "willContinue": True}}
        said = [begun, *[call] * size]
        contents: list[Json] = [{"role": "model", "parts": [part]} for part in said]
        whole: list[Json] = [{"role": "model", "parts": [*said]}]
        return count_work(lambda: conversation(*(contents if apart else whole)))

    work(10)
    assert growth(work(100), work(1000)) < 13


def test_a_wrong_form_of_a_stream_is_an_error() -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode({}, query=b"alt=proto")
    assert caught.value.param == "alt"


def test_a_wrong_field_of_a_wrapped_request_is_named_with_its_wrapper() -> None:
    body: dict[str, Json] = {"generateContentRequest": {"contents": HELLO, "generationConfig": {"topK": "x"}}}
    with pytest.raises(InvalidRequest) as caught:
        GeminiDialect().decode(Document(body), RequestHead("/v1beta/models/m:countTokens"))
    assert caught.value.param == "generateContentRequest.generationConfig.topK"


def test_arguments_that_are_text_are_taken_as_json_text() -> None:
    call: Json = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": '{"b": 1}'}}]}
    asked = conversation(*HELLO, call)
    assert [call.arguments for call in asked.turns[1].calls] == ['{"b": 1}']
    assert [fault.rule for fault in asked.faults] == ["CALL_ARGS_TYPE"]


@pytest.mark.parametrize(
    ("schema", "translated"),
    [
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [{"type": "NUMBER"}], "nullable": True}, {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        (
            {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "2"},
            {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        ),
        pytest.param({"maxItems": "9" * 5000}, {"maxItems": "9" * 5000}, id="more than 64 bits"),
        ({"type": "TYPE_UNSPECIFIED", "example": 1}, {"examples": [1]}),
        (
            {"type": "OBJECT", "properties": {"type": {"type": "BOOLEAN"}}, "property_ordering": ["type"]},
            {"type": "object", "properties": {"type": {"type": "boolean"}}},
        ),
    ],
)
def test_a_schema_is_translated(schema: Json, translated: Json) -> None:
    declared: Json = [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]
    assert decode({"tools": declared}).conversation.tools[0].parameters == translated
