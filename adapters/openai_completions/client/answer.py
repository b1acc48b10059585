"""Encodes events as `text_completion` objects: server-sent events, or one whole answer of the same shape."""

from collections.abc import Iterable
from typing import Final

import msgspec

from adapters.openai.client_errors import encode_error_frame
from adapters.openai.usage import usage_object
from gateway.core.answer import Answer, AnswerReader
from gateway.core.conversation import Json
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, Reason, TextDelta, UsageReport
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.event_stream import DONE, EVENT_STREAM_HEADERS, PING, one_line_each

_encode: Final = msgspec.json.Encoder().encode


def _answer_fields(head: AnswerHead) -> dict[str, Json]:
    return {"id": f"cmpl-{head.unique}", "object": "text_completion", "created": head.created, "model": head.model}


def _end_fields(answer: Answer, head: AnswerHead, *, with_usage: bool) -> dict[str, Json]:
    """Returns `usage` and `dragoman`, without those that say nothing."""
    usage = answer.usage if with_usage else None
    fields: dict[str, Json] = {} if usage is None else {"usage": usage_object(usage)}
    if said := dragoman_field(usage, answer.notices if head.diagnostics else None):
        fields["dragoman"] = said
    return fields


def encode_answer(answer: Answer, head: AnswerHead) -> bytes:
    """Returns one JSON response."""
    reason: Reason = "stop" if answer.finish is None else answer.finish.reason
    choice: Json = {"text": answer.text, "index": 0, "logprobs": None, "finish_reason": reason}
    return _encode({**_answer_fields(head), "choices": [choice], **_end_fields(answer, head, with_usage=True)})


class CompletionStreamEncoder:
    """Encodes one answer. Every chunk is a constant head, a text and a constant tail."""

    headers = EVENT_STREAM_HEADERS

    def __init__(self, head: AnswerHead, *, include_usage: bool) -> None:
        self._answer_head = head
        self._head = b"data: " + _encode(_answer_fields(head))[:-1] + b',"choices":['
        self._text = self._head + b'{"text":'
        self._after = b',"index":0,"logprobs":null,"finish_reason":'
        self._tail = b'}],"usage":null}\n\n' if include_usage else b"}]}\n\n"
        self._more = self._after + b"null" + self._tail
        self._include_usage = include_usage
        # What stands in no chunk before the last ones. Reasoning and calls do not reach a client of this dialect.
        self._end = AnswerReader()

    def feed(self, events: Iterable[Event]) -> bytes:
        """Returns the chunks of these events; they may be sent in one piece."""
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                out += (self._text, _encode(event.text), self._more)
            elif type(event) is Finish or type(event) is UsageReport or type(event) is Notice:
                self._end.feed((event,))
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
        fields = _end_fields(self._end.answer, self._answer_head, with_usage=self._include_usage)
        if not fields:
            return DONE
        return one_line_each(self._head + b"]," + _encode(fields)[1:] + b"\n\n" + DONE)
