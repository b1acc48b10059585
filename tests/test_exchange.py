import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from gateway.adapter import NO_EXTENSIONS, Adapter, Capabilities, Decoder, DecoderExtensions, extensions_of
from gateway.core.conversation import EMPTY, Conversation, Json, JsonObject, Sampling, Text, ToolSpec, Turn
from gateway.core.errors import (
    BackendError,
    BackendProtocolError,
    BackendRejected,
    BackendTruncated,
    InvalidToolCall,
    Unsupported,
)
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
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.core.policy import LoopGuard, Policy
from gateway.exchange import EMPTY_ANSWER, Exchange
from gateway.providers.registry import PROFILES
from tests.history.strategies import calling, conversation, result, user
from tests.scripted import ENCODED, ScriptedAdapter, ScriptedDecoder

START = ResponseStart("r1")
CALL: list[Event] = [ToolCallStart(0, "k", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0)]


def test_what_an_adapter_encodes_is_what_is_sent() -> None:
    adapter = ScriptedAdapter()
    conversation = _asking()
    exchange = Exchange(adapter, conversation, Policy())
    assert adapter.encoded == [exchange.conversation]
    assert (exchange.request.path, exchange.request.body) == ("/play", b"script")
    assert exchange.notices == [ENCODED]


def test_the_notices_of_every_stage_are_told_in_order() -> None:
    exchange = Exchange(ScriptedAdapter(), _asking(params={"seed": 1, "user": "u"}), Policy())
    assert [notice.rule for notice in exchange.notices] == ["FIELD_NOT_SENT", "FIELD_NOT_SENT", "TOOL_SCHEMA_CHANGED"]


def test_a_backend_of_the_clients_dialect_lacks_nothing_that_decoding_left_out() -> None:
    decoded = [
        Notice("decode", "dropped", "FIELD_NOT_SENT", "left out"),
        Notice("decode", "moved", "RESULTS_IN_CALL_ORDER", "moved"),
    ]
    asked = msgspec.structs.replace(_asking(), notices=tuple(decoded), dialect="chat")
    other = Exchange(ScriptedAdapter(), asked, Policy())
    assert other.notices == [*decoded, ENCODED]
    same = Exchange(ScriptedAdapter(capabilities=Capabilities(passthrough="chat")), asked, Policy())
    assert same.notices == [decoded[1], ENCODED]


def test_what_cannot_be_honoured_is_never_encoded() -> None:
    adapter = ScriptedAdapter()
    with pytest.raises(Unsupported):
        Exchange(adapter, _asking(params={"logprobs": True}), Policy())
    assert adapter.encoded == []


def test_a_complete_answer_comes_out_as_it_came_in() -> None:
    script: list[list[Event]] = [[START], [TextDelta("a"), TextDelta("b")], [Finish("length", "max"), UsageReport(1)]]
    exchange = Exchange(ScriptedAdapter(*script), _asking(), Policy())
    assert _ends(exchange) == (False, False)
    assert exchange.feed(b"...") == [event for events in script for event in events]
    assert _ends(exchange) == (True, True)
    assert exchange.close() == []


@pytest.mark.parametrize(
    ("media_type", "accepted"),
    [
        ("text/plain", True),
        ("Text/Plain; charset=utf-8", True),
        ("", True),
        ("text/html", False),
        ("application/json", False),
        ("text/plainer", False),
    ],
)
def test_a_200_must_be_of_an_expected_media_type(media_type: str, accepted: bool) -> None:
    exchange = Exchange(ScriptedAdapter(), _asking(), Policy())
    if accepted:
        exchange.on_response_head(200, {"content-type": media_type})
    else:
        with pytest.raises(BackendProtocolError) as caught:
            exchange.on_response_head(200, {"content-type": media_type})
        assert caught.value.code == "upstream_invalid_response" and caught.value.status == 502


def test_a_200_without_a_media_type_is_believed() -> None:
    Exchange(ScriptedAdapter(), _asking(), Policy()).on_response_head(200, {})


@pytest.mark.parametrize("status", [201, 204, 301, 400, 429, 500])
def test_every_other_status_is_the_adapters_error(status: int) -> None:
    exchange = Exchange(ScriptedAdapter(), _asking(), Policy())
    with pytest.raises(BackendRejected) as caught:
        exchange.on_response_head(status, {"retry-after": "1"}, b"why")
    assert (caught.value.status, caught.value.message) == (status, "why")
    assert caught.value.headers == {"retry-after": "1"}


@pytest.mark.parametrize("played", [0, 1, 2])
def test_an_answer_that_stops_early_is_truncated(played: int) -> None:
    exchange = Exchange(ScriptedAdapter([START], [TextDelta("a")], [Finish("stop")]), _asking(), Policy())
    exchange.feed(b"." * played)
    with pytest.raises(BackendTruncated):
        exchange.close()


def test_a_decoder_that_closes_without_a_finish_is_not_believed() -> None:
    class Forgetful(ScriptedAdapter):
        def decoder(self, conversation: Conversation) -> Decoder:
            return Forgotten()

    class Forgotten:
        done = False

        def feed(self, data: bytes) -> list[Event]:
            return [START, TextDelta("a")]

        def close(self) -> list[Event]:
            return []

    exchange = Exchange(Forgetful(), _asking(), Policy())
    exchange.feed(b".")
    with pytest.raises(BackendTruncated):
        exchange.close()


def test_an_error_in_the_stream_is_raised_after_what_came_before() -> None:
    exchange = Exchange(ScriptedAdapter([START, TextDelta("a")], BackendRejected("no")), _asking(), Policy())
    assert exchange.feed(b".") == [START, TextDelta("a")]
    with pytest.raises(BackendRejected):
        exchange.feed(b".")
    assert _ends(exchange) == (False, False)


def test_a_broken_call_before_another_fault_hides_no_notice() -> None:
    class Fails(ScriptedAdapter):
        def decoder(self, conversation: Conversation) -> Decoder:
            return Failing()

    class Failing:
        done = False

        def feed(self, data: bytes) -> list[Event]:
            fault = BackendRejected("no")
            fault.keep([START, ENCODED, ToolCallStart(0, "k", "call_mcp_tool"), ToolCallEnd(0)])
            raise fault

        def close(self) -> list[Event]:
            return []

    exchange = Exchange(Fails(), _asking(), Policy())
    with pytest.raises(InvalidToolCall) as caught:
        exchange.feed(b".")
    assert [notice.rule for notice in caught.value.notices] == ["TOOL_SCHEMA_CHANGED", "ENVELOPE_BROKEN"]
    assert caught.value.take_events() == [START]


@pytest.mark.parametrize(
    ("said", "called", "told"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", True, "tool_calls"),
        ("length", False, "length"),
        ("length", True, "length"),
        ("content_filter", False, "content_filter"),
        ("content_filter", True, "content_filter"),
    ],
)
def test_the_finish_reason_follows_from_what_was_emitted(said: Reason, called: bool, told: Reason) -> None:
    script: list[list[Event]] = [[START], CALL if called else [TextDelta("a")], [Finish(said, "raw")]]
    exchange = Exchange(ScriptedAdapter(*script), _asking(), Policy())
    assert exchange.feed(b"...")[-1] == Finish(told, "raw")


@pytest.mark.parametrize("said", [[], [TextDelta("a")]])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_finish_for_calls_that_did_not_come_is_an_error(said: list[Event], at_once: bool) -> None:
    script: list[list[Event]] = [[START], said, [Finish("tool_calls", "raw"), UsageReport(1)]]
    exchange = Exchange(ScriptedAdapter(*script), _asking(), Policy())
    shown: list[Event] = []
    with pytest.raises(InvalidToolCall) as caught:
        for data in [b"..."] if at_once else [b"."] * 3:
            shown += exchange.feed(data)
    assert [*shown, *caught.value.take_events()] == [START, *said]
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")
    assert not exchange.finished


@pytest.mark.parametrize("content", ["", "Hi"])
def test_a_whole_answer_of_one_choice_of_text_is_no_exception(content: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "tool_calls"}
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 2**20), _asking(), Policy())
    assert exchange.feed(msgspec.json.encode({"id": "x", "choices": [choice]})) == []
    with pytest.raises(InvalidToolCall):
        exchange.close()


def _sse(*documents: Json) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(document) + b"\n\n" for document in documents)


_MESSAGE: dict[str, Json] = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
_RESPONSE: dict[str, Json] = {"id": "r", "status": "completed", "output": []}
_CANDIDATE: Json = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}
EMPTY_ANSWERS: dict[str, tuple[Adapter, bytes]] = {
    "chat": (
        OpenAIChatAdapter(OpenAIChatOptions(), 2**20),
        msgspec.json.encode({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}),
    ),
    "chat stream": (
        OpenAIChatAdapter(OpenAIChatOptions(), 2**20),
        _sse({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        + _sse({"choices": [{"delta": {}, "finish_reason": "length"}]}),
    ),
    "messages": (
        AnthropicMessagesAdapter(AnthropicMessagesOptions(), 2**20),
        msgspec.json.encode({**_MESSAGE, "stop_reason": "end_turn"}),
    ),
    "messages stream": (
        AnthropicMessagesAdapter(AnthropicMessagesOptions(), 2**20),
        _sse({"type": "message_start", "message": _MESSAGE})
        + _sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}),
    ),
    "gemini": (GeminiAdapter(GeminiOptions(), 2**20), msgspec.json.encode({"candidates": [_CANDIDATE]})),
    "gemini stream": (GeminiAdapter(GeminiOptions(), 2**20), _sse({"candidates": [_CANDIDATE]})),
    "responses": (OpenAIResponsesAdapter(OpenAIResponsesOptions(), 2**20), msgspec.json.encode(_RESPONSE)),
    "responses stream": (
        OpenAIResponsesAdapter(OpenAIResponsesOptions(), 2**20),
        _sse({"type": "response.completed", "response": _RESPONSE}),
    ),
    "text": (TextAdapter(TextOptions(wire="llama_cpp"), 2**20), _sse({"content": "", "stop": True})),
    "a script": (ScriptedAdapter([START], [Finish("stop")]), b".."),
}


@pytest.mark.parametrize("name", EMPTY_ANSWERS)
def test_an_answer_without_output_is_told_on_every_wire(name: str) -> None:
    adapter, wire = EMPTY_ANSWERS[name]
    exchange = Exchange(adapter, msgspec.structs.replace(_asking(), dialect="another"), Policy())
    events = exchange.feed(wire)
    events = [*events, *exchange.close()]
    assert [event.rule for event in events if isinstance(event, Notice)] == ["EMPTY_ANSWER"]
    assert [type(event) for event in events if not isinstance(event, UsageReport)] == [ResponseStart, Notice, Finish]


_REFUSAL = PassthroughFields("delta", {"refusal": "No."})


@pytest.mark.parametrize(
    ("output", "empty"),
    [
        ([TextDelta("a")], False),
        ([ReasoningDelta("a")], False),
        ([ReasoningEnd({"data": "opaque"})], False),
        (CALL, False),
        ([_REFUSAL], False),
        ([PassthroughFields("event", {"type": "web_search_call"})], False),
        ([PassthroughFields("delta", {"annotations": []})], True),
        ([PassthroughFields("response", {"service_tier": "default"})], True),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_output(output: list[Event], empty: bool, at_once: bool) -> None:
    exchange = Exchange(ScriptedAdapter([START], output, [Finish("stop")]), _asking(), Policy())
    events = [event for data in ([b"..."] if at_once else [b"."] * 3) for event in exchange.feed(data)]
    assert (EMPTY_ANSWER in events) is empty


def test_a_filter_that_left_no_output_is_told_by_its_reason_alone() -> None:
    exchange = Exchange(ScriptedAdapter([START], [Finish("content_filter")]), _asking(), Policy())
    assert exchange.feed(b"..") == [START, Finish("content_filter")]


def test_text_that_a_stop_sequence_left_out_was_output() -> None:
    exchange = Exchange(ScriptedAdapter([START], [TextDelta("STOP")]), _asking(stop=("STOP",)), Policy())
    assert EMPTY_ANSWER not in exchange.feed(b"..")


def test_calls_that_a_stop_sequence_left_out_are_no_lost_ones() -> None:
    script: list[list[Event]] = [[START], [TextDelta("one STOP")], CALL, [Finish("tool_calls")]]
    exchange = Exchange(ScriptedAdapter(*script), _asking(stop=("STOP",)), Policy())
    assert exchange.feed(b"....")[-1] == Finish("stop", "stop_sequence:STOP", "STOP")


STOPPING: list[list[Event]] = [[START], [TextDelta("one ST")], [TextDelta("OP two")], [Finish("stop")]]


def test_a_stop_sequence_ends_the_answer_and_the_exchange() -> None:
    exchange = Exchange(ScriptedAdapter(*STOPPING), _asking(stop=("STOP",)), Policy())
    assert exchange.feed(b"..") == [START, TextDelta("one ")]
    assert _ends(exchange) == (False, False)
    assert exchange.feed(b".") == [Finish("stop", "stop_sequence:STOP", "STOP")]
    assert _ends(exchange) == (True, True)
    assert exchange.close() == []


@pytest.mark.parametrize(
    "capabilities",
    [Capabilities(passthrough="chat"), Capabilities(supported_params=frozenset({"stop"}))],
    ids=["native", "stop"],
)
def test_a_backend_that_knows_stop_sequences_is_left_alone(capabilities: Capabilities) -> None:
    adapter = ScriptedAdapter(*STOPPING, capabilities=capabilities)
    exchange = Exchange(adapter, _asking(stop=("STOP",)), Policy())
    assert exchange.feed(b"....") == [event for events in STOPPING for event in events]


@pytest.mark.parametrize(
    ("limits", "stop", "sent"),
    [
        ({"max_stops": 2}, ("a", "b", "STOP", "c"), ("a", "b")),
        ({"max_stops": 2}, ("", "a", "a", "b", "STOP"), ("a", "b")),
        ({"blank_stops": False}, ("a", " \n", "STOP"), ("a", "STOP")),
        ({"blank_stops": False}, ("\n", " "), ()),
        ({"max_stops": 5}, ("\n", "STOP"), ("\n", "STOP")),
        ({}, ("", " ", "STOP"), ("", " ", "STOP")),
    ],
)
def test_a_backend_gets_the_stop_sequences_that_it_accepts(
    limits: dict[str, Any], stop: tuple[str, ...], sent: tuple[str, ...]
) -> None:
    adapter = ScriptedAdapter(capabilities=Capabilities(supported_params=frozenset({"stop"}), **limits))
    Exchange(adapter, _asking(stop=stop), Policy())
    assert [one.sampling.stop for one in adapter.encoded] == [sent]


def test_the_answer_ends_before_a_sequence_that_the_backend_did_not_get() -> None:
    capabilities = Capabilities(supported_params=frozenset({"stop"}), max_stops=1)
    exchange = Exchange(ScriptedAdapter(*STOPPING, capabilities=capabilities), _asking(stop=("a", "STOP")), Policy())
    assert exchange.feed(b"....") == [START, TextDelta("one "), Finish("stop", "stop_sequence:STOP", "STOP")]


TOOLS = (ToolSpec("f"), ToolSpec("g"))
TWO_CALLS: list[list[Event]] = [
    [START, ToolCallStart(0, "k", "f"), ToolCallStart(1, "l", "g"), ToolCallDelta(1, "{")],
    [ToolCallDelta(0, "{}"), ToolCallDelta(1, "}"), ToolCallEnd(1), ToolCallEnd(0)],
    [ToolCallStart(2, "m", "f"), ToolCallDelta(2, "{}"), ToolCallEnd(2)],
    [Finish("tool_calls")],
]


def _one_call(script: list[list[Event]], capabilities: Capabilities, **fields: Any) -> list[Event]:
    asked = msgspec.structs.replace(_asking(), tools=TOOLS, parallel_tool_calls=False, **fields)
    exchange = Exchange(ScriptedAdapter(*script, capabilities=capabilities), asked, Policy())
    return [event for _ in script for event in exchange.feed(b".")]


def test_a_backend_that_cannot_limit_itself_to_one_call_is_limited_and_the_rest_is_told() -> None:
    told = _one_call(TWO_CALLS, Capabilities())
    assert [event for event in told if not isinstance(event, Notice)] == [START, *CALL, Finish("tool_calls")]
    notices = [(event.rule, event.tool_call_id) for event in told if isinstance(event, Notice)]
    assert notices == [("SECOND_CALL_DROPPED", "l"), ("SECOND_CALL_DROPPED", "m")]


def test_one_call_and_text_around_it_pass_untouched() -> None:
    script: list[list[Event]] = [[START, TextDelta("a")], CALL, [TextDelta("b")], [Finish("tool_calls")]]
    assert _one_call(script, Capabilities()) == [event for events in script for event in events]


@pytest.mark.parametrize(
    "capabilities",
    [Capabilities(passthrough="chat"), Capabilities(supported_params=frozenset({"parallel_tool_calls"}))],
    ids=["native", "field"],
)
def test_a_backend_that_knows_the_field_is_left_alone(capabilities: Capabilities) -> None:
    told = _one_call(TWO_CALLS, capabilities)
    assert sum(isinstance(event, ToolCallEnd) for event in told) == 3


ANSWERS: list[list[list[Event]]] = [
    [[START], [TextDelta("a")], [Finish("stop")]],
    [[START], [TextDelta("ab ST")], [TextDelta("OP")], [Finish("length")]],
    [[START], *([event] for event in CALL), [Finish("stop"), UsageReport(1, 2, 3)]],
    [[START, TextDelta("S")], [ToolCallStart(1, "k", "f")], [TextDelta("TOP")], [ToolCallEnd(1)], [Finish("stop")]],
]


@given(st.sampled_from(ANSWERS), st.sets(st.integers(1, 8)), st.booleans())
def test_the_grammar_holds_at_any_cut(answer: list[list[Event]], cuts: set[int], stops: bool) -> None:
    exchange = Exchange(ScriptedAdapter(*answer), _asking(stop=("STOP",) if stops else ()), Policy())
    grammar = Grammar()
    bounds = [0, *sorted(cut for cut in cuts if cut < len(answer)), len(answer)]
    for start, end in itertools.pairwise(bounds):
        if not exchange.done:
            grammar.check(exchange.feed(b"." * (end - start)))
    grammar.check(exchange.close())
    grammar.close()
    assert _ends(exchange) == (True, True)


@given(st.sampled_from(ANSWERS), st.integers(0, 8))
def test_an_error_anywhere_is_never_an_end(answer: list[list[Event]], position: int) -> None:
    finishes = next(at for at, events in enumerate(answer) if any(isinstance(event, Finish) for event in events))
    position = min(position, finishes)
    script: list[list[Event] | BackendError] = [*answer[:position], BackendProtocolError("broken")]
    exchange = Exchange(ScriptedAdapter(*script), _asking(), Policy())
    shown = exchange.feed(b"." * position)
    with pytest.raises(BackendProtocolError):
        exchange.feed(b".")
    assert not any(isinstance(event, Finish) for event in shown)


class TrailingDecoder(ScriptedDecoder):
    """Its trailers say whether the response is complete, also behind a Finish."""

    def feed(self, data: bytes) -> list[Event]:
        events = super().feed(data)
        self.done = False
        return events

    def trailers(self, headers: Mapping[str, str]) -> list[Event]:
        if headers["status"] != "ok":
            error = BackendRejected("not ok")
            error.keep([TextDelta("held")])
            raise error
        self.done = True
        return [TextDelta("held"), Finish("stop")]


class TrailingAdapter(ScriptedAdapter):
    def decoder(self, conversation: Conversation) -> Decoder:
        return TrailingDecoder(self._script)


def test_trailers_complete_a_response() -> None:
    exchange = Exchange(TrailingAdapter([START, TextDelta("a")]), _asking(), Policy())
    assert exchange.feed(b".") == [START, TextDelta("a")]
    assert exchange.close({"status": "ok"}) == [TextDelta("held"), Finish("stop")]
    assert exchange.finished and exchange.done


def test_trailers_may_fail_a_response_and_without_them_it_is_truncated() -> None:
    exchange = Exchange(TrailingAdapter([START]), _asking(), Policy())
    exchange.feed(b".")
    with pytest.raises(BackendRejected) as failed:
        exchange.close({"status": "bad"})
    assert failed.value.take_events() == [TextDelta("held")]
    with pytest.raises(BackendTruncated):
        Exchange(TrailingAdapter([START]), _asking(), Policy()).close()


def test_trailers_that_fail_a_complete_response_are_a_notice() -> None:
    exchange = Exchange(TrailingAdapter([START, Finish("stop")]), _asking(), Policy())
    exchange.feed(b".")
    *_, notice = exchange.close({"status": "bad"})
    assert isinstance(notice, Notice) and notice.rule == "LATE_FAULT"


def test_a_decoder_without_trailers_does_not_see_them() -> None:
    exchange = Exchange(ScriptedAdapter([START]), _asking(), Policy())
    exchange.feed(b".")
    with pytest.raises(BackendTruncated):
        exchange.close({"status": "ok"})


def _asking(params: JsonObject = EMPTY, stop: tuple[str, ...] = ()) -> Conversation:
    turn = Turn("user", (Text("hi"),), index=0)
    return Conversation((turn,), sampling=Sampling(stop=stop), params=params, dialect="chat")


def _ends(exchange: Exchange) -> tuple[bool, bool]:
    return exchange.done, exchange.finished


def test_renamed_tools_come_back_under_the_clients_names() -> None:
    policy = Policy(profile=PROFILES["openai"])
    asked = Conversation((Turn("user", (Text("hi"),)),), tools=(ToolSpec("read file"),), stream=True)
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 2**20), asked, policy)
    (sent,) = exchange.profiled.identifiers.names.values()
    assert b'"name":"' + sent.encode() + b'"' in exchange.request.body
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": sent, "arguments": "{}"}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    events = exchange.feed(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["read file"]


def test_a_known_refusal_names_rule_place_and_advice() -> None:
    asked = Conversation((Turn("user", (Text("hi"),), index=4),))
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 2**20), asked, Policy())
    body = {"error": {"message": "Unexpected role 'user' after role 'tool': messages[0]", "code": "invalid"}}
    with pytest.raises(BackendError) as caught:
        exchange.on_response_head(400, {}, msgspec.json.encode(body))
    assert caught.value.extra["rule"] == "ROLE_ORDER"
    assert caught.value.extra["index"] == 4
    assert [notice.rule for notice in caught.value.notices] == ["HISTORY_REFUSED"]


def test_a_refusal_that_nobody_knows_stays_as_it_is() -> None:
    exchange = Exchange(
        OpenAIChatAdapter(OpenAIChatOptions(), 2**20), Conversation((Turn("user", (Text("hi"),)),)), Policy()
    )
    with pytest.raises(BackendError) as caught:
        exchange.on_response_head(400, {}, b'{"error": {"message": "no"}}')
    assert "rule" not in caught.value.extra


@pytest.mark.parametrize("forced_tools", ["notice", "error"])
def test_a_call_that_the_loop_guard_forbids_is_not_missed(forced_tools: Any) -> None:
    rounds = [turn for name in "abc" for turn in (calling(name), result(name))]
    asked = msgspec.structs.replace(conversation(user(), *rounds), tools=(ToolSpec("read"),), tool_choice="required")
    policy = Policy(forced_tools=forced_tools, loop_guard=LoopGuard(action="no_tools"))
    forced = Capabilities(tools=True, supported_params=frozenset({"tools", "tool_choice"}))
    script: list[list[Event]] = [[START], [TextDelta("No."), Finish("stop")]]
    exchange = Exchange(ScriptedAdapter(*script, capabilities=forced), asked, policy)
    assert [event for event in exchange.feed(b"..") if isinstance(event, Notice)] == []


class NamedParts(ScriptedDecoder):
    """A decoder of an adapter that was written before there were extensions: what it has is found by its name."""

    def __init__(self) -> None:
        super().__init__([[ResponseStart()], [TextDelta("a"), Finish("stop")]])
        self.progress = 7
        self.heads: list[Mapping[str, str]] = []

    def head(self, headers: Mapping[str, str]) -> None:
        self.heads.append(headers)

    def trailers(self, headers: Mapping[str, str]) -> list[Event]:
        return self.feed(b"1") if headers == {"status": "0"} else []


class DeclaredParts(NamedParts):
    """The same decoder, which declares one part alone."""

    @property
    def extensions(self) -> DecoderExtensions:
        return DecoderExtensions(head=self)


class PartsAdapter(ScriptedAdapter):
    def __init__(self, made: NamedParts) -> None:
        super().__init__()
        self.made = made

    def decoder(self, conversation: Conversation) -> Decoder:
        return self.made


def test_a_decoder_without_extensions_is_known_by_the_names_of_its_methods() -> None:
    decoder = NamedParts()
    exchange = Exchange(PartsAdapter(decoder), conversation(user("a")), Policy())
    headers = {"content-type": "text/plain"}
    exchange.on_response_head(200, headers)
    assert decoder.heads == [headers]
    assert exchange.feed(b"1") == [ResponseStart()]
    assert exchange.progress == 1 + 7
    assert exchange.close({"status": "0"})[0] == TextDelta("a")


def test_extensions_say_which_parts_a_decoder_has() -> None:
    decoder = DeclaredParts()
    exchange = Exchange(PartsAdapter(decoder), conversation(user("a")), Policy())
    exchange.on_response_head(200, {"content-type": "text/plain"})
    exchange.feed(b"1")
    assert len(decoder.heads) == 1 and exchange.progress == 1
    with pytest.raises(BackendTruncated):
        exchange.close({"status": "0"})


def test_a_decoder_without_any_part_has_no_extensions() -> None:
    assert extensions_of(ScriptedDecoder([])) == NO_EXTENSIONS
