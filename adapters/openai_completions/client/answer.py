"""Encodes events as `text_completion` objects: server-sent events, or one whole answer of the same shape."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import msgspec

from adapters.openai.client_errors import encode_error_frame
from adapters.openai.usage import usage_object
from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    Reason,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.event_stream import DONE, EVENT_STREAM_HEADERS, PING, one_line_each
from gateway.dialects.usage import merge_usage

_encode: Final = msgspec.json.Encoder().encode


def _answer_fields(head: AnswerHead) -> dict[str, Json]:
    return {"id": f"cmpl-{head.unique}", "object": "text_completion", "created": head.created, "model": head.model}


class _AnswerEnd:
    """The fields of an answer beside its text: why it ended, its tokens, and the gateway's own notes."""

    def __init__(self, head: AnswerHead) -> None:
        self.reason: Reason = "stop"
        self.usage: UsageReport | None = None
        self._notices: list[Notice] | None = [] if head.diagnostics else None

    def add(self, event: Event) -> None:
        """Takes the facts of an event that is no text. Reasoning and calls do not reach a client of this dialect."""
        if type(event) is Finish:
            self.reason = event.reason
        elif type(event) is UsageReport:
            self.usage = merge_usage(self.usage, event)
        elif type(event) is Notice:
            if self._notices is not None:
                self._notices.append(event)
        elif (
            type(event) is not ResponseStart
            and type(event) is not TextDelta
            and type(event) is not ReasoningDelta
            and type(event) is not ReasoningEnd
            and type(event) is not ToolCallStart
            and type(event) is not ToolCallDelta
            and type(event) is not ToolCallEnd
            and type(event) is not PassthroughFields
        ):
            assert_never(event)

    def fields(self, *, with_usage: bool) -> dict[str, Json]:
        """Returns `usage` and `dragoman`, without those that say nothing."""
        usage = self.usage if with_usage else None
        fields: dict[str, Json] = {} if usage is None else {"usage": usage_object(usage)}
        if said := dragoman_field(usage, self._notices):
            fields["dragoman"] = said
        return fields


def encode_answer(events: Sequence[Event], head: AnswerHead) -> bytes:
    """Returns one JSON response from the events of a complete answer."""
    end = _AnswerEnd(head)
    text: list[str] = []
    for event in events:
        if type(event) is TextDelta:
            text.append(event.text)
        else:
            end.add(event)
    choice: Json = {"text": "".join(text), "index": 0, "logprobs": None, "finish_reason": end.reason}
    return _encode({**_answer_fields(head), "choices": [choice], **end.fields(with_usage=True)})


class CompletionStreamEncoder:
    """Encodes one answer. Every chunk is a constant head, a text and a constant tail."""

    headers = EVENT_STREAM_HEADERS

    def __init__(self, head: AnswerHead, *, include_usage: bool) -> None:
        self._head = b"data: " + _encode(_answer_fields(head))[:-1] + b',"choices":['
        self._text = self._head + b'{"text":'
        self._after = b',"index":0,"logprobs":null,"finish_reason":'
        self._tail = b'}],"usage":null}\n\n' if include_usage else b"}]}\n\n"
        self._more = self._after + b"null" + self._tail
        self._include_usage = include_usage
        self._end = _AnswerEnd(head)

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the chunks of these events; they may be sent in one piece."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                out += (self._text, _encode(event.text), self._more)
            else:
                self._end.add(event)
                if type(event) is Finish:
                    out += (self._text, b'""', self._after, _encode(event.reason), self._tail)
        return one_line_each(b"".join(out))

    def quiet(self) -> bytes:
        """Returns a comment, which clients ignore."""
        return PING

    def fail(self, error: GatewayError) -> bytes:
        """Returns the one error frame, which ends the stream."""
        return one_line_each(encode_error_frame(error))

    def close(self) -> bytes:
        """Returns the usage or diagnostics chunk, if requested, then `[DONE]`."""
        fields = self._end.fields(with_usage=self._include_usage)
        if not fields:
            return DONE
        return one_line_each(self._head + b"]," + _encode(fields)[1:] + b"\n\n" + DONE)
