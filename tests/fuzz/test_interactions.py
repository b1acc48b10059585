"""Law: any body of an interaction's request gives an answer of the contract or InvalidRequest, by every adapter."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.gemini_interactions.client.contents import KINDS
from adapters.gemini_interactions.client.decode import decode_document
from adapters.gemini_interactions.client.dialect import GeminiInteractionsDialect
from adapters.gemini_interactions.client.own_steps import CALL, MODEL, RESULT, THOUGHT, USER
from adapters.gemini_interactions.client.request_models import InteractionRequest
from adapters.gemini_interactions.table import InteractionConfig
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from tests.adapters.gemini_interactions.client.test_conformance import CASE
from tests.fuzz.exchanges import ADAPTERS, POLICIES, STATES, WIRES, check_exchanges
from tests.fuzz.requests import check_growth, decoded, requests
from tests.fuzz.strategies import FLOATS, IDS, NAMES, TEXTS, WHOLE, WILD, encoded, lists, objects, spoiled

DIALECT: Final = GeminiInteractionsDialect()
HEAD: Final = RequestHead("/v1beta/interactions")
OBJECTS: Final = st.dictionaries(TEXTS, WILD, max_size=2)
CONTENTS: Final = objects(
    type=st.sampled_from([*KINDS, "x"]) | WILD,
    text=TEXTS | WILD,
    data=st.sampled_from(["eA==", "!"]) | WILD,
    mime_type=st.sampled_from(["image/png", "application/pdf", "x"]) | WILD,
    uri=st.sampled_from(["https://h/a.png", "gs://a", ""]) | TEXTS | WILD,
    name=TEXTS | WILD,
    resolution=WILD,
)
STEPS: Final = lists(
    objects(
        type=st.sampled_from([USER, MODEL, THOUGHT, CALL, RESULT, "google_search_call"]) | WILD,
        role=st.sampled_from(["user", "model"]) | WILD,
        content=TEXTS | CONTENTS | lists(CONTENTS | WILD) | WILD,
        summary=lists(CONTENTS | WILD) | WILD,
        signature=TEXTS | STATES | WILD,
        id=IDS | WILD,
        call_id=IDS | WILD,
        name=NAMES | WILD,
        arguments=OBJECTS | TEXTS | WILD,
        result=TEXTS | OBJECTS | lists(CONTENTS | WILD) | WILD,
        is_error=st.booleans() | WILD,
        mood=WILD,
    )
    | CONTENTS
    | WILD
)
TOOLS: Final[st.SearchStrategy[Json]] = lists(
    objects(
        type=st.sampled_from(["function", "function", "google_search", "mcp_server"]) | WILD,
        name=NAMES | WILD,
        description=TEXTS | WILD,
        parameters=OBJECTS | WILD,
        defer_loading=st.booleans(),
    )
)
MODES: Final[st.SearchStrategy[Json]] = st.sampled_from(["auto", "any", "none", "validated", "ANY"]) | TEXTS
CONFIG: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    **dict.fromkeys(("temperature", "top_p"), FLOATS | WHOLE),
    **dict.fromkeys(("seed", "max_output_tokens"), WHOLE | FLOATS),
    "stop_sequences": st.lists(TEXTS, max_size=3),
    "thinking_level": st.sampled_from(["low", "XHIGH"]) | TEXTS,
    "thinking_summaries": st.sampled_from(["auto", "none"]) | TEXTS,
    "tool_choice": MODES
    | objects(allowed_tools=objects(mode=MODES | WILD, tools=lists(NAMES) | WILD) | WILD, mood=WILD),
    **dict.fromkeys(("image_config", "transcription_config", "video_config"), OBJECTS),
    "speech_config": WILD,
}
FORMATS: Final = objects(
    type=st.sampled_from(["text", "image", "object"]) | WILD,
    mime_type=st.sampled_from(["application/json", "text/plain"]) | WILD,
    schema=OBJECTS | WILD,
)
FIELDS: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    "generation_config": objects(**CONFIG),
    "tools": TOOLS,
    "response_format": FORMATS | st.lists(FORMATS, max_size=2),
    "response_mime_type": st.sampled_from(["application/json", "text/plain"]) | TEXTS,
    "response_modalities": st.lists(st.sampled_from(["text", "audio"]) | TEXTS, max_size=2),
    **dict.fromkeys(("stream", "store", "background"), st.booleans()),
    **dict.fromkeys(("system_instruction", "service_tier", "cached_content", "continuation_token"), TEXTS),
    "previous_interaction_id": TEXTS,
    **dict.fromkeys(("agent", "agent_config", "environment"), WILD),
    "safety_settings": st.lists(OBJECTS, max_size=2),
    **dict.fromkeys(("labels", "webhook_config"), OBJECTS),
}


@st.composite
def sound(draw: st.DrawFn) -> bytes:
    """A request whose fields are sound; what is odd stands in its steps."""
    return encoded({"model": "m", "input": draw(STEPS), "tools": draw(TOOLS)})


REQUESTS: Final = requests({"model": st.just("m"), "input": STEPS | TEXTS | CONTENTS}, FIELDS)
BODIES: Final = sound() | REQUESTS | REQUESTS.flatmap(spoiled)


@given(body=BODIES)
def test_any_body_is_a_conversation_or_an_invalid_request(body: bytes) -> None:
    request = decoded(DIALECT, HEAD, body)
    if request is not None:
        assert msgspec.json.encode(request)
        for turn in request.conversation.turns:
            assert msgspec.json.encode(DIALECT.encode_turn(turn))


@given(body=BODIES, policy=POLICIES, wire=WIRES)
def test_any_request_gets_an_answer_or_an_error(body: bytes, policy: Policy, wire: bytes) -> None:
    request = decoded(DIALECT, HEAD, body)
    if request is not None:
        check_exchanges(ADAPTERS, DIALECT, CASE, request, policy, wire)


def test_every_field_of_the_request_is_drawn() -> None:
    assert {"model", "input", *FIELDS} == set(InteractionRequest.__struct_fields__)
    assert CONFIG.keys() == set(InteractionConfig.__struct_fields__)


def _body(*steps: object, **fields: object) -> bytes:
    return encoded({"model": "m", "input": [{"type": USER, "content": "x"}, *steps], **fields})


SIZED: Final[Mapping[str, Callable[[int], bytes]]] = {
    "steps": lambda n: _body(*[{"type": USER, "content": "x"}] * n),
    "steps that are no objects": lambda n: _body(*[1] * n),
    "steps of unknown types": lambda n: _body(*[{"type": f"x{i}"} for i in range(n)]),
    "steps with unknown fields": lambda n: _body(*[{"type": USER, "content": "x", f"x{i}": 1} for i in range(n)]),
    "contents": lambda n: _body(*[{"type": "text", "text": "x"}] * n),
    "contents that are no objects": lambda n: _body({"type": USER, "content": [1] * n}),
    "calls": lambda n: _body(*[{"type": CALL, "id": f"c{i}", "name": "f", "arguments": {}} for i in range(n)]),
    "calls without ids": lambda n: _body(
        *[{"type": CALL, "name": "f"} for _ in range(n)], *[{"type": RESULT, "name": "f", "result": "x"}] * n
    ),
    "thoughts": lambda n: _body(*[{"type": THOUGHT, "summary": [{"text": "x"}]}] * n),
    "pieces of a summary": lambda n: _body({"type": THOUGHT, "summary": [{"type": "text", "text": "x"}] * n}),
    "tools": lambda n: _body(tools=[{"type": "function", "name": f"f{i}"} for i in range(n)]),
    "allowed tools": lambda n: _body(
        tools=[{"type": "function", "name": f"f{i}"} for i in range(n)],
        generation_config={"tool_choice": {"allowed_tools": {"tools": [f"f{i}" for i in range(n)]}}},
    ),
    "unknown fields": lambda n: _body(**{f"x{i}": 1 for i in range(n)}),
    "formats": lambda n: _body(response_format=[{"type": "image"}] * n),
}


@pytest.mark.full
@pytest.mark.parametrize("name", SIZED)
def test_the_work_of_decoding_grows_with_the_request(name: str) -> None:
    check_growth(decode_document, SIZED[name])
