"""A response says the same when every message is read in full, and messages that are like others are not."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final
from unittest.mock import patch

import msgspec
import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.backend.decoder import ProtoDecoder
from adapters.proto.backend.named_fields import NamedFields, named_fields
from adapters.proto.backend.options import ReadRule
from adapters.proto.backend.read_rules import Rules
from gateway.core.conversation import Conversation, Text, ToolSpec, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, TextDelta
from gateway.settings import check_options
from gateway.testing.replay import cut
from tests.adapters.proto.backend.mappings import DELTAS, FORMS, PARTS, TALK, TENSORS
from tests.adapters.proto.backend.services import WRITERS

# A message of protobuf's JSON, given a text and a number. (Any: it is nested.)
Shape = Callable[[str, int], dict[str, Any]]


class Service(msgspec.Struct, frozen=True):
    """A mapping and the messages of its responses; the first one is a piece of text."""

    options: Mapping[str, Any]
    shapes: tuple[Shape, ...]


def talk(**rule: Any) -> Mapping[str, Any]:
    return {**TALK, "read": [TALK["read"][0], {**TALK["read"][1], **rule}]}


def _gemini(part: dict[str, Any], number: int, **candidate: Any) -> dict[str, Any]:
    counts = {"promptTokenCount": 19, "candidatesTokenCount": number, "totalTokenCount": 19 + number}
    return {
        "candidates": [{"content": {"parts": [part], "role": "model"}, **candidate}],
        "usageMetadata": counts,
        "modelVersion": "m",
        "responseId": "r1",
    }


_SAID: Final[tuple[Shape, ...]] = (
    lambda text, _: {"soFar": text},
    lambda text, number: {"soFar": text, "tokensIn": 3, "tokensOut": number},
    lambda text, number: {"tokensOut": number},
    lambda text, number: {"soFar": text, "ending": "ENDING_DONE", "tokensOut": number},
    lambda text, _: {"failure": {"sentence": text, "number": 8}},
)
_XAI: Final[tuple[Shape, ...]] = (
    lambda text, number: {
        "id": "r1",
        "model": "m",
        "outputs": [{"delta": {"content": text}}],
        "usage": {"promptTokens": 19, "completionTokens": number, "totalTokens": 19 + number},
    },
    lambda text, number: {
        "id": "r1",
        "outputs": [{"delta": {"reasoningContent": text}}],
        "usage": {"reasoningTokens": number},
    },
    lambda text, number: {"outputs": [{"index": number % 2, "delta": {"content": text}}]},
    lambda text, number: {"outputs": [{"delta": {"content": text}}, {"index": 1, "delta": {"content": text}}]},
    lambda text, number: {"outputs": [{"delta": {"content": text}, "finishReason": "REASON_STOP"}]},
)
SERVICES: Final[Mapping[str, Service]] = {
    "talk": Service(talk(mode="delta"), _SAID),
    "the text so far": Service(TALK, _SAID),
    "a condition on the text": Service(talk(mode="delta", finish={"when": {"so_far": "lo"}, "reason": "stop"}), _SAID),
    "a condition on a count": Service(
        talk(mode="delta", finish={"when": {"tokens_out": 200}, "reason": "length"}), _SAID
    ),
    "sums of two": Service(talk(mode="delta", usage={"total": ["tokens_in", "tokens_out"], "mode": "max"}), _SAID),
    "sums": Service(talk(mode="delta", usage={"completion": "tokens_out", "mode": "sum"}), _SAID),
    "parts": Service(
        PARTS,
        (
            lambda text, _: {"parts": [{"text": text}]},
            lambda text, number: {"id": "r1", "parts": [{"text": text}], "counts": {"output": number}},
            lambda text, _: {"parts": [{"thought": text}]},
            lambda text, _: {"parts": [{"text": text}, {"text": "lo"}]},
            lambda text, _: {"parts": [{"thought": "lo"}, {"text": text}]},
            lambda text, _: {"parts": [{"text": text}, {"call": {"name": "look"}}]},
            lambda text, _: {"parts": [{"call": {"id": text, "name": "look", "fields": {"at": text}}}]},
            lambda text, number: {"counts": {"output": number}, "ended": {"fully": {}}},
        ),
    ),
    "forms": Service(
        FORMS,
        (
            lambda text, _: {"blocks": [{"text": text}]},
            lambda text, _: {"blocks": [{"text": text}], "special": True},
            lambda text, _: {"blocks": [{"text": text}], "labels": {"model": "lo"}},
            lambda text, _: {"blocks": [{"text": text}, {"thought": {"text": "lo"}}]},
            lambda text, _: {"blocks": [{"thought": {"text": text, "seal": "c2Vh"}}]},
            lambda text, number: {"blocks": [{"text": text}], "counts": [{"name": "out", "value": number}]},
            lambda text, _: {"blocks": [{"text": text}], "labels": {"why": "halt"}},
        ),
    ),
    "bytes": Service(
        DELTAS, (lambda text, number: {"outputs": [{"content": "bG8=", "index": 0}], "newTokens": number},)
    ),
    "tensors": Service(TENSORS, (lambda text, _: {"answer": {"outputs": [{"name": text, "datatype": text}]}},)),
    "xai": Service({"preset": "xai"}, _XAI),
    "gemini": Service(
        {"preset": "gemini_grpc"},
        (
            lambda text, number: _gemini({"text": text}, number),
            lambda text, number: _gemini({"text": text, "thought": True}, number),
            lambda text, number: _gemini({"text": text}, number, index=number % 2),
            lambda text, number: _gemini({"text": text}, number, finishReason="STOP"),
        ),
    ),
    "tgis": Service(
        {"preset": "tgis"},
        (
            lambda text, number: {"text": text, "generatedTokenCount": number},
            lambda text, number: {"text": text, "generatedTokenCount": number, "inputTokenCount": 19},
            lambda text, number: {"text": text, "stopReason": "STOP_SEQUENCE", "stopSequence": text},
        ),
    ),
    "localai": Service(
        {"preset": "localai"},
        (
            lambda text, number: {"chatDeltas": [{"content": text}], "tokens": number},
            lambda text, number: {"chatDeltas": [{"content": text}, {"content": text}], "tokens": number},
        ),
    ),
    "warp": Service(
        {"preset": "warp"},
        (
            lambda text, _: _appended(text, "agentOutput", "text"),
            lambda text, _: _appended(text, "agentReasoning", "reasoning"),
            lambda _, __: {"finished": {"done": {}}},
        ),
    ),
}


def _appended(text: str, kind: str, field: str) -> dict[str, Any]:
    message = {"id": "m1", "taskId": "t1", kind: {field: text}}
    appended = {"taskId": "t1", "message": message, "mask": f"{kind}.{field}"}
    return {"clientActions": {"actions": [{"appendToMessageContent": appended}]}}


@cache
def adapter(name: str, carrier: str) -> ProtoAdapter:
    options = {**SERVICES[name].options, "carrier": carrier}
    status = carrier in ("grpc", "grpc_web", "connect")
    if options.get("ends") == "status" and not status:
        options["ends"] = "close"
    if options.get("preset") == "localai" and not status:
        options["ends"] = "close"
    return ProtoAdapter(check_options(options, ProtoOptions, "options"), 1 << 20)


def message(made: ProtoAdapter, fields: dict[str, Any]) -> bytes:
    return ParseDict(fields, made._response()).SerializeToString()


ASKED: Final = Conversation(
    (Turn("user", (Text("?"),), index=0),), (ToolSpec("look"),), parallel_tool_calls=False, model="m", stream=True
)
# The second one ends the response where calls are found in the text.
CALLS: Final = '\n\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>' * 2


def played(decoder: ProtoDecoder, reads: Sequence[bytes]) -> tuple[list[list[Event]], object]:
    """The events of each read, and the error that ends them."""
    found: list[list[Event]] = []
    try:
        for read in reads:
            if decoder.done:
                break
            found.append(decoder.feed(read))
        if not decoder.done:
            found.append(decoder.trailers({"grpc-status": "0"}))
        if not decoder.done:
            found.append(decoder.close())
    except BackendError as error:
        notices = [(notice.rule, notice.detail) for notice in error.notices]
        return [*found, [*error.events]], (type(error), error.message, error.code, error.status, notices)
    return found, None


def decoders(made: ProtoAdapter, wait: int = 1) -> tuple[ProtoDecoder, ProtoDecoder]:
    """One that learns from each message for which it has waited, and one that reads every message in full."""
    quick, full = made.decoder(ASKED), made.decoder(ASKED)
    if quick._fast_path is not None:
        quick._fast_path._first_wait = quick._fast_path._wait = wait
    full._fast_path = None
    return quick, full


# Texts that are written like ids, of lengths at which a length grows, and that a filter of calls looks at.
TEXTS: Final = (
    st.sampled_from(("lo", "m", "r1", "m1", "!", "?!", "é", "日本", "END", "\n\nUser: Hi", "\n<tool_call>", CALLS))
    | st.text(st.sampled_from("lo!?é日 \n"), max_size=6)
    | st.builds(lambda text, size: text * size, st.sampled_from("xé"), st.sampled_from((60, 100, 120, 126, 127, 128)))
    | st.builds(lambda size: "y" * size, st.integers(16_300, 16_390))
)
NUMBERS: Final = st.sampled_from((0, 1, 2, 5, 127, 128, 200, 16_383, 16_384, 70_000))
# Unknown fields, texts that are not UTF-8 or no texts, and half a field.
TAILS: Final = st.sampled_from((b"", b"", b"", b"\xfa\x01\x02hi", b"\xc0\x3e\x05", b"\x12\x02\xff\xfe", b"\x12\x05a"))
RUNS: Final = st.tuples(st.integers(0, 7), st.lists(st.tuples(TEXTS, NUMBERS), min_size=1, max_size=9), TAILS)
PLACES: Final = st.lists(st.integers(0, 5000), max_size=12)


@given(
    st.sampled_from(sorted(SERVICES)),
    st.sampled_from(("grpc", "grpc_web", "connect", "frames_varint", "frames_u32", "sse_base64")),
    st.lists(RUNS, min_size=1, max_size=9),
    PLACES,
    st.sampled_from((1, 8)),
    st.booleans(),
)
@example("talk", "grpc", [(0, [("lo", 0)] * 70, b"\xfa\x01\x02hi")], [], 8, False)
@example("talk", "grpc", [(1, [("lo", n) for n in (5, 6, 7)], b""), (1, [(CALLS, 9), ("lo", 8)], b"")], [], 1, False)
@example(
    "talk", "frames_u32", [(0, [("lo", 5)] * 3, b""), (3, [("lo", 5)], b""), (0, [("lo", 6)] * 2, b"")], [], 1, True
)
@example("a condition on the text", "frames_u32", [(0, [("ab", 0)] * 3 + [("lo", 0), ("ab", 0)], b"")], [], 1, False)
@example("a condition on a count", "frames_u32", [(1, [("ab", n) for n in (130, 140, 200, 130)], b"")], [], 1, False)
@example("the text so far", "grpc", [(0, [("lo", 0), ("a", 0), ("", 0), ("b", 0)], b"\xfa\x01\x02hi")], [], 1, True)
@example("sums of two", "grpc", [(1, [("lo", n) for n in range(1, 140)], b"")], [], 1, False)
@example("sums", "grpc", [(1, [("lo", n) for n in range(120, 140)], b"")], [], 1, False)
@example(
    "parts", "grpc", [(5, [("lo", 0)] * 4, b""), (4, [("a", 0), ("ab", 0)], b""), (7, [("", 1)], b"")], [], 1, False
)
@example("xai", "connect", [(n % 4, [("lo", n)] * 3, b"") for n in range(30)], [7, 900], 1, False)
@example("gemini", "grpc_web", [(0, [("x" * n, n) for n in range(100, 150)], b"")], [], 1, False)
@example("tgis", "frames_varint", [(0, [("x", n) for n in range(1, 300)], b"")], [], 8, False)
@example("warp", "sse_base64", [(0, [("lo", 0)] * 9, b""), (0, [("lo", 0)], b"\x12\x02\xff\xfe")], [40], 1, False)
def test_a_response_is_the_same_when_every_message_is_read_in_full(
    name: str,
    carrier: str,
    runs: list[tuple[int, list[tuple[str, int]], bytes]],
    places: list[int],
    wait: int,
    grows: bool,
) -> None:
    made, shapes = adapter(name, carrier), SERVICES[name].shapes
    messages = []
    so_far = ""
    for kind, said, tail in runs:
        for text, number in said:
            so_far = so_far + text if grows else text
            messages.append(message(made, shapes[kind % len(shapes)](so_far, number)) + tail)
    quick, full = decoders(made, wait)
    reads = cut(WRITERS[carrier](messages), places)
    assert played(quick, reads) == played(full, reads)


@given(st.sampled_from(("talk", "parts", "xai", "warp")), st.data())
def test_a_response_is_the_same_whatever_byte_of_it_is_another(name: str, data: st.DataObject) -> None:
    made, shapes = adapter(name, "frames_u32"), SERVICES[name].shapes
    messages = [message(made, shapes[0](text, 3)) for text in ("lo", "ab", "abc", "lo")]
    for _ in range(data.draw(st.integers(1, 3))):
        changed = bytearray(data.draw(st.sampled_from(messages)))
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        messages.append(bytes(changed))
    quick, full = decoders(made)
    reads = [WRITERS["frames_u32"]([one]) for one in messages]
    assert played(quick, reads) == played(full, reads)


LEARNED: Final = (
    "talk",
    "the text so far",
    "sums",
    "sums of two",
    "parts",
    "forms",
    "xai",
    "gemini",
    "tgis",
    "localai",
    "warp",
)


@pytest.mark.parametrize("name", LEARNED)
def test_most_messages_of_a_response_are_not_read_in_full(name: str) -> None:
    made, shapes = adapter(name, "grpc"), SERVICES[name].shapes
    so_far = ""
    messages = []
    for number in range(1, 121):
        so_far = so_far + "a piece " if name == "the text so far" else "a piece " * (number % 5 + 1)
        messages.append(message(made, shapes[0](so_far, number)))
    with patch.object(Rules, "read", autospec=True, side_effect=Rules.read) as read:
        events = made.decoder(ASKED).feed(WRITERS["grpc"](messages))
    assert sum(type(event) is TextDelta for event in events) == 120
    # Eight before one is learned, as many where a count grows by a byte, and one of 64; learning reads two and one for
    # each count.
    assert read.call_count <= 30


@pytest.mark.parametrize("name", ["a condition on the text", "tensors"])
def test_a_mapping_that_asks_for_the_text_has_no_fast_path(name: str) -> None:
    assert adapter(name, "grpc").decoder(ASKED)._fast_path is None


def test_the_names_that_rules_read_are_those_at_the_end_of_their_paths() -> None:
    written = [
        {"each": "outputs[kind=a]", "text": "delta.content", "when": {"delta.role[0]": "set"}},
        {
            "usage": {"prompt": ["usage.prompt_tokens", "all.value"], "mode": "max"},
            "finish": {"oneof": "a.b", "none": ["c"]},
        },
    ]
    assert named_fields(msgspec.convert(written, tuple[ReadRule, ...])) == NamedFields(
        frozenset({"content"}),
        frozenset({"prompt_tokens", "all", "value"}),
        frozenset({"kind", "role", "set", "b"}),
        tensors=False,
    )
