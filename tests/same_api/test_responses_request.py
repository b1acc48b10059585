"""A request of the Responses API reaches a backend of the same API as its client wrote it.

The values are those of the published types of OpenAI's SDK. The exceptions are listed in docs/responses-backends.md,
"A client of the same API".
"""

import json
from typing import Any, Final

import pytest
from openai.types.responses import ResponseInputItemParam
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_message_content_list_param import ResponseInputContentParam
from openai.types.responses.response_output_message_param import Content as OutputContentParam

from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.client.decode import decode_document
from gateway.core.policy import Policy
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.profile import NEUTRAL, Profile
from gateway.providers.registry import PROFILES
from tests.same_api.samples import hints, samples
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

ADAPTER: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
HELLO: Final[dict[str, Any]] = {"role": "user", "content": "Hello"}
CALL: Final[dict[str, Any]] = {"type": "function_call", "call_id": "a", "name": "a", "arguments": "{}"}
RESULT: Final[dict[str, Any]] = {"type": "function_call_output", "call_id": "a", "output": "7"}
SAID: Final[dict[str, Any]] = {"role": "assistant", "content": "Hm."}
BODY: Final[dict[str, Any]] = {"model": "m", "input": [HELLO], "store": False}
# Fields that refer to what the gateway stores, or to what only its own backend stores, and those with few values.
OTHERS: Final = {"background", "conversation", "input", "model", "previous_response_id", "prompt", "store", "tools"}
FIELDS: Final = [
    (name, value)
    for name, hint in hints(ResponseCreateParamsBase).items()
    if name not in OTHERS
    for value in samples(hint)
]
SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "string"}}}
# A schema of another form is put right.
TOOLS: Final = [
    tool | ({"parameters": SCHEMA} if tool["type"] == "function" else {})
    for tools in samples(hints(ResponseCreateParamsBase)["tools"])
    for tool in tools
]
# Items that name one, or ask for one, of which the gateway has its own.
ITEMS: Final = [
    item for item in samples(ResponseInputItemParam) if item.get("type") not in {"compaction_trigger", "item_reference"}
]
OUTPUTS: Final = {form.output: form.call for form in FORMS.values()}


def exchange(body: dict[str, Any], profile: Profile = NEUTRAL) -> Exchange:
    conversation = decode_document(read_document(json.dumps(body).encode())).conversation
    return Exchange(ADAPTER, conversation, Policy(profile=profile))


def sent(body: dict[str, Any], profile: Profile = NEUTRAL) -> Any:
    return json.loads(exchange(body, profile).request.body)


def kind(value: dict[str, Any]) -> str:
    return str(value.get("type"))


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=[name for name, _ in FIELDS])
def test_every_field_arrives_with_what_is_new_in_it(name: str, value: Any) -> None:
    # A lower limit is raised.
    value = 16 if name == "max_output_tokens" else value
    tools = [{"type": "function", "name": "a", "parameters": SCHEMA, "strict": None}]
    body = BODY | {"tools": tools, name: with_new_fields(value), **NEW_FIELDS}
    assert sent(body) == body


@pytest.mark.parametrize("tool", [*TOOLS, {"type": "x_tool", "name": "a"}], ids=kind)
def test_every_tool_arrives_with_what_is_new_in_it(tool: dict[str, Any]) -> None:
    body = BODY | {"tools": [with_new_fields(tool) | ({"parameters": SCHEMA} if "parameters" in tool else {})]}
    assert sent(body) == body


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "x_choice"}},
        {"tool_choice": "x_choice"},
        {"tool_choice": {"type": "web_search"}, "tools": [{"type": "web_search"}]},
        {"tool_choice": "required", "tools": [{"type": "web_search"}]},
        {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp", "server_label": "a"}]}},
        {"reasoning": {"effort": "x_effort"}},
        {"text": {"format": {"type": "x_format"}}},
        {"service_tier": "x_tier", "truncation": "x_truncation", "include": ["x_part"]},
    ],
    ids=str,
)
def test_a_new_word_arrives(fields: dict[str, Any]) -> None:
    assert sent(BODY | fields) == BODY | fields


def test_a_list_of_allowed_tools_arrives_as_it_is_and_is_not_told() -> None:
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": None} for name in "ab"]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]}
    body = BODY | {"tools": tools, "tool_choice": allowed}
    opened = exchange(body)
    assert json.loads(opened.request.body) == body
    assert [notice.rule for notice in opened.conversation.notices] == ["TOOL_NOT_ALLOWED"]
    assert opened.notices == []


def history_with(item: dict[str, Any]) -> list[dict[str, Any]]:
    """A history in which the API accepts the item: a call has its result, and the other way round."""
    call_id = item.get("call_id") or item.get("id")
    if (output := next((one for one, call in OUTPUTS.items() if call == kind(item)), None)) is not None:
        output_item = next(one for one in ITEMS if one["type"] == output)
        name = "call_id" if output != "local_shell_call_output" else "id"
        call_id = item["id"] if name == "id" else call_id
        return [HELLO, item | {"call_id": call_id}, output_item | {name: call_id}]
    if (call := OUTPUTS.get(kind(item))) is not None:
        call_item = next(one for one in ITEMS if one["type"] == call)
        return [HELLO, call_item | {"call_id": call_id}, item]
    # OpenAI refuses reasoning behind which nothing of the model follows.
    behind = [CALL, RESULT] if item["type"] == "reasoning" else []
    return [HELLO, item, *behind, HELLO]


@pytest.mark.parametrize("item", [*ITEMS, {"type": "x_item", "content": [{"type": "x_part"}]}], ids=kind)
def test_every_item_arrives_with_what_is_new_in_it(item: dict[str, Any]) -> None:
    body = BODY | {"input": with_new_fields(history_with(item))}
    assert sent(body) == body


@pytest.mark.parametrize(
    "part", [*samples(ResponseInputContentParam), *samples(OutputContentParam), {"type": "x_part"}], ids=kind
)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
def test_every_part_of_a_message_arrives_with_what_is_new_in_it(role: str, part: dict[str, Any]) -> None:
    body = BODY | {"input": with_new_fields([HELLO, {"role": role, "content": [part]}, HELLO])}
    assert sent(body) == body


def test_every_part_of_an_output_arrives_with_what_is_new_in_it() -> None:
    output = [*samples(ResponseInputContentParam), {"type": "x_part"}]
    body = BODY | {"input": with_new_fields([HELLO, CALL, RESULT | {"output": output}])}
    assert sent(body) == body


@pytest.mark.parametrize("value", ["Hello", "", [{"role": "user", "content": ""}]])
def test_the_input_arrives(value: Any) -> None:
    body = BODY | {"input": value}
    assert sent(body)["input"] == ([{"role": "user", "content": value}] if isinstance(value, str) else value)


@pytest.mark.parametrize("instructions", ["Be brief.", "", None])
def test_the_instructions_arrive(instructions: str | None) -> None:
    body = BODY | {"instructions": instructions}
    assert sent(body) == body


@pytest.mark.parametrize("encrypted", [{}, {"encrypted_content": None}, {"encrypted_content": ""}])
def test_reasoning_without_encrypted_content_arrives(encrypted: dict[str, Any]) -> None:
    """DeepSeek's Responses API requires it back."""
    content = [{"type": "reasoning_text", "text": "Hm."}]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content, **encrypted}
    body = BODY | {"input": with_new_fields([HELLO, reasoning, CALL, RESULT])}
    assert sent(body) == body


def test_a_summary_alone_arrives_where_the_provider_reads_plain_reasoning() -> None:
    """To OpenAI, it is a reference to an item that was not stored."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    body = BODY | {"input": [HELLO, reasoning, CALL, RESULT]}
    kept = sent(body, PROFILES["deepseek-thinking"])["input"][1]
    assert kept == {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert sent(body) == BODY | {"input": [HELLO, CALL, RESULT]}


def test_text_between_a_call_and_its_output_stays_there() -> None:
    other = CALL | {"call_id": "b"}
    for items in (
        [HELLO, CALL, SAID, RESULT],
        [HELLO, CALL, other, RESULT, SAID, RESULT | {"call_id": "b"}],
        [HELLO, CALL, HELLO, RESULT],
        [HELLO, CALL, other, RESULT | {"call_id": "b"}, RESULT],
    ):
        assert sent(BODY | {"input": items}) == BODY | {"input": items}


def test_a_call_that_the_server_ran_arrives_in_its_place() -> None:
    """Such a call has no output of the client's."""
    search = {"type": "tool_search_call", "execution": "server", "call_id": None, "arguments": {"paths": ["a"]}}
    found = {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": [{"name": "g"}]}
    called = CALL | {"name": "g", "namespace": "g"}
    shell = {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}
    shell["environment"] = {"type": "container_reference", "container_id": "c"}
    output = {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "a", "stderr": "", "outcome": {}}]}
    items = with_new_fields([HELLO, search, found, called, RESULT, shell, output, SAID, HELLO])
    tools = [{"type": "tool_search"}, {"type": "function", "name": "g", "defer_loading": True, "parameters": SCHEMA}]
    body = BODY | {"input": items, "tools": [*tools, {"type": "shell", "environment": {"type": "container_auto"}}]}
    assert sent(body) == body


def test_items_that_are_written_anew_keep_what_is_new_in_them() -> None:
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hm.", "x_part": 1}],
        "x": 2,
    }
    image = {"type": "input_image", "image_url": "https://a.example/b.png", "x_part": 3}
    user = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "a", "x_part": 4}, image],
        "x": 5,
    }
    # A call without an id gets one, and the message of a wrong role is the user's.
    items = [user | {"role": "x_role"}, said, CALL | {"call_id": "", "x": 6}, RESULT | {"call_id": ""}]
    first, second, third, _ = sent(BODY | {"input": items})["input"]
    assert (first["x"], [part["x_part"] for part in first["content"]]) == (5, [4, 3])
    assert (second["x"], second["content"][0]["x_part"]) == (2, 1)
    assert third["x"] == 6 and third["call_id"]
