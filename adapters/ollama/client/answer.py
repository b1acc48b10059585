"""Writes the lines of an answer; a whole answer is one line with all of its content.

A line is a constant opening, its content, and a constant end. The text of a chat stands in `message`, that of a
generate request in `response`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

from adapters.ollama.client.calls import call_object
from adapters.ollama.table import DONE_REASONS
from gateway.core.answer import Answer
from gateway.core.conversation import Json, JsonObject
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field
from gateway.dialects.usage import token_counts

AnswerField: TypeAlias = Literal["message", "response"]
CHAT: Final = "message"
GENERATE: Final = "response"

_TEXT: Final[Mapping[Json, bytes]] = {CHAT: b'"message":{"role":"assistant","content":', GENERATE: b'"response":'}
_END: Final[Mapping[Json, bytes]] = {CHAT: b"}", GENERATE: b""}

encode: Final = msgspec.json.Encoder().encode


def answer_echo(field: AnswerField, done_reason: str | None = None) -> JsonObject:
    """Returns the parts of its request that an answer repeats: the field of its text, and why it is empty, if it must
    be."""
    return {"field": field} if done_reason is None else {"field": field, "done_reason": done_reason}


def time_text(seconds: int) -> str:
    """Returns a Unix time as RFC 3339 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class AnswerLine:
    """The constant bytes of the lines of one answer.

    A line with text is `text`, the encoded text and `more`; one with other content is `empty`, that content and `more`.
    """

    def __init__(self, echo: JsonObject, head: AnswerHead) -> None:
        field = echo["field"]
        opening = encode({"model": head.model, "created_at": time_text(head.created)})[:-1] + b","
        self._end = _END[field]
        self.text = opening + _TEXT[field]
        self.empty = self.text + b'""'
        self.more = self._end + b',"done":false}\n'

    def done(self, content: bytes, ending: JsonObject) -> bytes:
        """Returns the last line: the encoded text and other content behind it, and the fields that end an answer."""
        return self.text + content + self._end + b',"done":true,' + encode(ending)[1:] + b"\n"


def end_fields(answer: Answer, echo: JsonObject, head: AnswerHead) -> JsonObject:
    """Returns the fields of the last line of an answer: why it ended, its times and tokens, and the gateway's notes.

    The times are those that the gateway measured. Clients such as strands-agents need them, and Ollama's documentation
    (docs/api.md) says what they are: `load_duration` is the time before the model reads, `prompt_eval_duration` that
    before it writes, `eval_duration` that in which it writes; `total_duration` is all, and all are in nanoseconds. As
    Ollama does, it leaves out a count of 0, and so an unknown one.
    """
    times = head.times()
    fields: dict[str, Json] = {
        "done_reason": echo.get("done_reason") if answer.finish is None else DONE_REASONS.words[answer.finish.reason],
        "total_duration": times.prepare + times.wait + times.answer,
        "load_duration": times.prepare,
        "prompt_eval_duration": times.wait,
        "eval_duration": times.answer,
    }
    if answer.usage is not None:
        prompt, completion, _ = token_counts(answer.usage)
        counts = {"prompt_eval_count": prompt, "eval_count": completion}
        fields |= {name: count for name, count in counts.items() if count}
    if said := dragoman_field(answer.usage, answer.notices if head.diagnostics else None):
        fields["dragoman"] = said
    return fields


def encode_answer(answer: Answer, echo: JsonObject, head: AnswerHead) -> bytes:
    """Returns one JSON object. No client of Ollama knows a provider's state of its reasoning."""
    content = encode(answer.text)
    if thinking := answer.reasoning:
        content += b',"thinking":' + encode(thinking)
    if calls := [
        call_object(call.start.id, call.start.name, call.arguments, position)
        for position, (_, call) in enumerate(answer.ends)
    ]:
        content += b',"tool_calls":' + encode(calls)
    return AnswerLine(echo, head).done(content, end_fields(answer, echo, head))
