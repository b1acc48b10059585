"""A strict client of the dialect, independent of its encoder: it checks every rule of the stream, and reads an answer.

The rules are those of OpenAI's API reference, and those whose breach some client cannot bear.
"""

import json
from typing import Any

from gateway.core.conversation import ToolCall
from gateway.testing.dialect_case import ClientAnswer

RESPONSE_KEYS = {
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id"),
    *("instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p"),
    *("presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage", "store"),
    *("max_output_tokens", "max_tool_calls", "background", "service_tier", "metadata", "safety_identifier"),
    "prompt_cache_key",
}
# The field of a call that holds what the model wrote.
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "tool_search_call": "arguments",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
PREFIXES = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
}
ENDS = {"response.completed": "completed", "response.incomplete": "incomplete"}
LIFECYCLE = {"response.created", "response.in_progress", *ENDS, "response.failed"}


class Stream:
    """The events of one stream, as far as they have arrived. `own`: a backend of the same API wrote them, which may
    leave out what the published types do not require."""

    def __init__(self, *, own: bool = False) -> None:
        self.own = own
        self.count = 0
        self.id: str | None = None
        self.items: dict[int, dict[str, Any]] = {}
        self.done: dict[int, dict[str, Any]] = {}
        # The open item: its index; its open part: the position, the text so far, and whether that is done.
        self.open: int | None = None
        self.part: tuple[str, int] | None = None
        self.parts: list[dict[str, Any]] = []
        self.summaries: list[dict[str, Any]] = []
        self.text = ""
        self.text_done = False
        self.written: str | None = None
        self.last: dict[str, Any] | None = None
        self.error: str | None = None
        self.failed = False

    def read(self, name: str, event: dict[str, Any]) -> None:
        assert name == event["type"], "the name of an event is its type"
        assert event["sequence_number"] == self.count, "the numbers of the events have a gap"
        self.count += 1
        assert self.last is None, "an event after the last one"
        if name in LIFECYCLE:
            self.lifecycle(name, event["response"])
        elif name == "error":
            self.read_error(event)
        else:
            assert self.id is not None and self.error is None, f"{name} stands outside an answer"
            getattr(self, name.removeprefix("response.").replace(".", "_"), self.of_other_item)(event)

    def lifecycle(self, name: str, response: dict[str, Any]) -> None:
        check_response(response)
        if self.count == 1:
            assert name == "response.created"
            self.id = response["id"]
        assert response["id"] == self.id, "the answer changed its id"
        if name in ("response.created", "response.in_progress"):
            assert (name == "response.created") == (self.count == 1), "an answer begins once"
            assert self.count != 2 or name == "response.in_progress"
            assert (response["status"], response["output"], response["usage"]) == ("in_progress", [], None)
            return
        self.last = response
        if name == "response.failed":
            assert self.error is not None, "only `error` raises in the SDKs"
            assert response["status"] == "failed" and response["error"]["message"].startswith(self.error)
            assert response["error"]["code"]
            self.failed = True
            return
        assert self.open is None, "an item is left open"
        assert response["status"] == ENDS[name] and response["error"] is None
        assert (response["incomplete_details"] is not None) == (name == "response.incomplete")
        assert response["output"] == [self.done[index] for index in range(len(self.items))]

    def read_error(self, event: dict[str, Any]) -> None:
        assert self.id is not None, "clients accept no other first event than response.created"
        nested = event["error"]
        assert {"type", "code", "message", "param"} <= nested.keys()
        assert all(event[key] == nested[key] for key in ("code", "message", "param"))
        assert self.error is None
        self.error = event["message"]

    def output_item_added(self, event: dict[str, Any]) -> None:
        item, index = event["item"], event["output_index"]
        assert self.open is None, "two items are open at once"
        assert index == len(self.items), "the indexes of the items are not dense"
        assert item["id"] not in {known["id"] for known in self.items.values()}
        check_item_id(item)
        if item["type"] == "message":
            assert (item["role"], item["content"], item["status"]) == ("assistant", [], "in_progress")
        elif item["type"] == "reasoning":
            assert item["summary"] == [] and (item["content"] == [] if not self.own else not item.get("content"))
        elif item["type"] in ("function_call", "custom_tool_call"):
            assert item[CALLS[item["type"]]] == "" and item["call_id"] and item["name"]
        elif item["type"] in CALLS:
            assert isinstance(item[CALLS[item["type"]]], dict) and item["call_id"]
        self.items[index] = item
        self.open, self.part, self.parts, self.summaries, self.written = index, None, [], [], None

    def of_other_item(self, event: dict[str, Any]) -> None:
        """An event that only items of other types have."""
        assert self.open == event["output_index"], "an event of an item that is not open"
        item = self.items[event["output_index"]]
        assert item["id"] == event["item_id"] and item["type"] not in {*PREFIXES, *CALLS}

    def item(self, event: dict[str, Any], *types: str) -> dict[str, Any]:
        assert self.open == event["output_index"], "an event of an item that is not open"
        item = self.items[event["output_index"]]
        assert item["id"] == event["item_id"] and item["type"] in types
        return item

    def begin(self, event: dict[str, Any], field: str, before: list[dict[str, Any]], empty: dict[str, Any]) -> None:
        assert self.part is None and self.written is None, "two parts are open at once"
        part = {"logprobs": [], **event["part"]} if self.own and "logprobs" in empty else event["part"]
        assert event[field] == len(before) and part == empty
        self.part, self.text, self.text_done = (field, len(before)), "", False

    def grow(self, event: dict[str, Any], field: str) -> None:
        assert self.part == (field, event[field]) and not self.text_done
        assert event["delta"], "an empty delta"
        self.text += event["delta"]

    def end_text(self, event: dict[str, Any], field: str) -> None:
        assert self.part == (field, event[field]) and not self.text_done
        assert event["text"] == self.text, "the deltas are another text than the whole"
        self.text_done = True

    def end(self, event: dict[str, Any], field: str, before: list[dict[str, Any]], kind: str) -> None:
        part = event["part"]
        assert self.part == (field, event[field]) and self.text_done
        assert (part["type"], part["refusal" if kind == "refusal" else "text"]) == (kind, self.text)
        before.append(part)
        self.part = None

    def content_part_added(self, event: dict[str, Any]) -> None:
        message = self.item(event, "message", "reasoning")["type"] == "message"
        text = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        empty = text if message else {"type": "reasoning_text", "text": ""}
        if message and self.own and event["part"]["type"] == "refusal":
            empty = {"type": "refusal", "refusal": ""}
        self.begin(event, "content_index", self.parts, empty)

    def output_text_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "message")
        assert isinstance(event["logprobs"], list)
        self.grow(event, "content_index")

    def refusal_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "message")
        self.grow(event, "content_index")

    def refusal_done(self, event: dict[str, Any]) -> None:
        self.item(event, "message")
        self.end_text({**event, "text": event["refusal"]}, "content_index")

    def output_text_annotation_added(self, event: dict[str, Any]) -> None:
        self.item(event, "message")
        assert isinstance(event["annotation"], dict) and event["annotation_index"] >= 0

    def output_text_done(self, event: dict[str, Any]) -> None:
        self.item(event, "message")
        assert isinstance(event["logprobs"], list)
        self.end_text(event, "content_index")

    def reasoning_text_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.grow(event, "content_index")

    def reasoning_text_done(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.end_text(event, "content_index")

    def content_part_done(self, event: dict[str, Any]) -> None:
        message = self.item(event, "message", "reasoning")["type"] == "message"
        kind = "output_text" if message else "reasoning_text"
        self.end(event, "content_index", self.parts, "refusal" if event["part"]["type"] == "refusal" else kind)

    def reasoning_summary_part_added(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.begin(event, "summary_index", self.summaries, {"type": "summary_text", "text": ""})

    def reasoning_summary_text_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.grow(event, "summary_index")

    def reasoning_summary_text_done(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.end_text(event, "summary_index")

    def reasoning_summary_part_done(self, event: dict[str, Any]) -> None:
        self.item(event, "reasoning")
        self.end(event, "summary_index", self.summaries, "summary_text")

    def function_call_arguments_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "function_call")
        assert event["delta"]
        self.written = (self.written or "") + event["delta"]

    def function_call_arguments_done(self, event: dict[str, Any]) -> None:
        item = self.item(event, "function_call")
        self.written = self.written or ""
        assert event["arguments"] == self.written and event["name"] == item["name"]

    def custom_tool_call_input_delta(self, event: dict[str, Any]) -> None:
        self.item(event, "custom_tool_call")
        assert event["delta"]
        self.written = (self.written or "") + event["delta"]

    def custom_tool_call_input_done(self, event: dict[str, Any]) -> None:
        self.item(event, "custom_tool_call")
        self.written = self.written or ""
        assert event["input"] == self.written

    def output_item_done(self, event: dict[str, Any]) -> None:
        item, index = event["item"], event["output_index"]
        assert self.open == index and self.part is None, "a part of the item is left open"
        assert all(item[key] == self.items[index].get(key) for key in ("id", "type"))
        assert item.get("call_id") == self.items[index].get("call_id")
        if item["type"] == "message":
            assert item["content"] == self.parts and (self.own or len(self.parts) == 1)
            assert item["status"] in ("completed", "incomplete")
        elif item["type"] == "reasoning":
            content = item.get("content") or [] if self.own else item["content"]
            assert (content, item["summary"]) == (self.parts, self.summaries)
        elif item["type"] in ("function_call", "custom_tool_call"):
            assert item[CALLS[item["type"]]] == self.written
        self.done[index] = item
        self.open = None

    def shown(self) -> ClientAnswer:
        """Returns what a client that reads item by item has shown so far."""
        items = [*self.done.values()]
        if self.open is not None:
            open_parts = [{"text": self.text}] if self.part is not None and self.part[0] == "content_index" else []
            items.append({**self.items[self.open], "content": [*self.parts, *open_parts]})
        return answer_of(items, self.last, self.error, failed=self.failed)


def check_response(response: dict[str, Any]) -> None:
    assert response.keys() >= RESPONSE_KEYS, RESPONSE_KEYS - response.keys()
    assert response["object"] == "response" and response["id"].startswith("resp_")
    assert (response["completed_at"] is not None) == (response["status"] == "completed")
    assert response["completed_at"] is None or response["completed_at"] >= response["created_at"]
    assert type(response["store"]) is bool and response["background"] is False
    for key in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"):
        assert isinstance(response[key], int | float)
    usage = response["usage"]
    if usage is not None:
        assert usage["total_tokens"] >= 0
        assert isinstance(usage["input_tokens_details"]["cached_tokens"], int)
        assert isinstance(usage["input_tokens_details"]["cache_write_tokens"], int)
        assert isinstance(usage["output_tokens_details"]["reasoning_tokens"], int)


def check_item_id(item: dict[str, Any]) -> None:
    assert 0 < len(item["id"]) <= 64 and item["id"].replace("_", "").replace("-", "").isalnum()
    assert item["id"].startswith(PREFIXES.get(item["type"], ""))
    assert 0 < len(item.get("call_id", "x")) <= 64


def answer_of(
    items: list[dict[str, Any]], last: dict[str, Any] | None, error: str | None = None, *, failed: bool = False
) -> ClientAnswer:
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    text = "".join(part["refusal"] if part.get("type") == "refusal" else part["text"] for part in parts)
    thought = "".join(part["text"] for item in items if item["type"] == "reasoning" for part in item["content"])
    calls = [
        ToolCall(item["call_id"], item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call" and item.get("status") != "in_progress"
    ]
    return ClientAnswer(
        text,
        thought,
        tuple(calls),
        None if last is None or failed else finish_of(last),
        None if last is None else tokens(last["usage"]),
        () if last is None else rules(last),
        error,
    )


def finish_of(response: dict[str, Any]) -> str:
    details = response["incomplete_details"]
    return str(response["status"]) if details is None else f"{response['status']}: {details['reason']}"


def rules(response: dict[str, Any]) -> tuple[str, ...]:
    return tuple(notice["rule"] for notice in response.get("dragoman", {}).get("diagnostics", ()))


def tokens(usage: dict[str, int] | None) -> tuple[int, int] | None:
    return None if usage is None else (usage["input_tokens"], usage["output_tokens"])


def read_stream(data: bytes) -> ClientAnswer:
    """Reads the events that are complete, of an answer of any backend."""
    return streamed(data, own=True).shown()


def streamed(data: bytes, *, own: bool = False) -> Stream:
    stream = Stream(own=own)
    for block in data.split(b"\n\n")[:-1]:
        if block.startswith(b":"):
            continue
        # Split as many clients do.
        name, line = block.decode().splitlines()
        assert name.startswith("event: ") and line.startswith("data: ")
        stream.read(name.removeprefix("event: "), json.loads(line.removeprefix("data: ")))
    return stream


def read_whole(body: bytes) -> ClientAnswer:
    response = json.loads(body)
    check_response(response)
    for item in response["output"]:
        check_item_id(item)
    return answer_of(response["output"], response)
