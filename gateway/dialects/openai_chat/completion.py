"""All events of an answer in, one `chat.completion` object out: the fold of what a stream would have said."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from gateway.dialects.openai_chat.fields import Fields, call_object
from gateway.dialects.openai_chat.remarks import remarks
from gateway.dialects.openai_chat.usage import merge_usage, usage_object
from gateway.events import (
    Event,
    Extension,
    Finish,
    Reason,
    ReasoningDelta,
    ResponseStart,
    Scope,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.notices import Notice
from gateway.types import Json


def encode_completion(
    events: Iterable[Event], *, id: str, created: int, model: str, diagnostics: bool = False
) -> bytes:
    """One JSON answer from the events of a complete response. `diagnostics` adds the notices among them."""
    fold = _Fold()
    for event in events:
        fold.add(event)
    answer: dict[str, Json] = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [fold.choice()],
        **fold.unknown("response"),
    }
    if fold.usage is not None:
        answer["usage"] = usage_object(fold.usage)
    if said := remarks(fold.usage, fold.notices if diagnostics else None):
        answer["dragoman"] = said
    return msgspec.json.encode(answer)


class _Fold:
    """The answer so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.starts: dict[int, ToolCallStart] = {}
        self.arguments: dict[int, list[str]] = {}
        self.reason: Reason = "stop"
        self.usage: UsageReport | None = None
        self.notices: list[Notice] = []
        self._extensions: dict[Scope, Fields] = {}

    def add(self, event: Event) -> None:
        match event:
            case TextDelta():
                self.text.append(event.text)
            case ReasoningDelta():
                self.reasoning.append(event.text)
            case ToolCallStart():
                self.starts[event.index] = event
                self.arguments[event.index] = []
            case ToolCallDelta():
                self.arguments[event.index].append(event.arguments)
            case Finish():
                self.reason = event.reason
            case UsageReport():
                self.usage = merge_usage(self.usage, event)
            case Extension():
                self._extend(event)
            case Notice():
                self.notices.append(event)
            case ResponseStart() | ToolCallEnd():
                pass
            case _:
                assert_never(event)

    def choice(self) -> dict[str, Json]:
        return {
            "index": 0,
            "message": self._message(),
            "logprobs": None,
            "finish_reason": self.reason,
            **self.unknown("choice"),
        }

    def unknown(self, scope: Scope) -> dict[str, Json]:
        """The fields that nobody here knows."""
        fields = self._extensions.get(scope)
        return {} if fields is None else fields.joined()

    def _extend(self, event: Extension) -> None:
        fields = self._extensions.get(event.scope)
        if fields is None:
            fields = self._extensions[event.scope] = Fields(grow=event.scope != "response")
        fields.add(event.fields)

    def _message(self) -> dict[str, Json]:
        fields = self.unknown("delta")
        silent = bool(self.starts or self.reasoning or fields)
        content = None if silent and not self.text else "".join(self.text)
        message: dict[str, Json] = {"role": "assistant", "content": content, "refusal": None}
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.starts:
            message["tool_calls"] = [self._call(start) for start in self.starts.values()]
        return {**message, **fields}

    def _call(self, start: ToolCallStart) -> dict[str, Json]:
        arguments = "".join(self.arguments[start.index])
        if not arguments and start.extra.get("type") != "custom":
            arguments = "{}"
        return call_object(start.id, start.name, arguments, start.extra)
