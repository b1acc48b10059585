"""Lists the events of an answer that is whole, in another form or after a silence."""

from typing import Final

from gateway.demo.lab.event import LabEvent, everywhere, on

# Nothing is lost, and the stream is only written in another way.
FORM_EVENTS: Final[tuple[LabEvent, ...]] = (
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
SILENCE_EVENTS: Final[tuple[LabEvent, ...]] = (
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
