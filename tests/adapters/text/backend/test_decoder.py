"""Tests the events of responses, especially of irregular ones."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.core.conversation import Conversation, Json, Sampling
from gateway.core.errors import BackendError, BackendProtocolError, BackendRejected, BackendTruncated, InvalidToolCall
from gateway.core.events import Event, Finish, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart, UsageReport
from gateway.core.notices import Notice
from gateway.testing.events import fold
from gateway.tool_calls.parsers.formats import FORMATS
from tests.adapters.text.backend import answers
from tests.adapters.text.backend.encoded_request import TIME, WEATHER, adapter, conversation, exchange

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
SECOND = '\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
TOOLS = conversation(tools=(WEATHER, TIME))
LLAMA_END = answers.llama(())
# Every wire whose model goes on where the prompt ends.
WRITERS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "llama_cpp": answers.llama,
    "completions": answers.completions,
    "vllm": answers.completions,
    "ollama": answers.ollama,
    "ollama_chat": answers.ollama_chat,
    "tgi": answers.tgi,
    "koboldcpp": answers.koboldcpp,
    "plain": lambda pieces: "".join(pieces).encode(),
    "plain_ndjson": answers.plain_ndjson,
}


def played(data: bytes, asked: Conversation | None = None, **options: Json) -> list[Event]:
    decoder = adapter(**options).decoder(asked or conversation())
    events = decoder.feed(data)
    return events if decoder.done else events + decoder.close()


def rules(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice)]


def reason(events: list[Event]) -> Finish:
    (finish,) = (event for event in events if isinstance(event, Finish))
    return finish


@pytest.mark.parametrize(
    ("word", "expected"),
    [("eos", "stop"), ("word", "stop"), ("none", "stop"), ("limit", "length"), ("LIMIT", "length")],
)
def test_why_it_stopped(word: str, expected: str) -> None:
    assert reason(played(answers.llama(("a",), word))) == Finish(expected, word)  # type: ignore[arg-type]  # one of Reason


def test_a_word_that_nobody_knows_is_told() -> None:
    events = played(answers.llama(("a",), "weariness"))
    assert (reason(events), rules(events)) == (Finish("stop", "weariness"), ["FINISH_REASON_UNKNOWN"])
    wire: Json = {"base": "llama_cpp", "reasons": {"weariness": "content_filter"}}
    assert reason(played(answers.llama(("a",), "weariness"), wire=wire)) == Finish("content_filter", "weariness")


def test_servers_that_tell_by_flags() -> None:
    assert reason(played(answers.sse({"content": "a", "stop": True, "stopped_limit": True}))).reason == "length"
    assert reason(played(answers.sse({"content": "a", "stop": True, "stopped_limit": False}))).reason == "stop"


@pytest.mark.parametrize("word", ["abort", "error"])
def test_an_answer_that_was_broken_off_is_no_answer(word: str) -> None:
    with pytest.raises(BackendRejected, match="ended its response early"):
        played(answers.sse({"choices": [{"text": "a", "finish_reason": word}]}), wire="completions")


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"", BackendTruncated),
        (answers.sse({"content": "a", "stop": False}), BackendTruncated),
        (b'data: {"content": "a"', BackendTruncated),
        (b'data: {"content": "a"\n\n', BackendProtocolError),
        (b"data: <html>\n\n", BackendProtocolError),
    ],
)
def test_an_answer_without_its_end_is_an_error(wire: bytes, error: type[BackendError]) -> None:
    with pytest.raises(error):
        played(wire)


DOCUMENT: Json = {"path": "/x", "request": {"prompt": "$prompt"}, "framing": "json", "text": ["text"]}


@pytest.mark.parametrize("wire", ["llama_cpp", "completions", "ollama", "koboldcpp", "plain", "plain_sse", DOCUMENT])
@pytest.mark.parametrize("body", [b"", b"\n\n"])
def test_an_empty_answer_is_no_answer(wire: Json, body: bytes) -> None:
    if (wire, body) == ("plain", b"\n\n"):
        return  # on that wire this is what the model said
    with pytest.raises(BackendError) as caught:
        played(body, wire=wire)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_response")


@pytest.mark.parametrize(
    ("wire", "body", "code"),
    [
        ("llama_cpp", answers.sse({"news": 1}), "upstream_invalid_response"),
        ("ollama", answers.ndjson({"news": 1}), "upstream_invalid_response"),
        ("ollama", b'{"news": 1}', "upstream_invalid_response"),
        ("completions", b"data: [DONE]\n\n", "upstream_invalid_response"),
        ("completions", answers.sse({"choices": [{"text": "a"}]}) + b"data: [DONE]\n\n", "upstream_stream_truncated"),
        ("llama_cpp", answers.sse({"content": "a", "stop": False}), "upstream_stream_truncated"),
        (DOCUMENT, b'{"news": 1}', "upstream_invalid_response"),
        (DOCUMENT, b"[]", "upstream_invalid_response"),
        (DOCUMENT, b"nothing", "upstream_invalid_response"),
        (DOCUMENT, b'{"text":' + b"[" * 200 + b"]" * 200 + b"}", "upstream_invalid_response"),
        (DOCUMENT, b'{"text": "a', "upstream_stream_truncated"),
    ],
)
def test_what_holds_no_answer_is_told_from_one_that_was_cut(wire: Json, body: bytes, code: str) -> None:
    with pytest.raises(BackendError) as caught:
        played(body, wire=wire)
    assert caught.value.code == code


def test_a_malformed_event_can_be_found_but_not_read() -> None:
    with pytest.raises(BackendProtocolError) as caught:
        played(b"data: secret\n\n")
    (notice,) = caught.value.notices
    assert notice.rule == "MALFORMED_EVENT" and "6 bytes" in notice.detail and "secret" not in notice.detail


@pytest.mark.parametrize(
    ("wire", "answer"),
    [("llama_cpp", answers.llama()), ("completions", answers.completions()), ("ollama", answers.ollama())],
)
def test_what_comes_after_the_end_is_told_once(wire: Json, answer: bytes) -> None:
    assert rules(played(answer + answer, wire=wire)) == ["LATE_CONTENT"]


def test_a_stream_may_not_end_before_the_finish_reason() -> None:
    with pytest.raises(BackendTruncated):
        played(b"data: [DONE]\n\n", wire="completions")


@pytest.mark.parametrize(
    ("wire", "options"),
    [
        (answers.llama()[:-1], {}),
        (answers.ollama().rstrip(), {"wire": "ollama"}),
        (answers.completions().removesuffix(b"data: [DONE]\n\n"), {"wire": "completions"}),
    ],
)
def test_a_last_event_without_its_line_end_counts(wire: bytes, options: dict[str, Json]) -> None:
    assert fold(played(wire, None, **options)).text == answers.TEXT


def test_half_an_event_after_the_end_is_told() -> None:
    wire = answers.completions().replace(b"data: [DONE]\n\n", b'data: {"choi')
    assert rules(played(wire, wire="completions")) == ["TAIL_BROKEN"]


def test_text_after_the_end_is_told_once_and_usage_counts() -> None:
    late: Json = {"choices": [{"text": "late"}]}
    wire = answers.completions().replace(b"data: [DONE]", answers.sse(late, late) + b"data: [DONE]")
    events = played(wire, wire="completions")
    assert (fold(events).text, rules(events)) == (answers.TEXT, ["LATE_CONTENT"])
    assert UsageReport(3, 5, 8) in events


def test_counts_may_be_written_with_a_point() -> None:
    for written in (b": 3.0,", b": 3e0,"):
        wire = answers.completions().replace(b": 3,", written)
        assert wire != answers.completions()
        assert UsageReport(3, 5, 8) in played(wire, wire="completions")


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({"error": {"code": 500, "message": "broken", "type": "server_error"}}, 502, "upstream_error"),
        ({"error": {"code": 503, "message": "Loading model"}}, 503, "upstream_overloaded"),
        ({"error": {"code": 400, "message": "m", "type": "exceed_context_size_error"}}, 400, "context_length_exceeded"),
        ({"error": "model runner has stopped"}, 502, "upstream_error"),
        ({"error": {"message": "slow down", "type": "overloaded"}}, 429, "rate_limit_exceeded"),
        ({"error": "the context length is too small"}, 400, "context_length_exceeded"),
    ],
)
def test_an_error_in_the_stream_fails_the_answer(event: Json, status: int, code: str) -> None:
    with pytest.raises(BackendError) as caught:
        played(answers.sse({"content": "a", "stop": False}, event))
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize(
    ("status", "body", "expected", "code"),
    [
        (400, b'{"error":{"type":"exceed_context_size_error","message":"m"}}', 400, "context_length_exceeded"),
        (422, b'{"error":"`inputs` tokens + `max_new_tokens` must be <= 4096","error_type":"validation"}', 400,
         "context_length_exceeded"),
        (400, b'{"message":"This model\'s maximum context length is 16 tokens."}', 400, "context_length_exceeded"),
        (404, b'{"error":"model \'m\' not found, try pulling it first"}', 404, "model_not_found"),
        (503, b'{"error":{"code":503,"message":"Loading model"}}', 503, "upstream_overloaded"),
        (422, b'{"detail":{"msg":"out of range"}}', 422, "invalid_value"),
        (500, b"<html>", 502, "upstream_error"),
    ],
)  # fmt: skip
def test_an_error_status_is_told(status: int, body: bytes, expected: int, code: str) -> None:
    error = adapter().decode_error(status, {}, body)
    assert (error.status, error.code) == (expected, code)


def test_what_came_before_a_fault_goes_with_it() -> None:
    wire = answers.sse({"content": "a", "stop": False}, {"error": "broken"})
    with pytest.raises(BackendError) as caught:
        played(wire)
    assert fold([*caught.value.events]).text == "a"
    with pytest.raises(BackendTruncated) as cut:
        played(b'data: {"choices": [{"text": "b"}]}', wire="completions")
    assert fold([*cut.value.events]).text == "b"


def test_special_tokens_are_no_text() -> None:
    assert fold(played(answers.tgi(("a",)), wire="tgi")).text == "a"


def test_reasoning_has_its_place() -> None:
    wire = answers.ndjson({"thinking": "hm", "response": ""}, {"response": "a", "done": True})
    assert ReasoningDelta("hm") in played(wire, wire="ollama")


def test_a_character_that_is_cut_is_put_together_and_what_is_none_is_mended() -> None:
    decoder = adapter(wire="plain").decoder(conversation())
    events = [event for data in (b"a\xf0\x9f", b"\x98", b"\x80\xff", b"\xc3") for event in decoder.feed(data)]
    assert fold([*events, *decoder.close()]).text == "a\U0001f600\ufffd\ufffd" and decoder.done


def test_a_call_is_read_from_the_text_and_only_if_its_tool_was_offered() -> None:
    answer = fold(played(answers.llama(("I look.\n", CALL)), TOOLS))
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", '{"city": "Paris"}')]
    for asked in (conversation(), conversation(tools=(TIME,)), conversation(tools=(WEATHER,), tool_choice="none")):
        answer = fold(played(answers.llama((CALL,)), asked))
        assert (answer.calls, answer.text) == ((), CALL)


def test_a_call_that_is_told_as_transcripts_do_is_a_call_of_an_offered_tool() -> None:
    said = 'Sure.\nTool calls: Called get_weather with args: {"city": "Paris"}'
    answer = fold(played(answers.llama((said,)), TOOLS))
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", '{"city": "Paris"}')]
    for asked, prose in ((TOOLS, False), (conversation(tools=(TIME,)), True), (conversation(), True)):
        assert fold(played(answers.llama((said,)), asked, prose_calls=prose)).text == said


def test_text_that_is_held_back_is_progress() -> None:
    decoder = adapter(wire="completions", force_tools="prompt").decoder(
        conversation(tools=(WEATHER,), tool_choice="required")
    )
    shown = decoder.feed(answers.completions(("I", " would"))[:150])
    holding = decoder.extensions.holding
    assert not any(isinstance(event, TextDelta) for event in shown) and holding is not None and holding.progress == 2


def test_a_second_call_is_cut_off_when_one_was_allowed() -> None:
    one = conversation(tools=(WEATHER, TIME), parallel_tool_calls=False)
    decoder = adapter().decoder(one)
    events = decoder.feed(answers.llama((CALL, SECOND)))
    assert decoder.done and rules(events) == ["SECOND_CALL_DROPPED"]
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["get_weather"]
    assert isinstance(events[-1], Finish) and decoder.feed(b"more") == [] and decoder.close() == []
    assert len([event for event in played(answers.llama((CALL, SECOND)), TOOLS) if isinstance(event, ToolCallEnd)]) == 2


def test_a_forced_call_is_read_from_where_the_prompt_began_it() -> None:
    forced = conversation(tools=(WEATHER,), tool_choice="required")
    wire = answers.llama(('{"name": "get_weather", ', '"arguments": {"city": "Rome"}}'))
    answer = fold(played(wire, forced))
    assert answer.text == "" and [call.arguments for call in answer.calls] == ['{"city": "Rome"}']


@pytest.mark.parametrize("options", [{}, {"wire": "ollama_chat"}, {"wire": "completions", "force_tools": "prompt"}])
def test_an_answer_without_the_call_that_was_required_is_an_error(options: dict[str, Json]) -> None:
    wires: dict[str, Any] = {"ollama_chat": answers.ollama_chat, "completions": answers.completions}
    wire = wires.get(str(options.get("wire")), answers.llama)(("I would rather talk.",))
    decoder = adapter(**options).decoder(conversation(tools=(WEATHER,), tool_choice="required"))
    with pytest.raises(InvalidToolCall, match="without the tool call"):
        assert not any(isinstance(event, TextDelta) for event in [*decoder.feed(wire), *decoder.close()])


def test_text_before_a_forced_call_is_kept() -> None:
    forced = conversation(tools=(WEATHER,), tool_choice="required")
    options: dict[str, Json] = {"wire": {"base": "ollama_chat", "request": {"format": None}}, "force_tools": "prompt"}
    answer = fold(played(answers.ollama_chat(("Of course. ", CALL)), forced, **options))
    assert (answer.text.strip(), len(answer.calls)) == ("Of course.", 1)


def test_half_a_call_is_an_error_unless_the_model_reached_its_length() -> None:
    half = CALL[:60]
    with pytest.raises(BackendTruncated):
        played(answers.llama((half,)), TOOLS)
    events = played(answers.llama((half,), "limit"), TOOLS)
    assert reason(events).reason == "length" and rules(events) == ["TEXT_CALL_CUT"]


@pytest.mark.parametrize("spoilt", ['"{\\"city\\": \\"Par"', '"Paris"', '["Paris"]'])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hermes_json", '<tool_call>\n{"name": "get_weather", "arguments": %s}\n</tool_call>'),
        ("qwen_xml", '<tool_call>\n{"name": "get_weather", "arguments": %s}\n</tool_call>'),
        ("fenced_json", '```tool_call\n{"name": "get_weather", "arguments": %s}\n```'),
        ("react", "Action: get_weather\nAction Input: %s"),
    ],
)
def test_a_call_whose_arguments_cannot_be_read_is_no_answer(name: str, call: str, spoilt: str) -> None:
    said = call.replace("%s", spoilt)
    for pieces in ((said,), tuple(said)):
        with pytest.raises(InvalidToolCall) as caught:
            played(answers.llama(pieces), TOOLS, tool_format=name)
        assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")
        assert not any(isinstance(event, TextDelta | Finish) for event in caught.value.events)


def test_an_invented_turn_ends_the_answer_and_the_request() -> None:
    asked = exchange(TOOLS)
    events = asked.feed(answers.llama((CALL, "\n\nTool result (c): sunny\n\nAssistant: It is sunny.")))
    assert asked.done and asked.finished and rules(events) == ["TURN_INVENTED"]
    assert reason(events).reason == "tool_calls" and fold(events).text == ""
    free = exchange(options={"turn_guard": False})
    events = free.feed(answers.llama(("a\n\nUser: b",)))
    assert fold(events).text == "a\n\nUser: b" and rules(events) == []


def test_a_turn_that_the_backend_itself_cut_off_is_told() -> None:
    end = {"content": "", "stop": True, "stop_type": "word", "stopping_word": "\n\nUser:"}
    wire = answers.sse({"content": "a\n", "stop": False}, end)
    asked = exchange()
    events = asked.feed(wire)
    assert (fold(events).text, rules(events), asked.finished) == ("a", ["TURN_INVENTED"], True)
    assert rules(played(wire, conversation(sampling=Sampling(stop=("\n\nUser:",))))) == []
    said = {"choices": [{"text": "a\n", "finish_reason": None, "stop_reason": None}]}
    last = {"choices": [{"text": "", "finish_reason": "stop", "stop_reason": "\n\nUser:"}]}
    asked = exchange(options={"wire": "vllm"})
    events = asked.feed(answers.sse(said, last))
    assert (fold(events).text, rules(events), asked.finished) == ("a", ["TURN_INVENTED"], True)


@pytest.mark.parametrize("wire", WRITERS)
def test_honest_lines_are_kept_and_a_turn_is_cut_without_the_blanks_before_it(wire: str) -> None:
    honest = "Config:\nUser: postgres\nPassword: x"
    for pieces in ((honest, "\n\n\nUser: Thanks!"), tuple(honest + "\n\nUser: Thanks!")):
        asked = exchange(options={"wire": wire})
        events = asked.feed(WRITERS[wire](pieces))
        assert (fold(events).text, rules(events), asked.done) == (honest, ["TURN_INVENTED"], True)
    asked = exchange(options={"wire": wire})
    events = asked.feed(WRITERS[wire]((honest,)))
    assert (fold([*events, *asked.close()]).text, rules(events)) == (honest, [])


@pytest.mark.parametrize(
    "inner", ["<tool_response>", "</tool_call>", "\nObservation: x", "```tool_result", "\n\nUser: x"]
)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("raw", [False, True])
def test_marks_of_results_in_an_argument_end_nothing(name: str, inner: str, raw: bool) -> None:
    tools = conversation(tools=(WEATHER,))
    written = FORMATS[name].render_call("get_weather", json.dumps({"city": f"a{inner}\n{inner} b"}))
    call = written.replace("\\n", "\n") if raw else written
    for pieces in ((call,), tuple(call)):
        asked = exchange(tools, options={"tool_format": name})
        events = [event for piece in pieces for event in asked.feed(answers.llama((piece,))[: -len(LLAMA_END)])]
        events += asked.feed(LLAMA_END)
        (made,) = fold(events).calls
        assert json.loads(made.arguments) == {"city": f"a{inner}\n{inner} b"}
        assert reason(events).reason == "tool_calls" and "TURN_INVENTED" not in rules(events)


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].ends])
@pytest.mark.parametrize("between", ["\n", "", "\n\n", "\nThen.\n"])
def test_a_result_that_the_model_writes_itself_ends_the_answer(name: str, between: str) -> None:
    tools = conversation(tools=(WEATHER,))
    call = FORMATS[name].render_call("get_weather", "{}")
    for end in FORMATS[name].ends:
        said = f"{call}{between}{end} sunny\n{call}"
        for pieces in ((said,), tuple(said)):
            asked = exchange(tools, options={"tool_format": name})
            events = asked.feed(answers.llama(pieces))
            answer = fold(events)
            assert (answer.text.strip(), len(answer.calls)) == (between.strip(), 1)
            assert (rules(events), asked.done, reason(events).reason) == (["TURN_INVENTED"], True, "tool_calls")


@pytest.mark.parametrize("name", FORMATS)
def test_the_mark_of_a_result_without_a_call_is_text(name: str) -> None:
    said = "".join(f"\n{end} is how\n" for end in ("Results:", *FORMATS[name].ends)).lstrip()
    for pieces in ((said,), tuple(said)):
        asked = exchange(conversation(tools=(WEATHER,)), options={"tool_format": name})
        events = asked.feed(answers.llama(pieces))
        assert (fold(events).text, rules(events)) == (said, [])


@pytest.mark.parametrize("body", [b"null", b"7", b"[]", b'"text"', b"{}", b'{"words": "a"}', b""])
def test_a_document_of_another_shape_is_no_answer(body: bytes) -> None:
    wire: dict[str, Json] = {"path": "", "request": {"p": "$prompt"}, "framing": "json", "text": ["text"]}
    with pytest.raises(BackendError):
        played(body, wire=wire)


@pytest.mark.parametrize("event", [b"null", b"7", b'["not", "an", "event"]', b'"text"'])
def test_an_event_that_is_no_object_is_malformed(event: bytes) -> None:
    with pytest.raises(BackendProtocolError, match="not an object"):
        played(b"data: " + event + b"\n\n")
    assert fold(played(b'"a"\n"b"\n{"done": true}', wire="plain_ndjson")).text == "ab"


def test_an_event_that_says_nothing_is_told_once() -> None:
    progress: Json = {"prompt_progress": {"total": 5}}
    events = played(answers.sse(progress, progress) + answers.llama())
    assert (fold(events).text, rules(events)) == (answers.TEXT, ["UNKNOWN_EVENT"])


def test_a_document_without_end_is_refused() -> None:
    wire: dict[str, Json] = {"path": "", "request": {"p": "$prompt"}, "framing": "json", "text": ["text"]}
    decoder = adapter(wire=wire).decoder(conversation())
    with pytest.raises(BackendProtocolError):
        for _ in range(20):
            decoder.feed(b"x" * (1 << 20))


@pytest.mark.parametrize(("stop", "told"), [("END", "END"), ("\n\nUser:", None), ("", None)])
def test_the_clients_stop_sequence_that_a_wire_names(stop: str, told: str | None) -> None:
    asked = conversation(sampling=Sampling(stop=("END",)))
    end: Json = {"content": "", "stop": True, "stop_type": "word", "stopping_word": stop}
    assert reason(played(answers.sse({"content": "a", "stop": False}, end), asked)) == Finish("stop", "word", told)
    last: Json = {"choices": [{"text": "", "finish_reason": "stop", "stop_reason": stop}]}
    wire = answers.sse({"choices": [{"text": "a"}]}, last) + b"data: [DONE]\n\n"
    assert reason(played(wire, asked, wire="vllm")) == Finish("stop", "stop", told)
