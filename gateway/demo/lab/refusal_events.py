"""Lists the events of a request that is refused, once or each time, and of an answer that ends early and says why."""

from typing import Final

from gateway.demo.lab.event import LabEvent, everywhere, on

# One request is refused, and whoever asks again gets an answer.
REFUSAL_EVENTS: Final[tuple[LabEvent, ...]] = (
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
    LabEvent(
        "too_long", "400 because the history is too long", "answer", everywhere("too_long", responses="context_length")
    ),
    LabEvent("too_long_late", "the same, inside the stream", "answer", on(responses="too_long"), streamed=True),
    LabEvent(
        "max_tokens_too_large",
        "400 because max_tokens does not fit behind the input",
        "answer",
        on(messages="max_tokens_too_large"),
    ),
)

# Every request is refused, or every answer ends before it is whole.
LASTING_EVENTS: Final[tuple[LabEvent, ...]] = (
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
