"""Gemini requests with an error in each field, content and part, as tables."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import FLAG, NUMBER, OBJECT, ODD
from tests.hostile.wire import Hostile

WHOLE: Final = b"/v1beta/models/m:generateContent"
STREAMED: Final = b"/v1beta/models/m:streamGenerateContent?alt=sse"
ARRAY: Final = b"/v1/models/m:streamGenerateContent"
COUNTED: Final = b"/v1beta/models/m:countTokens"
PATHS: Final = (WHOLE, STREAMED, ARRAY, COUNTED)
USER: Final[dict[str, object]] = {"role": "user", "parts": [{"text": "Hello"}]}
TEXT: Final[tuple[object, ...]] = (True, 1, [], {}, ["x"])
TEXTS: Final[tuple[object, ...]] = ("x", True, 1, {}, [1], [None])
COUNT: Final[tuple[object, ...]] = ("x", True, [], {}, 1.5, 2**31, -(2**64))
OBJECTS: Final[tuple[object, ...]] = ("x", True, 1, [])
DECLARED: Final = {"functionDeclarations": [{"name": "f"}]}

# Fields of `generationConfig`, and for each what it can never be.
CONFIG: Final[Mapping[str, tuple[object, ...]]] = {
    **dict.fromkeys(("temperature", "topP", "presencePenalty", "frequencyPenalty"), NUMBER),
    **dict.fromkeys(("topK", "maxOutputTokens", "seed", "logprobs"), COUNT),
    "candidateCount": COUNT,
    **dict.fromkeys(("stopSequences", "responseModalities"), TEXTS),
    "responseMimeType": TEXT,
    **dict.fromkeys(("responseSchema", "responseJsonSchema"), (*OBJECTS, {"type": "OBJECT"})),
    **dict.fromkeys(("responseLogprobs", "audioTimestamp"), (1, "x", [], {})),
    "thinkingConfig": (*OBJECTS, {"includeThoughts": "x"}, {"thinkingBudget": "x"}, {"thinkingLevel": 1}),
    **dict.fromkeys(("speechConfig", "imageConfig", "routingConfig"), OBJECTS),
}
# Fields of the request.
FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "contents": (None, True, 1, "x", []),
    "systemInstruction": (True, 1, [], {"parts": [1]}, {"parts": [{"inlineData": {}}]}),
    "tools": (
        *("x", True, 1, {}, [1], ["x"], [None], [[]], [{"functionDeclarations": {}}]),
        *([{"functionDeclarations": [{}]}], [{"functionDeclarations": [{"name": 1}]}]),
        *([{"functionDeclarations": [{"name": "f", "parameters": []}]}],),
        *([{"functionDeclarations": [{"name": "f", "parametersJsonSchema": "x"}]}],),
    ),
    "toolConfig": (
        *OBJECTS,
        {"functionCallingConfig": 1},
        {"functionCallingConfig": {"allowedFunctionNames": ["g"]}},
        {"functionCallingConfig": {"allowedFunctionNames": "f"}},
    ),
    "generationConfig": (
        *OBJECT[:4],
        *[{name: value} for name, values in CONFIG.items() for value in values],
    ),
    "safetySettings": ("x", True, 1, {}, [1]),
    "cachedContent": ("cachedContents/1", *TEXT),
    "continuationToken": ("x", *TEXT),
    "serviceTier": TEXT,
    "store": FLAG,
    "labels": OBJECTS,
}
# What no answer can show; the tokens of a request are counted whatever it asks for.
UNSHOWN: Final[tuple[Mapping[str, object], ...]] = (
    {"generationConfig": {"candidateCount": 2}},
    {"generationConfig": {"candidateCount": -1}},
    {"generationConfig": {"responseModalities": ["AUDIO"]}},
    {"generationConfig": {"responseMimeType": "text/html"}},
    {"generationConfig": {"thinkingConfig": {"thinkingLevel": "MUCH"}}},
    {"toolConfig": {"functionCallingConfig": {"mode": "SOMETIMES"}}},
)
# Parts that no history may hold.
REFUSED_PARTS: Final[tuple[object, ...]] = (
    {"functionResponse": {"name": "f", "response": {}, "willContinue": True}},
    {"fileData": {"fileUri": "https://x/y.png"}},
    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
    {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
    {"toolCall": {}},
)
ROLES: Final = ("user", "model", "function", "narrator", "", "\u202e", "x" * 10_000)
PART_FIELDS: Final = (
    *("text", "inlineData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "thought"),
    *("thoughtSignature", "mood"),
)
CALL_FIELDS: Final = ("id", "name", "args", "mood", "partialArgs", "willContinue")
RESPONSE_FIELDS: Final = ("id", "name", "response", "parts", "scheduling")
ALT: Final = (b"proto", b"", b"SSE", b"sse,json", b"%00", b"\xff")
QUERIES: Final = (b"?key=x", b"?key=", b"?key=%00", b"?key=" + b"x" * 5000, b"?Key=x", b"?alt=sse&key=x&key=y")


def body(**fields: object) -> bytes:
    """The body of a request with these fields instead of the good ones."""
    return json.dumps({"contents": [USER], "tools": [DECLARED], **fields}).encode()


def refused() -> Iterator[Hostile]:
    """Requests that cannot be served as they are."""
    for path in PATHS:
        for name, values in FIELDS.items():
            for number, value in enumerate(values):
                sent = request(body(**{name: value}), path=path)
                yield Hostile(f"{path!r} {name} {number} {str(value)[:80]}", sent, (400,))
    for path in PATHS[:3]:
        for fields in UNSHOWN:
            yield Hostile(f"{path!r} {fields}", request(body(**fields), path=path), (400,))
        for part in REFUSED_PARTS:
            sent = request(body(contents=[{"role": "user", "parts": [part]}]), path=path)
            yield Hostile(f"{path!r} {part}", sent, (400,))
    for alt in ALT:
        path = ARRAY + b"?alt=" + alt
        yield Hostile(f"alt {alt!r}", request(body(), path=path), (400,))
    for query in QUERIES:
        sent = request(body(), path=WHOLE + query).replace(b"authorization: ", b"x-nothing: ")
        yield Hostile(f"query {query[:40]!r}", sent, (401,))


def served() -> Iterator[Hostile]:
    """Contents with a fault, which is repaired or refused."""
    for value in ODD:
        yield _served(f"content {value}", value)
        yield _served(f"parts {value}", {"role": "user", "parts": value})
        yield _served(f"part {value}", {"role": "user", "parts": [value]})
    for role in ROLES:
        for name in PART_FIELDS:
            for value in ODD:
                content = {"role": role, "parts": [{"text": "x", name: value}, {name: value}]}
                yield _served(f"{role[:20]!r} {name} {value}", content)
    for name in {*CALL_FIELDS, *RESPONSE_FIELDS}:
        for value in ODD:
            more = {name: value}
            call = {"functionCall": {"name": "f", "args": {}, **(more if name in CALL_FIELDS else {})}}
            result = {"name": "f", "response": {"output": "r"}, **(more if name in RESPONSE_FIELDS else {})}
            calling = {"role": "model", "parts": [call, call]}
            answering = {"role": "user", "parts": [{"functionResponse": result}] * 2}
            yield _served(f"call {name} {value}", calling, answering)


def _served(title: str, *contents: object) -> Hostile:
    return Hostile(title, request(body(contents=[USER, *contents, USER]), path=WHOLE), (200, 400))
