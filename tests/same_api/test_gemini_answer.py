"""An answer of a backend of generateContent reaches a client of the same API as the backend wrote it.

The values are those of the published types of Google's SDK. The exceptions are listed in docs/gemini-backends.md, "A
client of the same API".
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from adapters.gemini.client.dialect import GeminiDialect
from gateway.core.errors import InvalidToolCall
from gateway.core.events import PassthroughFields, TextDelta
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from tests.same_api.test_gemini_request import ADAPTER, BODY, CALL, PARTS, PUBLISHED, RESULT
from tests.same_api.unknown import with_new_fields

DIALECT: Final = GeminiDialect()
HEAD: Final = AnswerHead("1", 0, "m", lambda: 0)
# What the gateway writes itself.
OWN: Final = {"modelVersion": "m", "responseId": "1"}
FORMS: Final = {"whole": "", "events": "alt=sse", "array": ""}
TEXT: Final[dict[str, Any]] = {"text": "a"}
THOUGHT: Final[dict[str, Any]] = {"text": "hm", "thought": True}
CANDIDATE: Final = {name: value for name, value in PUBLISHED["candidate"].items() if name not in {"content", "index"}}


def answered(body: bytes, form: str, *, label: str | None = None) -> bytes:
    """The bytes that the client gets."""
    verb = "generateContent" if form == "whole" else "streamGenerateContent"
    head = RequestHead(f"/v1beta/models/m:{verb}", query=FORMS[form].encode())
    request = DIALECT.decode(read_document(json.dumps(BODY).encode()), head)
    exchange = Exchange(ADAPTER, request.conversation, Policy(), label=label)
    exchange.on_response_head(200, {"content-type": "application/json" if form == "whole" else "text/event-stream"})
    if form == "whole":
        return DIALECT.encode_answer(request, HEAD, [*exchange.feed(body), *exchange.close(), *exchange.estimate()])
    encoder = DIALECT.stream_encoder(request, HEAD)
    # Each chunk arrives alone, and the last two together.
    *pieces, last = body.split(b"\n\n")[:-1]
    out = b"".join([encoder.feed(exchange.feed(piece + b"\n\n")) for piece in pieces[:-1]])
    out += encoder.feed(exchange.feed(b"".join([piece + b"\n\n" for piece in (*pieces[-1:], last)])))
    return out + encoder.feed(exchange.close()) + encoder.feed(exchange.estimate()) + encoder.close()


def read(body: bytes, form: str) -> list[Any]:
    if form == "events":
        return [json.loads(frame.removeprefix(b"data: ")) for frame in body.split(b"\n\n") if frame]
    said = json.loads(body)
    return said if isinstance(said, list) else [said]


def got(chunks: Sequence[dict[str, Any]], form: str, *, label: str | None = None) -> list[Any]:
    if form == "whole":
        (chunk,) = chunks
        return read(answered(json.dumps(chunk).encode(), form, label=label), form)
    return read(
        answered(b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks), form, label=label), form
    )


def chunk(*parts: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [*parts], "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    return with_new_fields({"candidates": [candidate], "usageMetadata": usage, **OWN, **fields})  # type: ignore[no-any-return]  # JSON


def arrives(*chunks: dict[str, Any]) -> None:
    """Each chunk arrives in both forms of a stream, and each chunk that may be a whole answer as one."""
    for form in ("events", "array"):
        assert got(chunks, form) == [*chunks]
    if len(chunks) == 1:
        assert got(chunks, "whole") == [*chunks]


@pytest.mark.parametrize(
    "part", [*PARTS, {"x_part": 1}, TEXT, THOUGHT, CALL, RESULT], ids=lambda part: next(iter(part))
)
def test_every_part_arrives_with_what_is_new_in_it(part: dict[str, Any]) -> None:
    arrives(chunk(part, reason="STOP"))
    arrives(chunk(part), chunk(TEXT, part, TEXT, part), chunk(reason="STOP"))


@pytest.mark.parametrize(
    "part",
    [
        {"text": ""},
        {"text": "", "thoughtSignature": "c2ln"},
        {"text": "a", "thoughtSignature": "c2ln"},
        {"text": "a", "thought": False},
        {"thoughtSignature": "c2ln"},
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "f", "args": None, "id": ""}},
        {"functionCall": {"name": "f", "args": {"n": 1.5, "m": [{"k": None}]}, "id": "k"}, "thoughtSignature": "c2ln"},
        {"functionCall": {}},
        {"text": None, "inlineData": {"mimeType": "image/png", "data": "eA=="}},
        {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "c2ln"},
    ],
    ids=json.dumps,
)
def test_every_form_of_a_part_arrives(part: dict[str, Any]) -> None:
    arrives(chunk(part, _with_another_id(part), reason="STOP"))
    arrives(chunk(TEXT), chunk(part), chunk(TEXT, reason="STOP"))


def _with_another_id(part: dict[str, Any]) -> dict[str, Any]:
    """Two calls of a response with one id are put right: docs/gemini-backends.md names it."""
    call = part.get("functionCall", {})
    return {**part, "functionCall": {**call, "id": "other"}} if call.get("id") else part


@pytest.mark.parametrize("name", CANDIDATE)
def test_every_field_of_the_candidate_arrives(name: str) -> None:
    field = {name: with_new_fields(CANDIDATE[name])}
    early, last = chunk(TEXT), chunk(TEXT, reason="STOP")
    last["candidates"][0] |= field
    arrives(last)
    early["candidates"][0] |= {} if name == "finishReason" else field
    arrives(early, last)


@pytest.mark.parametrize("name", ["createTime", "modelStatus", "promptFeedback", "x_field"])
def test_every_field_of_the_response_arrives(name: str) -> None:
    field: dict[str, Any] = {name: PUBLISHED["response"].get(name, {"a": 1})}
    arrives(chunk(TEXT, reason="STOP", **field))
    arrives(chunk(TEXT, **field), chunk(TEXT, reason="STOP", **field))


def test_every_count_arrives_in_each_chunk() -> None:
    usage: dict[str, Any] = {"usageMetadata": {**PUBLISHED["usage"], "serviceTier": "standard"}}
    arrives(chunk(TEXT, reason="STOP", **usage))
    finished = chunk(TEXT, reason="STOP")
    del finished["usageMetadata"]
    arrives(chunk(TEXT, **usage), chunk(TEXT, usageMetadata={"promptTokenCount": 3}), finished, {**usage, **OWN})


@pytest.mark.parametrize("reason", [*PUBLISHED["reasons"], "X_NEW"])
def test_every_finish_reason_arrives_with_its_message(reason: str) -> None:
    answer = chunk(reason=reason)
    answer["candidates"][0]["finishMessage"] = "Malformed function call: f("
    arrives(answer)
    arrives(chunk(TEXT), answer)


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKED_REASON_UNSPECIFIED", "X_NEW"])
def test_a_blocked_prompt_arrives_without_a_candidate(reason: str) -> None:
    feedback = with_new_fields({**PUBLISHED["feedback"], "blockReason": reason})
    arrives({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3}, **OWN})


@pytest.mark.parametrize(
    "answer",
    [
        chunk(TEXT),
        {"candidates": [{"index": 0}], "usageMetadata": {"promptTokenCount": 3}, **OWN},
        {
            "candidates": [{"finishReason": "STOP", "content": {"role": "model"}}],
            "usageMetadata": {"promptTokenCount": 3},
            **OWN,
        },
        {"usageMetadata": {"promptTokenCount": 3}, **OWN},
        {"candidates": [], "usageMetadata": {"promptTokenCount": 3}, **OWN},
    ],
    ids=["no reason", "no content", "no parts", "no candidates", "an empty list"],
)
def test_a_whole_answer_of_few_fields_arrives(answer: dict[str, Any]) -> None:
    assert got([answer], "whole") == [answer]


def test_chunks_of_few_fields_arrive() -> None:
    first: dict[str, Any] = {"candidates": [{"content": {"parts": [TEXT]}}], **OWN}
    last = {"candidates": [{"finishReason": "STOP", "content": {"role": "model"}}], **OWN}
    arrives(
        first,
        {**first, "usageMetadata": {"promptTokenCount": 3}},
        last,
        {"usageMetadata": {"promptTokenCount": 3}, **OWN},
    )


def test_what_follows_the_finish_reason_arrives_until_the_counts_have_come() -> None:
    first, second, last = [chunk(TEXT, {"x_part": 1}, reason="STOP") for _ in range(3)]
    del first["usageMetadata"], second["usageMetadata"]
    arrives(first, second, last)


def test_a_call_in_pieces_arrives_in_its_pieces() -> None:
    pieces: list[dict[str, Any]] = [
        {"name": "f", "id": "k", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}], "willContinue": True},
        {},
    ]
    arrives(*[chunk({"functionCall": piece}) for piece in pieces], chunk(reason="STOP"))


def test_the_state_of_each_part_gets_the_label_of_its_backend() -> None:
    label = "Dragoman0123456789abcdef"
    parts = [{**TEXT, "thoughtSignature": "c2ln"}, {**CALL, "thoughtSignature": "c2ln"}, {"thoughtSignature": "c2ln"}]
    for form in FORMS:
        (said,) = got([chunk(*parts, reason="STOP")], form, label=label)
        assert [part["thoughtSignature"] for part in said["candidates"][0]["content"]["parts"]] == [f"{label}c2ln"] * 3


def test_counts_that_the_backend_does_not_report_are_estimated() -> None:
    for form in FORMS:
        (said,) = got([chunk(TEXT, reason="STOP", usageMetadata={"x_count": 1})], form)
        assert said["usageMetadata"]["x_count"] == 1 and said["usageMetadata"]["candidatesTokenCount"] > 0
        assert said["dragoman"] == {"usage": "estimated"}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", ["f", "g", None])
def test_a_call_in_pieces_is_the_one_that_the_client_requires(name: str | None, fails: bool) -> None:
    """`functionCallingConfig.mode` ANY, with the functions that may be called."""
    config = {"mode": "ANY", **({} if name is None else {"allowedFunctionNames": [name]})}
    declared = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
    body = {**BODY, "tools": declared, "toolConfig": {"functionCallingConfig": config}}
    request = DIALECT.decode(read_document(json.dumps(body).encode()), RequestHead("/v1beta/models/m:generateContent"))
    exchange = Exchange(ADAPTER, request.conversation, Policy(forced_tools="error" if fails else "notice"))
    exchange.on_response_head(200, {"content-type": "text/event-stream"})
    pieces: list[dict[str, Any]] = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}},
        {"functionCall": {}},
    ]
    chunks = [chunk(TEXT), *[chunk(piece) for piece in pieces], chunk(reason="STOP")]
    wire = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in chunks)
    if fails and name == "g":
        with pytest.raises(InvalidToolCall):
            exchange.feed(wire)
        return
    events = exchange.feed(wire)
    told = [event.rule for event in events if isinstance(event, Notice)]
    assert told == (["TOOL_CHOICE_IGNORED"] if name == "g" else [])
    passed = [event for event in events if isinstance(event, PassthroughFields) and "functionCall" in event.fields]
    assert [event.call for event in passed] == ["f", "", ""]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a"]
