"""Lists the events of an answer that breaks off, fails or has no content."""

from typing import Final

from gateway.demo.lab.event import LabEvent, everywhere, on
from gateway.demo.scripted_model.dialogue import Reply


def _silent(_: Reply) -> Reply:
    return Reply()


# One answer is lost, and whoever asks again gets it.
BROKEN_EVENTS: Final[tuple[LabEvent, ...]] = (
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
