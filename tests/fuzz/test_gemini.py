"""Law: any body of a Gemini request gives an answer of the contract or InvalidRequest, by every adapter."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from tests.adapters.gemini.client.test_conformance import ARRAY, CASE
from tests.fuzz.exchanges import ADAPTERS, LIMIT, POLICIES, STATES, WIRES, check_exchanges
from tests.fuzz.requests import check_growth, decoded, requests
from tests.fuzz.strategies import FLOATS, IDS, NAMES, TEXTS, WHOLE, WILD, encoded, lists, objects, spoiled

DIALECT: Final = GeminiDialect()
# The last one receives every request as the client wrote it.
BACKENDS: Final = {**ADAPTERS, "gemini": GeminiAdapter(GeminiOptions(), LIMIT)}
HEADS: Final = {
    "whole": RequestHead("/v1beta/models/m:generateContent"),
    "events": RequestHead("/v1beta/models/m:streamGenerateContent", b"alt=sse"),
    "array": RequestHead("/v1/models/m:streamGenerateContent"),
    "count": RequestHead("/v1beta/models/m:countTokens"),
}

OBJECTS: Final = st.dictionaries(TEXTS, WILD, max_size=2)
CALLS: Final = objects(id=IDS | WILD, name=NAMES | WILD, args=OBJECTS | WILD, willContinue=st.booleans())
INLINE: Final = objects(
    mimeType=st.sampled_from(["image/png", "audio/wav", "x"]) | WILD, data=st.sampled_from(["eA==", "!"]) | WILD
)
RESPONSES: Final = objects(
    id=IDS | WILD,
    name=NAMES | WILD,
    response=OBJECTS | objects(output=TEXTS | WILD, error=TEXTS) | WILD,
    parts=lists(objects(inlineData=INLINE, text=TEXTS) | WILD) | WILD,
    scheduling=TEXTS,
)
PARTS: Final = lists(
    objects(
        text=TEXTS | WILD,
        thought=st.booleans() | WILD,
        thoughtSignature=TEXTS | STATES | WILD,
        thought_signature=TEXTS,
        mood=WILD,
    )
    | objects(functionCall=CALLS | WILD, thoughtSignature=STATES)
    | objects(functionResponse=RESPONSES | WILD)
    | objects(inlineData=INLINE | WILD, fileData=WILD)
    | objects(executableCode=objects(code=TEXTS, language=TEXTS) | WILD, codeExecutionResult=WILD)
    | WILD
)
CONTENTS: Final = lists(
    objects(role=st.sampled_from(["user", "model", "function", ""]) | WILD, parts=PARTS | WILD, mood=WILD) | WILD
)
CONFIG: Final = objects(
    **dict.fromkeys(("temperature", "topP", "presencePenalty", "frequency_penalty"), FLOATS | WHOLE),
    **dict.fromkeys(("topK", "maxOutputTokens", "seed", "candidateCount"), WHOLE | FLOATS),
    stopSequences=lists(TEXTS),
    responseMimeType=st.sampled_from(["application/json", "text/plain", "x"]),
    **dict.fromkeys(("responseSchema", "response_json_schema"), OBJECTS),
    responseModalities=lists(st.sampled_from(["TEXT", "IMAGE"])),
    thinkingConfig=objects(includeThoughts=st.booleans(), thinkingBudget=WHOLE, thinkingLevel=TEXTS),
    x=WILD,
)
FIELDS: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    "systemInstruction": objects(parts=PARTS) | TEXTS,
    "tools": lists(objects(functionDeclarations=lists(objects(name=NAMES, parameters=OBJECTS)), googleSearch=WILD)),
    "toolConfig": objects(
        functionCallingConfig=objects(
            mode=st.sampled_from(["AUTO", "ANY", "NONE", "x"]), allowedFunctionNames=lists(NAMES)
        )
    ),
    "generationConfig": CONFIG,
    "safetySettings": lists(OBJECTS),
    "cachedContent": TEXTS,
    "store": st.booleans(),
    "mood": WILD,
}


# What is odd stands in the contents alone.
SOUND: Final = CONTENTS.map(lambda contents: encoded({"contents": contents}))
REQUESTS: Final = requests({"contents": CONTENTS}, FIELDS)
BODIES: Final = SOUND | REQUESTS | REQUESTS.flatmap(spoiled)
# A request for a number of tokens may hold a whole request.
WRAPPED: Final = BODIES.map(lambda body: b'{"generateContentRequest":%s}' % body)


@given(form=st.sampled_from(sorted(HEADS)), body=BODIES | WRAPPED)
def test_any_body_is_a_conversation_or_an_invalid_request(form: str, body: bytes) -> None:
    request = decoded(DIALECT, HEADS[form], body)
    if request is not None:
        # What stands in it can be written again, whatever it is.
        assert msgspec.json.encode(request)
        assert decoded(DIALECT, HEADS[form], body) == request


@given(form=st.sampled_from(["whole", "events", "array"]), body=BODIES, policy=POLICIES, wire=WIRES)
def test_any_request_gets_an_answer_or_an_error(form: str, body: bytes, policy: Policy, wire: bytes) -> None:
    request = decoded(DIALECT, HEADS[form], body)
    if request is not None:
        check_exchanges(BACKENDS, DIALECT, CASE if form == "events" else ARRAY, request, policy, wire)


def calls(count: int) -> Json:
    return [{"functionCall": {"name": "f", "args": {}}}] * count


def results(count: int) -> Json:
    return [{"functionResponse": {"name": "f", "response": {}, "scheduling": "SILENT"}}] * count


SIZES: Final[Mapping[str, Callable[[int], Json]]] = {
    "calls without ids": lambda n: [{"role": "model", "parts": calls(n)}, {"role": "user", "parts": results(n)}],
    "contents that are none": lambda n: [0] * n,
    "parts that are none": lambda n: [{"role": "user", "parts": [0] * n}],
    "images": lambda n: [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}] * n}],
}


@pytest.mark.full
@pytest.mark.parametrize("name", SIZES)
def test_the_work_of_decoding_grows_with_the_request(name: str) -> None:
    check_growth(
        lambda document: DIALECT.decode(document, HEADS["whole"]), lambda n: encoded({"contents": SIZES[name](n)})
    )
