"""An answer of the Responses API arrives at a client of the same API as the backend wrote it.

The values are those of the published types of OpenAI's SDK. The exceptions are listed in docs/responses-backends.md,
"A client of the same API".
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent

from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from gateway.core.events import Event, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.samples import samples
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

ADAPTER: Final = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
DIALECT: Final = OpenAIResponsesDialect()
HEAD: Final = AnswerHead("1", 0, "m", lambda: 0)
BODY: Final[dict[str, Any]] = {
    "model": "m",
    "input": "Hello",
    "tools": [
        {"type": "function", "name": "a", "parameters": {"type": "object", "properties": {}}},
        {"type": "namespace", "name": "a", "description": "", "tools": [{"type": "custom", "name": "a"}]},
        {"type": "custom", "name": "a"},
        {"type": "shell", "environment": {"type": "local"}},
    ],
}
# What the gateway writes itself.
OWN: Final = {"id", "object", "created_at", "completed_at", "model", "store", "background", "previous_response_id"}
RESPONSE: Final[dict[str, Any]] = {
    name: value
    for name, value in samples(Response)[0].items()
    if name not in {"conversation", "error", "incomplete_details", "output", "prompt"}
} | {"status": "completed", "error": None, "incomplete_details": None}
# Ids of another form are the gateway's own.
IDS: Final = {"message": "msg_1", "reasoning": "rs_1", **{form.call: f"{form.prefix}_1" for form in FORMS.values()}}
ITEMS: Final[list[dict[str, Any]]] = [
    item | {"id": IDS.get(item["type"], "x")} for item in (*samples(ResponseOutputItem), {"type": "x_item"})
]
EVENTS: Final = {event["type"]: event for event in samples(ResponseStreamEvent)}


def kind(value: dict[str, Any]) -> str:
    return str(value["type"])


def answered(body: bytes, *, stream: bool, label: str | None = None) -> bytes:
    """The bytes that the client gets; of a stream, each event arrives alone."""
    request = DIALECT.decode(
        read_document(json.dumps(BODY | {"stream": stream}).encode()), RequestHead("/v1/responses")
    )
    exchange = Exchange(ADAPTER, request.conversation, Policy(), label=label)
    exchange.on_response_head(200, {"content-type": "text/event-stream" if stream else "application/json"})
    if not stream:
        return DIALECT.encode_answer(request, HEAD, [*exchange.feed(body), *exchange.close()])
    encoder = DIALECT.stream_encoder(request, HEAD)
    written = b"".join([encoder.feed(exchange.feed(event + b"\n\n")) for event in body.split(b"\n\n") if event])
    return written + encoder.feed(exchange.close()) + encoder.close()


def whole(response: dict[str, Any]) -> Any:
    return theirs(json.loads(answered(json.dumps(response).encode(), stream=False)))


def streamed(events: Iterable[dict[str, Any]]) -> list[Any]:
    written = b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)
    sent = answered(written, stream=True).decode()
    read = [json.loads(frame.partition("data: ")[2]) for frame in sent.split("\n\n") if frame]
    return [event | ({"response": theirs(event["response"])} if "response" in event else {}) for event in read]


def theirs(response: dict[str, Any]) -> dict[str, Any]:
    """A response without what the gateway writes itself, and without the fields that the backend left out."""
    return {name: value for name, value in response.items() if name not in OWN and name in {*RESPONSE, *MORE}}


MORE: Final = {"output", *NEW_FIELDS}


def response_with(*items: dict[str, Any]) -> dict[str, Any]:
    return {**with_new_fields(RESPONSE), "output": [*items], **NEW_FIELDS}


def item_of(kind: str) -> dict[str, Any]:
    return next(item for item in ITEMS if item["type"] == kind)


# The fields of an item that grow, as it begins.
GROWN: Final[dict[str, dict[str, Any]]] = {
    "message": {"content": []},
    "reasoning": {"summary": [], "content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
# Of a part: its field of the item, the kinds of its events, and its field with text.
PARTS: Final = {
    "output_text": ("content", "content_part", "output_text", "text"),
    "refusal": ("content", "content_part", "refusal", "refusal"),
    "reasoning_text": ("content", "content_part", "reasoning_text", "text"),
    "summary_text": ("summary", "reasoning_summary_part", "reasoning_summary_text", "text"),
}
INPUTS: Final = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}


def new(kind: str, **fields: Any) -> dict[str, Any]:
    """An event with new fields."""
    return {"type": f"response.{kind}", **fields, **NEW_FIELDS}


def growing(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """The events of one item, as OpenAI writes them."""
    place = {"output_index": index}
    grows = kind(item) in GROWN or kind(item).endswith("_call")
    begun = {**item, **GROWN.get(kind(item), {}), **({"status": "in_progress"} if grows and "status" in item else {})}
    yield new("output_item.added", **place, item=begun)
    place["item_id"] = item["id"]
    for field in ("summary", "content"):
        for position, part in enumerate(item.get(field) or [] if kind(item) in GROWN else []):
            yield from growing_part(part, place, position)
    if kind(item) in INPUTS:
        name, field = INPUTS[kind(item)]
        yield new(f"{name}.delta", **place, delta=item[field][:1])
        yield new(f"{name}.delta", **place, delta=item[field][1:])
        yield new("x_item.progress", **place, of=[1])
        named = {"name": item["name"]} if field == "arguments" else {}
        yield new(f"{name}.done", **place, **{field: item[field]}, **named)
    else:
        yield new("x_item.progress", **place, of=[1])
    yield new("output_item.done", output_index=index, item=item)


def growing_part(part: dict[str, Any], place: dict[str, Any], position: int) -> Iterator[dict[str, Any]]:
    if kind(part) not in PARTS:
        place = {**place, "content_index": position}
        yield new("content_part.added", **place, part=part)
        yield new("x_part.delta", **place, delta="a")
        yield new("content_part.done", **place, part=part)
        return
    _, framed, name, field = PARTS[kind(part)]
    place = {**place, ("summary_index" if kind(part) == "summary_text" else "content_index"): position}
    yield new(
        f"{framed}.added", **place, part={**part, field: "", **({"annotations": []} if "annotations" in part else {})}
    )
    logprobs = {"logprobs": part["logprobs"]} if "logprobs" in part else {}
    for piece in (part[field][:1], part[field][1:]):
        yield new(f"{name}.delta", **place, delta=piece, **logprobs)
    for number, annotation in enumerate(part.get("annotations") or []):
        yield new("output_text.annotation.added", **place, annotation_index=number, annotation=annotation)
    yield new(f"{name}.done", **place, **{field: part[field]}, **logprobs)
    yield new(f"{framed}.done", **place, part=part)


def stream_of(*items: dict[str, Any]) -> list[dict[str, Any]]:
    response = response_with(*items)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events = [new("created", response=begun), new("in_progress", response=begun)]
    events += [event for index, item in enumerate(items) for event in growing(item, index)]
    return numbered([*events, new("completed", response=response)])


def numbered(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def expected(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event | ({"response": theirs(event["response"])} if "response" in event else {}) for event in events]


def texts(item: dict[str, Any]) -> dict[str, Any]:
    """An item whose texts have two pieces, and whose arguments are an object."""
    item = {name: value for name, value in item.items()}
    for field in ("summary", "content"):
        if isinstance(item.get(field), list) and kind(item) in GROWN:
            item[field] = [part | {PARTS[kind(part)][3]: "ab"} for part in item[field]]
    item |= {"function_call": {"arguments": '{"a":1}'}, "custom_tool_call": {"input": "ab"}}.get(kind(item), {})
    return with_new_fields(item | ({"status": "completed"} if "status" in item else {}))  # type: ignore[no-any-return]


TEXT: Final = {"type": "output_text", "text": "ab", "annotations": [], "logprobs": []}
MESSAGES: Final = [
    item_of("message") | {"status": "completed", "content": content, "id": f"msg_{number}"}
    for number, content in enumerate(
        [
            [TEXT, TEXT],
            [{"type": "refusal", "refusal": "no"}],
            [TEXT, {"type": "refusal", "refusal": "no"}, TEXT | {"annotations": [{"type": "file_path", "index": 1}]}],
            [TEXT | {"annotations": [{"type": "file_path", "index": number}]} for number in range(3)],
            [{"type": "x_part", "of": "any kind"}, TEXT],
            [TEXT | {"x_part": 1}, {"type": "x_part"}],
            [],
        ]
    )
]
SUMMARIES: Final = [{"type": "summary_text", "text": "ab"}] * 2
THOUGHTS: Final[list[dict[str, Any]]] = [
    {"summary": SUMMARIES, "content": None},
    {"summary": [], "content": [{"type": "reasoning_text", "text": "ab"}] * 2, "encrypted_content": None},
    {"summary": [], "content": [], "encrypted_content": "state"},
    {"summary": [], "encrypted_content": None, "content": []},
]
REASONING: Final = [item_of("reasoning") | {"id": "rs_1"} | fields for fields in THOUGHTS]
ANSWERS: Final = [texts(item) for item in ITEMS] + with_new_fields([*MESSAGES, *REASONING])


@pytest.mark.parametrize("item", ANSWERS, ids=kind)
def test_a_whole_answer_arrives_with_what_is_new_in_it(item: dict[str, Any]) -> None:
    response = response_with(item)
    assert whole(response) == theirs(response)


@pytest.mark.parametrize("item", ANSWERS, ids=kind)
def test_every_event_of_a_stream_arrives_with_what_is_new_in_it(item: dict[str, Any]) -> None:
    events = stream_of(item)
    assert streamed(events) == expected(events)


def one_of_each() -> list[dict[str, Any]]:
    kinds = [kind(item) for item in ANSWERS]
    return [
        item | {"id": f"{item['id']}{n}"} | ({"call_id": f"c{n}"} if "call_id" in item else {})
        for n, item in enumerate(ANSWERS)
        if kinds.index(kind(item)) == n
    ]


def test_all_items_arrive_in_their_order() -> None:
    items = one_of_each()
    response = response_with(*items)
    assert whole(response) == theirs(response)
    events = stream_of(*items)
    assert streamed(events) == expected(events)


def test_an_event_of_a_new_type_arrives_in_its_place() -> None:
    items = [item for item in one_of_each() if kind(item) in {*GROWN, "web_search_call"}]
    events: list[dict[str, Any]] = []
    for event in stream_of(*items):
        # The whole input of a call stands with its end.
        more = [] if event["type"].endswith(("arguments.done", "input.done")) else [{"type": "x_event", **NEW_FIELDS}]
        events += [event, *more, *more]
    # The gateway writes the first two events together.
    events = numbered([events[0], events[3], *events[1:3], *events[4:-2]])
    assert streamed(events) == expected(events)


@pytest.mark.parametrize(
    "event",
    [
        event
        for name, event in EVENTS.items()
        if re.match(r"response\.(?!function)\w+(_call|_code|_tools|_arguments)\.", name)
    ],
    ids=kind,
)
def test_every_event_about_an_item_of_the_server_arrives(event: dict[str, Any]) -> None:
    item = {"type": "x_item", "id": event.get("item_id", "i")}
    events = stream_of(TEXT_ITEM, item, TEXT_ITEM | {"id": "msg_2"})
    end = next(at for at, one in enumerate(events) if one.get("item") == item and one["type"].endswith("done"))
    about = with_new_fields(event) | {"output_index": 1}
    # Some come behind the end of their item.
    events = numbered([*events[:end], about, events[end], about, *events[end + 1 :]])
    assert streamed(events) == expected(events)


TEXT_ITEM: Final = item_of("message") | {"status": "completed", "content": [TEXT]}


def test_what_a_shell_and_a_patch_do_arrives_before_and_behind_the_end_of_their_item() -> None:
    patch = item_of("apply_patch_call") | {"call_id": "p"}
    shell = item_of("shell_call") | {"call_id": "s", "environment": {"type": "local"}}
    events = stream_of(patch, shell)
    late = [
        new("apply_patch_call_operation_diff.delta", output_index=0, item_id="apc_1", delta="a"),
        new("shell_call_command.delta", output_index=1, item_id="sh_1", command_index=0, delta="a"),
    ]
    events = numbered([*events[:3], *late[:1], *events[3:6], *late, *events[6:-1], *late, events[-1]])
    assert streamed(events) == expected(events)


HOSTED: Final[dict[str, dict[str, Any]]] = {
    "tool_search_call": {"execution": "server", "call_id": None},
    "tool_search_output": {"execution": "server", "call_id": None},
    # xAI's own search.
    "custom_tool_call": {"name": "x_keyword_search"},
    "shell_call": {"environment": {"type": "container_reference", "container_id": "c"}},
}


@pytest.mark.parametrize("name", HOSTED)
def test_a_call_that_the_server_runs_is_no_call_of_the_client(name: str) -> None:
    item = texts(item_of(name)) | HOSTED[name]
    body = json.dumps(response_with(item)).encode()
    request = DIALECT.decode(read_document(json.dumps(BODY).encode()), RequestHead("/v1/responses"))
    exchange = Exchange(ADAPTER, request.conversation, Policy())
    exchange.on_response_head(200, {"content-type": "application/json"})
    assert not [event for event in (*exchange.feed(body), *exchange.close()) if isinstance(event, ToolCallStart)]
    events = stream_of(item, TEXT_ITEM)
    assert streamed(events) == expected(events)


def test_a_call_that_ends_under_another_id_does_so_for_the_client() -> None:
    """OpenAI does this with `tool_search_call`."""
    item = texts(item_of("tool_search_call")) | {"execution": "client", "call_id": "b"}
    events = stream_of(item)
    events[2]["item"] |= {"call_id": "a"}
    assert streamed(events) == expected(events)


@pytest.mark.parametrize("namespace", ["a", "b"])
def test_a_call_in_a_namespace_that_the_request_does_not_offer_keeps_its_name(namespace: str) -> None:
    """OpenAI's search calls a plain function that it found with its name as the namespace."""
    call = texts(item_of("function_call")) | {"name": "a", "namespace": namespace}
    events = stream_of(call)
    assert streamed(events) == expected(events)
    assert whole(response_with(call)) == theirs(response_with(call))


USAGES: Final[dict[str, dict[str, Any]]] = {
    "xAI": {
        "num_sources_used": 0,
        "num_server_side_tools_used": 1,
        "cost_in_usd_ticks": 7,
        "context_details": {"a": 1},
    },
    "OpenRouter": {"cost": 0.5, "is_byok": False, "cost_details": {"upstream_inference_cost": None}},
}


@pytest.mark.parametrize("maker", USAGES)
def test_every_count_of_a_backend_arrives(maker: str) -> None:
    response = response_with(TEXT_ITEM)
    response["usage"] |= USAGES[maker]
    assert whole(response) == theirs(response)


def test_the_counts_that_the_published_type_requires_are_always_there() -> None:
    response = response_with(TEXT_ITEM) | {"usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}
    usage = whole(response)["usage"]
    assert usage["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "x_reason"])
def test_why_an_answer_is_incomplete_arrives(reason: str) -> None:
    why = {"status": "incomplete", "incomplete_details": {"reason": reason, **NEW_FIELDS}}
    item = texts(item_of("function_call")) | {"status": "incomplete", "arguments": '{"a'}
    response = response_with(item) | why
    assert whole(response) == theirs(response)
    events = stream_of(item)
    events[-1] |= {"type": "response.incomplete", "response": response}
    assert streamed(events) == expected(events)


def test_a_response_of_few_fields_gets_those_that_the_published_types_require() -> None:
    """Servers of other makers leave out what OpenAI writes."""
    item = {"type": "message", "content": [{"type": "output_text", "text": "ab"}]}
    response = json.loads(answered(json.dumps({"status": "completed", "output": [item]}).encode(), stream=False))
    (message,) = response["output"]
    assert (message["role"], message["status"]) == ("assistant", "completed")
    assert message["content"] == [{"type": "output_text", "text": "ab", "annotations": []}]
    assert response["status"] == "completed"


@pytest.mark.parametrize("name", ["reasoning", "compaction"])
def test_every_state_gets_the_label_of_its_backend(name: str) -> None:
    label = "Dragoman0123456789abcdef"
    events = stream_of(texts(item_of(name)) | {"encrypted_content": "state"})
    written = b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)
    sent = answered(written, stream=True, label=label)
    assert b'"encrypted_content":"%bstate"' % label.encode() in sent
    assert b'"encrypted_content":"state"' not in sent


def events_of(body: bytes, tools: list[dict[str, Any]]) -> list[Event]:
    document = read_document(json.dumps(BODY | {"tools": tools}).encode())
    exchange = Exchange(ADAPTER, DIALECT.decode(document, RequestHead("/v1/responses")).conversation, Policy())
    exchange.on_response_head(200, {"content-type": "application/json"})
    return [*exchange.feed(body), *exchange.close()]


@pytest.mark.parametrize("content", [[], [TEXT | {"text": ""}]])
def test_an_answer_without_output_is_told(content: list[dict[str, Any]]) -> None:
    events = events_of(json.dumps(response_with(TEXT_ITEM | {"content": content})).encode(), [])
    assert "EMPTY_ANSWER" in [event.rule for event in events if isinstance(event, Notice)]


def test_a_part_at_any_position_is_one_part() -> None:
    events = stream_of(TEXT_ITEM)
    for event in events:
        if "content_index" in event:
            event["content_index"] = 1 << 60
    assert streamed(events)[-1]["response"]["output"][0]["content"][-1]["text"] == "ab"


def text_events(steps: list[str]) -> list[dict[str, Any]]:
    """The events of a stream in which items open, and texts at an item and a part grow: `+0` opens, `0.1=A` grows, `-0`
    ends with the whole text alone, `+0.1` begins a part."""
    events = stream_of(TEXT_ITEM)[:2]
    for step in steps:
        place, _, text = step.lstrip("+-").partition("=")
        item, _, part = place.partition(".")
        at: dict[str, Any] = {"output_index": int(item)} | ({"content_index": int(part)} if part else {})
        message = TEXT_ITEM | {"id": f"msg_{item}", "content": [TEXT | {"text": text}] if text else []}
        match step[0]:
            case "+" if part:
                events.append(new("content_part.added", **at, part=TEXT | {"text": ""}))
            case "+":
                events.append(new("output_item.added", **at, item=message | {"status": "in_progress"}))
            case "-":
                events.append(new("output_item.done", **at, item=message))
            case _:
                events.append({"type": "response.output_text.delta", **at, "delta": text})
    return [*events, new("completed", response=response_with())]


OUT_OF_ORDER: Final = {
    "two open messages": ["+0", "+1", "0.0=A", "1.0=B", "0.0=A2"],
    "two open parts": ["+0", "+0.0", "0.0=A", "+0.1", "0.1=B", "0.0=A2"],
    "a part that begins twice": ["+0", "+0.0", "0.0=A", "+0.1", "0.1=B", "+0.0", "0.0=A2"],
    "a text that comes with the end": ["+0", "+1", "-0=A", "1.0=B", "1.0=A2"],
}


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_a_text_that_comes_behind_the_beginning_of_another_is_told_and_not_lost(name: str) -> None:
    events = text_events(OUT_OF_ORDER[name])
    output = streamed(events)[-1]["response"]["output"]
    texts = "".join(part["text"] for item in output for part in item["content"])
    assert sorted(texts) == sorted("ABA2")
    told = [notice.rule for notice in notices_of(events)]
    assert told.count("TEXT_OUT_OF_ORDER") == 1


@pytest.mark.parametrize(
    "steps",
    [
        ["+0", "0.0=A", "0.1=B", "-0", "+1", "1.0=C", "1.0=D"],
        ["+0", "+0.0", "0.0=A", "+0.1", "0.1=B", "-0=A", "+1", "-1=C"],
    ],
)
def test_texts_that_follow_one_another_are_not_told(steps: list[str]) -> None:
    assert "TEXT_OUT_OF_ORDER" not in [notice.rule for notice in notices_of(text_events(steps))]


def notices_of(events: Iterable[dict[str, Any]]) -> list[Notice]:
    body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    request = DIALECT.decode(read_document(json.dumps(BODY | {"stream": True}).encode()), RequestHead("/v1/responses"))
    exchange = Exchange(ADAPTER, request.conversation, Policy())
    exchange.on_response_head(200, {"content-type": "text/event-stream"})
    return [event for event in [*exchange.feed(body), *exchange.close()] if isinstance(event, Notice)]


@pytest.mark.parametrize("position", [-5, -1, True])
def test_a_part_that_begins_at_no_position_loses_nothing(position: Any) -> None:
    events = stream_of(TEXT_ITEM)
    (begun,) = [event for event in events if event["type"] == "response.content_part.added"]
    begun["content_index"] = position
    sent = streamed(events)
    assert "".join(part["text"] for part in sent[-1]["response"]["output"][0]["content"]) == "ab"
    assert all(type(event.get("content_index", 0)) is int and event.get("content_index", 0) >= 0 for event in sent)


@pytest.mark.parametrize(
    "fields",
    [{"item": {"type": "x"}, "output_index": 0}, {"item": {}}, {"item": {}, "output_index": []}, {"output_index": 0}],
)
@pytest.mark.parametrize("moment", ["added", "done"])
def test_an_event_without_the_prefix_of_the_api_is_no_event_of_an_item(moment: str, fields: dict[str, Any]) -> None:
    events = stream_of(TEXT_ITEM)
    other = {"type": f"output_item.{moment}", **fields}
    plain = streamed(events)[-1]["response"]
    for at in range(2, len(events)):
        sent = streamed([*events[:at], other, *events[at:]])
        assert [event["type"] for event in sent].count(other["type"]) == 1
        assert sent[-1]["response"] == plain


@pytest.mark.parametrize(("name", "kind"), [("a", "function_call"), ("run", "custom_tool_call")])
def test_a_call_through_a_wrapper_tool_is_the_call_inside_it(name: str, kind: str) -> None:
    inner = {"name": name, "args": {"input": "x"}}
    call = texts(item_of("function_call")) | {
        "name": "call_mcp_tool",
        "arguments": json.dumps(inner),
        "namespace": None,
    }
    body = BODY | {"tools": [*BODY["tools"][:1], {"type": "custom", "name": "run"}]}
    request = DIALECT.decode(read_document(json.dumps(body).encode()), RequestHead("/v1/responses"))
    exchange = Exchange(ADAPTER, request.conversation, Policy())
    exchange.on_response_head(200, {"content-type": "application/json"})
    events = [*exchange.feed(json.dumps(response_with(call)).encode()), *exchange.close()]
    (item,) = json.loads(DIALECT.encode_answer(request, HEAD, events))["output"]
    assert (item["type"], item["name"]) == (kind, name)
    assert item["input" if kind == "custom_tool_call" else "arguments"] in ("x", '{"input": "x"}', '{"input":"x"}')
