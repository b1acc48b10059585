"""A client of the Messages API that accepts nothing but what the API documents: it checks every event of a stream."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from gateway.core.conversation import Conversation, Image, NamedTool, Reasoning, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.provider_state import provider_state
from gateway.testing.dialect_case import ClientAnswer

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
EMPTY_BLOCKS: Final = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}
# The delta types of a block, and the field of each.
DELTAS: Final = {
    "text": {"text_delta": "text", "citations_delta": "citation"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
    "server_tool_use": {"input_json_delta": "partial_json"},
}
CONTENT: Final = ("text", "thinking", "redacted_thinking", "tool_use")
# What only a backend of the same API answers with.
OWN_CONTENT: Final = ("server_tool_use", "web_search_tool_result")
COUNTS: Final = ("input_tokens", "output_tokens")
# A backend of the same API may leave them out, or write null.
CACHE_COUNTS: Final = ("cache_creation_input_tokens", "cache_read_input_tokens")


def write(conversation: Conversation) -> bytes:
    sampling = conversation.sampling
    body: dict[str, Any] = {
        "model": conversation.model,
        "max_tokens": sampling.max_tokens or 4096,
        "stop_sequences": [*sampling.stop],
        "messages": [message(turn) for turn in conversation.turns],
        "stream": conversation.stream,
        "tools": [tool_entry(tool) for tool in conversation.tools],
    }
    fields = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "tool_choice": choice(conversation),
        **params(conversation),
    }
    return json.dumps({**body, **{name: value for name, value in fields.items() if value is not None}}).encode()


def tool_entry(tool: ToolSpec) -> dict[str, Any]:
    entry = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
    return entry if tool.strict is None else {**entry, "strict": tool.strict}


def choice(conversation: Conversation) -> dict[str, Any] | None:
    chosen = conversation.tool_choice
    made: dict[str, Any] = {"type": {"required": "any"}.get(chosen, chosen)} if isinstance(chosen, str) else {}
    if isinstance(chosen, NamedTool):
        made = {"type": "tool", "name": chosen.name}
    if not conversation.parallel_tool_calls:
        made["disable_parallel_tool_use"] = True
    return None if made == {"type": "auto"} else made


def params(conversation: Conversation) -> dict[str, Any]:
    """The fields with another name or form than in chat completions."""
    given: Any = conversation.params
    form = given.get("response_format")
    output = {
        "effort": given.get("reasoning_effort"),
        "format": form and {"type": "json_schema", "schema": form["json_schema"]["schema"]},
    }
    return {
        "top_k": given.get("top_k"),
        "metadata": {"user_id": given["user"]} if "user" in given else None,
        "output_config": {name: value for name, value in output.items() if value} or None,
    }


def message(turn: Turn) -> dict[str, Any]:
    if turn.results:
        return {"role": "user", "content": [result_block(result) for result in turn.results]}
    said = [thinking_block(block) for block in turn.blocks if isinstance(block, Reasoning)]
    said += [{"type": "text", "text": turn.text}] if turn.text else []
    said += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in turn.calls
    ]
    said += [image_block(block) for block in turn.blocks if isinstance(block, Image)]
    return {"role": turn.role, "content": turn.text if len(said) < 2 and not turn.calls else said}


def thinking_block(block: Reasoning) -> dict[str, Any]:
    signature = provider_state(block.extra, "anthropic").get("signature", "")
    return {"type": "thinking", "thinking": block.text, "signature": signature}


def result_block(result: ToolResult) -> dict[str, Any]:
    failed = {"is_error": True} if result.is_error else {}
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text, **failed}


def image_block(image: Image) -> dict[str, Any]:
    media_type, _, data = image.url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def frames(data: bytes) -> Iterator[dict[str, Any]]:
    """The data of every complete event; each has a name, which is its type, and one line of data."""
    for frame in data.split(b"\n\n")[:-1]:
        lines = frame.decode().splitlines()
        assert len(lines) == 2, "a line of an event is broken"
        assert lines[0].startswith("event: ") and lines[1].startswith("data: ")
        event = json.loads(lines[1].removeprefix("data: "))
        assert lines[0] == f"event: {event['type']}", "the name of an event is not its type"
        yield event


class StreamReader:
    """Reads the events of one stream. Raises AssertionError for any that must not follow."""

    def __init__(self) -> None:
        self.message: dict[str, Any] | None = None
        self.content: list[dict[str, Any]] = []
        self.open: dict[str, Any] | None = None
        self.input = ""
        self.last: dict[str, Any] | None = None
        self.stopped = False
        self.cut = False
        self.failure: dict[str, Any] | None = None

    def read(self, data: bytes) -> "StreamReader":
        for event in frames(data):
            assert self.failure is None and not self.stopped, "an event follows the last one"
            getattr(self, event.pop("type"))(**event)
        return self

    def ping(self) -> None:
        pass

    def error(self, error: dict[str, Any], request_id: str | None) -> None:
        assert isinstance(error["type"], str) and isinstance(error["message"], str)
        self.failure = error

    def message_start(self, message: dict[str, Any]) -> None:
        assert self.message is None, "a message starts twice"
        assert (message["type"], message["role"], message["content"]) == ("message", "assistant", [])
        assert message["stop_reason"] is None is message["stop_sequence"]
        check_counts(message["usage"])
        assert message["usage"]["input_tokens"] + message["usage"].get("cache_read_input_tokens", 0) > 0, "Ctx 0"
        self.message = message

    def content_block_start(self, index: int, content_block: dict[str, Any]) -> None:
        assert self.message is not None and self.last is None
        assert self.open is None, "a block starts inside another one"
        assert index == len(self.content)
        kind = content_block["type"]
        if kind == "tool_use":
            assert CALL_ID.fullmatch(content_block["id"]) and content_block["name"] and content_block["input"] == {}
        elif kind in EMPTY_BLOCKS:
            # A backend of the same API may announce citations.
            assert {key: value for key, value in content_block.items() if key != "citations"} == EMPTY_BLOCKS[kind]
        self.open, self.input = dict(content_block), ""

    def content_block_delta(self, index: int, delta: dict[str, Any]) -> None:
        assert self.open is not None and index == len(self.content), "a delta of no open block"
        field = DELTAS[self.open["type"]][delta["type"]]
        assert delta.keys() == {"type", field}
        # Anthropic begins each call with one.
        assert delta[field] or field == "partial_json", "an empty delta"
        if field == "partial_json":
            self.input += delta[field]
        elif field == "signature":
            self.open[field] = delta[field]
        elif field == "citation":
            self.open["citations"] = [*self.open.get("citations", ()), delta[field]]
        else:
            self.open[field] += delta[field]

    def content_block_stop(self, index: int) -> None:
        assert self.open is not None and index == len(self.content)
        if self.input:
            self.open["input"] = self.read_input(self.input)
        self.content.append(self.open)
        self.open = None

    def read_input(self, text: str) -> dict[str, Any]:
        """Only the limit of the answer may cut the input of a call off; a whole answer has it as text, too."""
        try:
            read = json.loads(text)
        except ValueError:
            self.cut = True
            return {"arguments": text}
        assert isinstance(read, dict)
        return read

    def message_delta(
        self, delta: dict[str, Any], usage: dict[str, Any], dragoman: dict[str, Any] | None = None
    ) -> None:
        assert self.message is not None and self.open is None and self.last is None
        assert isinstance(delta["stop_reason"], str) and delta.keys() == {"stop_reason", "stop_sequence"}
        # As the SDKs do, the counts of the end replace those of the start.
        usage = self.message["usage"] | usage
        check_counts(usage)
        self.last = {**delta, "usage": usage, "dragoman": dragoman or {}}

    def message_stop(self) -> None:
        assert self.last is not None
        assert not self.cut or self.last["stop_reason"] == "max_tokens", "the input of a call is no JSON"
        self.stopped = True


def check_counts(usage: dict[str, Any]) -> None:
    for name in (*COUNTS, *[name for name in CACHE_COUNTS if usage.get(name) is not None]):
        assert type(usage[name]) is int and usage[name] >= 0, f"{name} is no count"


def read_stream(data: bytes) -> ClientAnswer:
    reader = StreamReader().read(data)
    content = [*reader.content, *([] if reader.open is None else [reader.open])]
    last = reader.last or {"stop_reason": None, "usage": None, "dragoman": {}}
    return answer_of(
        content,
        last["stop_reason"] if reader.stopped else None,
        last["usage"],
        last["dragoman"],
        None if reader.failure is None else reader.failure["message"],
    )


def read_whole(body: bytes) -> ClientAnswer:
    message = json.loads(body)
    assert (message["type"], message["role"]) == ("message", "assistant") and message["id"].startswith("msg_")
    check_counts(message["usage"])
    for block in message["content"]:
        assert block["type"] in (*CONTENT, *OWN_CONTENT)
        assert block["type"] != "tool_use" or isinstance(block["input"], dict)
    return answer_of(message["content"], message["stop_reason"], message["usage"], message.get("dragoman", {}), None)


def answer_of(
    content: list[dict[str, Any]],
    stop_reason: str | None,
    usage: dict[str, int] | None,
    dragoman: dict[str, Any],
    error: str | None,
) -> ClientAnswer:
    calls = [
        ToolCall(block["id"], block["name"], json.dumps(block["input"]))
        for block in content
        if block["type"] == "tool_use"
    ]
    return ClientAnswer(
        "".join(block["text"] for block in content if block["type"] == "text"),
        "".join(block["thinking"] for block in content if block["type"] == "thinking"),
        tuple(calls),
        stop_reason,
        None if usage is None else (usage["input_tokens"], usage["output_tokens"]),
        tuple(notice["rule"] for notice in dragoman.get("diagnostics", ())),
        error,
    )


def read_error(body: bytes) -> str:
    answer = json.loads(body)
    assert answer["type"] == "error" and isinstance(answer["error"]["type"], str)
    return str(answer["error"]["message"])


def read_models(body: bytes) -> list[str]:
    page = json.loads(body)
    assert all(model["type"] == "model" and model["display_name"] and model["created_at"] for model in page["data"])
    assert page["has_more"] is False
    names = [model["id"] for model in page["data"]]
    assert (page["first_id"], page["last_id"]) == ((names[0], names[-1]) if names else (None, None))
    return names
