"""Lists the events of the laboratory. A new event is one row; what it plays is a fault of the demo backends."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.demo.lab.event import LabEvent, everywhere, on
from gateway.demo.lab.model import arguments_of, with_arguments, with_calls
from gateway.demo.scripted_model.dialogue import Reply

# Bytes of an argument that no tool knows.
_HUGE: Final = 64 * 1024


def _arguments(edit: Callable[[str], str]) -> Callable[[Reply], Reply]:
    return lambda reply: with_arguments(reply, edit(arguments_of(reply)))


def _cut(text: str) -> str:
    """Cuts `.md"}`: what is left, completed, names another file that exists."""
    return text[: -len('.md"}')]


def _silent(_: Reply) -> Reply:
    return Reply()


def _two_calls(second: str) -> Callable[[Reply], Reply]:
    return lambda reply: with_calls(reply, {}, {"id": second})


def _renamed(reply: Reply) -> Reply:
    return with_calls(reply, {"name": "lab_unknown_tool", "arguments": {}})


def _huge(reply: Reply) -> Reply:
    return with_calls(reply, {"arguments": {"lab_note": "x" * _HUGE, **reply.calls[0].arguments}})


def _beside_text(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, text="First I read the file.")


# Nothing is lost, and the stream is only written in another way.
_FORM: Final = (
    LabEvent("comments", "comment lines between events", "answer", everywhere("comments"), streamed=True, framed=True),
    LabEvent(
        "crlf",
        "lines that end with CR LF",
        "answer",
        on(chat="crlf", responses="crlf", messages="crlf"),
        streamed=True,
        framed=True,
    ),
    LabEvent(
        "byte_order_mark",
        "a byte order mark before the first event",
        "answer",
        everywhere("byte_order_mark"),
        streamed=True,
        framed=True,
    ),
    LabEvent(
        "split_characters",
        "a stream in writes of one byte",
        "answer",
        everywhere("bytewise"),
        streamed=True,
        framed=True,
    ),
    LabEvent("unknown_fields", "unknown fields in each event", "answer", everywhere("unknown_fields")),
    LabEvent(
        "unknown_event",
        "an event of an unknown type",
        "answer",
        on(chat="strange", responses="unknown_event", messages="unknown_events", gemini="unknown_part"),
        streamed=True,
    ),
    LabEvent(
        "unknown_item",
        "an item or a block of an unknown type",
        "answer",
        on(responses="strange_item", messages="strange_block"),
        streamed=True,
    ),
    LabEvent(
        "server_tool",
        "a search that the provider ran itself",
        "answer",
        on(responses="unknown_item", messages="server_tool"),
        streamed=True,
    ),
    LabEvent("null_ids", "the id of the answer is null", "answer", everywhere("null_ids")),
    LabEvent("null_fields", "each delta has every field, most of them null", "answer", on(chat="null_fields")),
    LabEvent("no_usage", "no token counts", "answer", everywhere("no_usage")),
    LabEvent("usage_null", "token counts of null", "answer", on(chat="usage_null", responses="usage_null")),
    LabEvent("no_done", "no [DONE] at the end", "answer", on(chat="no_done"), streamed=True),
    LabEvent(
        "last_event_alone", "the last event alone has the output", "answer", on(responses="last_only"), streamed=True
    ),
    LabEvent("no_deltas", "whole texts without their pieces", "answer", on(responses="done_only"), streamed=True),
    LabEvent(
        "unended_item", "an end without the end of an item", "answer", on(responses="unended_item"), streamed=True
    ),
    LabEvent("pings", "a second of pings in the middle", "answer", on(messages="pings ms=20 count=50"), streamed=True),
    LabEvent(
        "redacted_thinking", "redacted thinking behind the text", "answer", on(messages="redacted"), streamed=True
    ),
    LabEvent(
        "second_finish",
        "text and a second end behind the end",
        "answer",
        on(chat="double_finish", responses="double_finish", messages="twice", gemini="double_finish"),
        streamed=True,
    ),
    LabEvent("late_text", "text behind the end", "answer", on(responses="late", messages="late"), streamed=True),
    LabEvent(
        "held_open",
        "a whole answer on a connection that stays open",
        "answer",
        on(chat="held_open", responses="held_open", messages="held_open"),
        streamed=True,
    ),
    LabEvent("large_event", "an event of a megabyte", "answer", everywhere("large_event")),
    LabEvent(
        "wrong_media_type", "a stream whose type is text/plain", "answer", everywhere("wrong_content_type"), framed=True
    ),
)

# Nothing is lost to a client that waits.
_SILENCE: Final = (
    LabEvent(
        "silence_before_head",
        "silence before the status",
        "answer",
        everywhere("stall_headers seconds={silence}"),
        place="first",
    ),
    LabEvent(
        "silence_before_text",
        "silence before the first event",
        "answer",
        everywhere("stall_first seconds={silence}"),
        streamed=True,
    ),
    LabEvent("silence", "silence behind some text", "answer", everywhere("stall seconds={silence}"), streamed=True),
)

# One answer is lost, and whoever asks again gets it.
_BROKEN: Final = (
    LabEvent(
        "ended_early", "a well-formed end before the last event", "answer", everywhere("truncated"), streamed=True
    ),
    LabEvent(
        "ended_in_event", "a well-formed end inside an event", "answer", everywhere("cut_mid_event"), streamed=True
    ),
    LabEvent(
        "disconnected", "the connection closes behind some text", "answer", everywhere("disconnect"), streamed=True
    ),
    LabEvent(
        "reset", "the connection is reset behind some text", "answer", everywhere("disconnect how=reset"), streamed=True
    ),
    LabEvent(
        "disconnected_first",
        "the connection closes before the first event",
        "answer",
        everywhere("disconnect_first"),
        streamed=True,
    ),
    LabEvent(
        "no_finish",
        "a whole text without a reason why it ends",
        "answer",
        on(chat="no_finish", messages="no_reason", gemini="no_finish"),
        streamed=True,
    ),
    LabEvent("no_last_event", "a reason without the last event", "answer", on(messages="no_stop"), streamed=True),
    LabEvent(
        "error_late",
        "an error behind some text",
        "answer",
        on(chat="error_frame", responses="failed", messages="error_event", gemini="error_frame"),
        streamed=True,
    ),
    LabEvent(
        "transient_error_late",
        "an error behind some text, in words that ask for another try",
        "answer",
        everywhere("transient_error"),
        streamed=True,
    ),
    LabEvent(
        "overloaded_late", "overloaded_error behind some text", "answer", on(messages="overloaded_late"), streamed=True
    ),
    LabEvent(
        "rate_limited_late",
        "a failed response that says when to try again",
        "answer",
        on(responses="rate_limited"),
        streamed=True,
    ),
    LabEvent("error_first", "200 whose first event is an error", "answer", everywhere("error_first"), streamed=True),
    LabEvent("error_in_200", "200 with an error object", "answer", everywhere("error_in_200"), framed=True),
    LabEvent("invalid_json", "an event with invalid JSON", "answer", everywhere("bad_json"), streamed=True),
    LabEvent(
        "wrong_shape",
        "an event of the wrong shape",
        "answer",
        on(chat="bad_shape", responses="bad_shape", messages="bad_order", gemini="bad_shape"),
        streamed=True,
    ),
    LabEvent("invalid_utf8", "a byte that is no UTF-8", "answer", everywhere("bad_utf8"), streamed=True),
    LabEvent("page", "a web page with the status 200", "answer", everywhere("html")),
    LabEvent("empty_body", "200 without a body", "answer", everywhere("empty")),
    LabEvent(
        "not_streamed",
        "one object instead of a stream",
        "answer",
        on(chat="ignores_stream", responses="ignores_stream", messages="ignores_stream"),
        streamed=True,
    ),
    LabEvent("empty_answer", "a whole answer without any content", "answer", everywhere(""), _silent),
    LabEvent("reasoning_alone", "reasoning without an answer", "answer", everywhere("reasoned"), streamed=True),
)

# One request is refused, and whoever asks again gets an answer.
_REFUSED_ONCE: Final = (
    LabEvent(
        "rate_limited",
        "429 with `retry-after: 1`",
        "answer",
        everywhere("status code=429 retry_after=1"),
        place="first",
    ),
    LabEvent("rate_limited_bare", "429 without `retry-after`", "answer", everywhere("status code=429"), place="first"),
    LabEvent("server_error", "500", "answer", everywhere("status code=500"), place="first"),
    LabEvent("bad_gateway_page", "502 with a web page", "answer", everywhere("html code=502"), place="first"),
    LabEvent("unavailable", "503", "answer", everywhere("status code=503"), place="first"),
    LabEvent("gateway_timeout", "504", "answer", everywhere("status code=504"), place="first"),
    LabEvent("overloaded", "529", "answer", everywhere("status code=529", messages="overloaded"), place="first"),
    LabEvent("too_long", "400 because the history is too long", "answer", everywhere("context_length")),
    LabEvent("too_long_late", "the same, inside the stream", "answer", on(responses="too_long"), streamed=True),
    LabEvent(
        "max_tokens_too_large",
        "400 because max_tokens does not fit behind the input",
        "answer",
        on(messages="max_tokens_too_large"),
    ),
)

# Every request is refused, or every answer ends before it is whole.
_ALWAYS: Final = (
    LabEvent("bad_request", "400, each time", "words", everywhere("status code=400"), always=True),
    LabEvent("unauthorized", "401, each time", "words", everywhere("status code=401"), always=True),
    LabEvent("forbidden", "403, each time", "words", everywhere("status code=403"), always=True),
    LabEvent("not_found", "404, each time", "words", everywhere("status code=404"), always=True),
    LabEvent("too_large", "413, each time", "words", everywhere("status code=413"), always=True),
    LabEvent("unprocessable", "422, each time", "words", everywhere("status code=422"), always=True),
    LabEvent(
        "quota_spent",
        "429 because the quota is spent, each time",
        "words",
        on(chat="quota", responses="quota"),
        always=True,
    ),
    LabEvent("redirect", "302 to another address, each time", "words", everywhere("redirect"), always=True),
    LabEvent(
        "system_refused",
        "a system message behind others is refused, each time",
        "answer",
        on(chat="late_system", responses="late_system", messages="late_system"),
        always=True,
    ),
    LabEvent("length", "the limit of tokens ends the answer", "words", everywhere("ended"), always=True, streamed=True),
    LabEvent(
        "filtered",
        "a filter ends the answer",
        "words",
        on(
            chat="ended reason=content_filter",
            responses="ended reason=content_filter",
            messages="ended reason=refusal",
            gemini="ended reason=SAFETY",
        ),
        always=True,
        streamed=True,
    ),
    LabEvent(
        "window_full",
        "the end of the context ends the answer",
        "words",
        on(messages="ended reason=model_context_window_exceeded"),
        always=True,
        streamed=True,
    ),
    LabEvent(
        "refused",
        "a refusal instead of a text",
        "words",
        on(chat="refused", responses="refused"),
        always=True,
        streamed=True,
    ),
    LabEvent("blocked", "a prompt that was blocked", "words", on(gemini="blocked"), always=True, streamed=True),
)

# What is odd or wrong in a call.
_CALLS: Final = (
    LabEvent("two_calls", "two calls at once", "answer", everywhere(""), _two_calls("call_lab_2"), place="call"),
    LabEvent(
        "interleaved_calls",
        "pieces of two calls in turns",
        "answer",
        on(chat="interleaved", responses="interleaved", messages="interleaved"),
        _two_calls("call_lab_2"),
        place="call",
        streamed=True,
    ),
    LabEvent("repeated_ids", "two calls with one id", "answer", everywhere(""), _two_calls("call_lab_1"), place="call"),
    LabEvent("text_before_call", "text before a call", "answer", everywhere(""), _beside_text, place="call"),
    LabEvent("unknown_tool", "a call of a tool that does not exist", "answer", everywhere(""), _renamed, place="call"),
    LabEvent(
        "no_arguments",
        "an empty text as arguments",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(lambda _: ""),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "broken_arguments",
        "arguments that are no JSON",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(lambda text: text.replace(":", "", 1)),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "cut_arguments",
        "arguments that break off in a call that ends as if whole",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(_cut),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "cut_in_arguments",
        "the stream ends inside arguments",
        "answer",
        on(chat="truncated", responses="truncated after=5", messages="truncated after=6"),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "disconnected_in_arguments",
        "the connection closes inside arguments",
        "answer",
        on(chat="disconnect", responses="disconnect after=5", messages="disconnect after=6"),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "large_arguments",
        "arguments with an unknown name and 64 KiB",
        "answer",
        everywhere(""),
        _huge,
        place="call",
    ),
    LabEvent(
        "arguments_object",
        "arguments that are an object, not text",
        "answer",
        on(chat="arguments_object"),
        place="call",
    ),
    LabEvent(
        "no_call_index", "a call without its index", "answer", on(chat="no_call_index"), place="call", streamed=True
    ),
    LabEvent("no_call_id", "a call without an id", "answer", on(chat="call_without_id"), place="call", streamed=True),
    LabEvent(
        "call_ends_with_stop",
        "a call whose answer ends with stop",
        "answer",
        on(chat="calls_end_with_stop"),
        place="call",
    ),
    LabEvent(
        "unended_call",
        "an answer that ends before its call does",
        "answer",
        on(responses="lost_call"),
        place="call",
        streamed=True,
    ),
)

EVENTS: Final[tuple[LabEvent, ...]] = (*_FORM, *_SILENCE, *_BROKEN, *_REFUSED_ONCE, *_ALWAYS, *_CALLS)
