import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.openai_chat.backend.completion_fast_path import read_plain
from adapters.openai_chat.backend.decoder import ChatDecoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.core.events import Event, Finish, PassthroughFields, ResponseStart, TextDelta, UsageReport
from tests.adapters.openai_chat.backend.wires import completion

Fields = dict[str, Json]
Objects = st.SearchStrategy[Fields]


def read(body: bytes) -> tuple[list[Event], object]:
    """What a decoder makes of an answer: its events, or the error that came."""
    decoder = ChatDecoder(1 << 16, 1)
    try:
        return [*decoder.feed(body), *decoder.close()], None
    except BackendError as error:
        return error.take_events(), (type(error), str(error), error.code)


def read_in_full(body: bytes) -> tuple[list[Event], object]:
    """The same, read the long way: an array is never plain, and one with one answer means that answer."""
    return read(b"[%b]" % body)


def written(events: list[Event]) -> str:
    """Events with the types of their numbers: True, 1 and 1.0 are equal."""
    return json.dumps([(type(event).__name__, msgspec.to_builtins(event)) for event in events], sort_keys=True)


def answer(message: Fields, *, choice: Fields | None = None, **fields: Json) -> bytes:
    whole: Fields = {"index": 0, "message": {"role": "assistant", "content": "a", **message}, "finish_reason": "stop"}
    return json.dumps({"id": "c", "model": "m", "choices": [{**whole, **(choice or {})}], **fields}).encode()


COUNTS: Fields = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DETAILS: Fields = {"cached_tokens": 0, "audio_tokens": None}
OPENAI = completion(
    {"role": "assistant", "content": "Hé", "refusal": None, "annotations": []},
    "length",
    usage={**COUNTS, "prompt_tokens_details": DETAILS},
    service_tier="default",
    system_fingerprint="fp",
)
VLLM = answer(
    {"refusal": None, "annotations": None, "audio": None, "function_call": None, "tool_calls": [], "reasoning": None},
    choice={"logprobs": None, "stop_reason": None, "token_ids": None},
    usage={**COUNTS, "prompt_tokens_details": None},
    prompt_logprobs=None,
    kv_transfer_params=None,
)


def test_what_openai_writes_is_plain() -> None:
    assert read_plain(OPENAI) == [
        ResponseStart("c1", "m"),
        PassthroughFields("response", {"service_tier": "default", "system_fingerprint": "fp"}),
        PassthroughFields("delta", {"annotations": []}),
        TextDelta("Hé"),
        Finish("length", "length"),
        UsageReport(3, 4, 7, extra={"prompt_tokens_details": DETAILS}),
    ]


@pytest.mark.parametrize(
    "body",
    [
        OPENAI,
        VLLM,
        answer({}),
        answer({}, usage=None, timings={"predicted_ms": 1.5, "cache_n": 2}),
        answer({}, usage={}, created=7.5),
        answer({"reasoning_content": ""}, id="", model=None),
        answer({}, choice={"finish_reason": "tool_calls", "index": None}),
        b' {"choices": [{"message": {"content": "\\ud83d\\ude00"}, "finish_reason": "stop"}]} \n',
        b'{"choices":[],"choices":[{"message":{"content":"a","content":"b"},"finish_reason":"eos"}],"id":"a","id":"b"}'
        .replace(b'"choices":[],', b""),
    ],
)  # fmt: skip
def test_a_plain_answer_means_what_it_means_when_read_in_full(body: bytes) -> None:
    assert read_plain(body) is not None
    assert read(body) == read_in_full(body)


@pytest.mark.parametrize(
    "body",
    [
        answer({"content": ""}),
        answer({"content": None}),
        answer({"content": [{"type": "text", "text": "a"}]}),
        answer({"content": "a", "reasoning": "b"}),
        answer({"content": "a", "reasoning_content": "b"}),
        answer({"annotations": [{}]}),
        answer({"refusal": ""}),
        answer({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
        answer({"extra": 1}),
        answer({}, choice={"index": 1}),
        answer({}, choice={"index": 0.0}),
        answer({}, choice={"index": False}),
        answer({}, choice={"logprobs": {}}),
        answer({}, choice={"finish_reason": None}),
        answer({}, choice={"finish_reason": ""}),
        answer({}, choice={"finish_reason": "STOP"}),
        answer({}, choice={"finish_reason": "error"}),
        answer({}, choice={"finish_reason": "odd"}),
        answer({}, error={"message": "no"}),
        answer({}, error=None),
        answer({}, object="error"),
        answer({}, choices=[]),
        answer({}, choices=[{"message": {"content": "a"}, "finish_reason": "stop"}] * 2),
        answer({}, usage={"prompt_tokens": 3.0}),
        answer({}, usage={"prompt_tokens": -1}),
        answer({}, usage={"prompt_tokens": True}),
        answer({}, usage={"cost": 1}),
        answer({}, usage=7),
        answer({}, id=7),
        OPENAI + b"x",
        OPENAI[:-1],
        OPENAI.replace(b"\\u00e9", b"\\ud83d"),
        OPENAI.replace(b"\\u00e9", b"\xff"),
        answer({"deep": json.loads("[" * 70 + "]" * 70)}),
    ],
)
def test_any_other_answer_is_read_in_full(body: bytes) -> None:
    assert read_plain(body) is None


@pytest.mark.parametrize(
    ("said", "meant"), [(b"\\ud83d", "\ufffd"), (b"\xff", "\ufffd"), (b"\\u00e9", "é"), ("é".encode(), "é")]
)
def test_half_a_character_is_read_as_one_that_stands_for_it(said: bytes, meant: str) -> None:
    events, fault = read(OPENAI.replace(b"\\u00e9", said))
    assert fault is None
    assert TextDelta(f"H{meant}") in events


Values = st.SearchStrategy[Json]
ODD: Values = st.sampled_from(
    [None, True, False, 0, 1, -1, 2.0, 1e300, 10**30, "", " ", "a", "error", [], [None], {}, {"a": {"b": 1}}]
)


def objects(needed: dict[str, Values], others: dict[str, Values]) -> Objects:
    """Objects with these fields in any order, now and then an odd one among them."""
    usual: Objects = st.fixed_dictionaries(needed, optional=others)
    odd: Objects = st.dictionaries(st.sampled_from([*needed, *others, "extra", "error"]), ODD, min_size=1, max_size=1)
    fields: Objects = st.tuples(
        usual, st.sampled_from([0] * 7 + [1]).flatmap(lambda more: odd if more else NOTHING)
    ).map(lambda drawn: {**drawn[0], **drawn[1]})
    return fields.flatmap(lambda drawn: st.permutations(list(drawn.items())).map(lambda items: dict(items)))


NOTHING: Objects = st.just({})
TEXT: Values = st.text(max_size=9)
NULL: Values = st.none()
NUMBERS: Values = st.dictionaries(st.sampled_from("ab"), st.none() | st.integers() | st.floats(0, 9))
COUNT: Values = st.none() | st.integers(0, 1 << 70)
ROLE: Values = st.just("assistant")
FINISH: Values = st.sampled_from(["stop", "length", "content_filter", "eos", "tool_calls", "abort"])
ZERO: Values = st.just(0)
NONE: Values = st.just([])
KIND: Values = st.just("chat.completion")
MESSAGE: Values = objects(
    {"content": TEXT},
    {"role": ROLE, "annotations": NONE, "tool_calls": NONE, "refusal": NULL, "audio": NULL, "reasoning": NULL},
)
CHOICE: Values = objects({"message": MESSAGE, "finish_reason": FINISH}, {"index": ZERO, "logprobs": NULL})
CHOICES: Values = st.lists(CHOICE, min_size=1, max_size=2)
USAGE: Values = objects(
    {"prompt_tokens": COUNT, "completion_tokens": COUNT},
    {"total_tokens": COUNT, "prompt_tokens_details": NUMBERS, "completion_tokens_details": NUMBERS},
)
ANSWERS = objects(
    {"choices": CHOICES},
    {"id": TEXT, "object": KIND, "created": COUNT, "model": TEXT, "usage": USAGE}
    | {"service_tier": TEXT, "system_fingerprint": TEXT, "timings": NUMBERS, "prompt_logprobs": NULL},
)


@settings(max_examples=3 * settings().max_examples)
@given(ANSWERS, st.booleans())
def test_every_answer_means_what_it_means_when_read_in_full(document: Json, escaped: bool) -> None:
    body = json.dumps(document, ensure_ascii=escaped).encode()
    (events, fault), (others, other) = read(body), read_in_full(body)
    assert (events, fault) == (others, other)
    assert written(events) == written(others)
