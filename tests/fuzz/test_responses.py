"""Law: any body of a Responses request gives an answer of the contract or InvalidRequest, by every adapter."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.client.decode import decode_document
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.openai_responses.client.request_models import ResponsesRequest
from adapters.openai_responses.tools import tool_names
from adapters.openai_responses.turn_items import ItemEncoder
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from tests.adapters.openai_responses.client.test_conformance import CASE
from tests.fuzz.exchanges import ADAPTERS, POLICIES, STATES, WIRES, check_exchanges
from tests.fuzz.requests import check_growth, decoded, requests
from tests.fuzz.strategies import FLOATS, IDS, NAMES, TEXTS, WHOLE, WILD, encoded, lists, objects, spoiled

DIALECT: Final = OpenAIResponsesDialect()
HEAD: Final = RequestHead("/v1/responses")
TYPES: Final = st.sampled_from(
    [
        *("message", "reasoning", "item_reference", "compaction", "compaction_trigger", "additional_tools", "x_call"),
        "configuration_update",
        *(name for form in FORMS.values() for name in (form.call, form.output)),
    ]
)
PARTS: Final = st.lists(
    objects(
        type=st.sampled_from(["input_text", "output_text", "input_image", "input_file", "refusal"]) | WILD,
        text=TEXTS | WILD,
        refusal=TEXTS | WILD,
        image_url=TEXTS | WILD,
        annotations=WILD,
    )
    | WILD,
    max_size=3,
)
TOOLS: Final[st.SearchStrategy[Json]] = lists(
    objects(
        type=st.sampled_from([*FORMS, "namespace", "web_search"]) | WILD,
        name=NAMES | WILD,
        description=TEXTS,
        parameters=st.dictionaries(TEXTS, WILD, max_size=2),
        format=objects(type=TEXTS, definition=TEXTS),
        execution=st.sampled_from(["client", "server"]),
        tools=lists(objects(type=st.sampled_from(["function", "custom"]), name=NAMES)),
    ),
)
ITEMS: Final = st.lists(
    objects(
        type=TYPES | WILD,
        role=st.sampled_from(["user", "assistant", "system", "developer"]) | WILD,
        id=IDS | WILD,
        call_id=IDS | WILD,
        name=NAMES | WILD,
        namespace=NAMES | WILD,
        status=st.sampled_from(["completed", "failed"]) | WILD,
        content=TEXTS | PARTS | WILD,
        output=TEXTS | PARTS | WILD,
        tools=TOOLS | WILD,
        summary=PARTS | WILD,
        **dict.fromkeys(("arguments", "input", "action", "operation"), TEXTS | WILD),
        encrypted_content=TEXTS | STATES | WILD,
        reasoning=objects(effort=TEXTS | WILD) | WILD,
        text=objects(format=objects(type=st.sampled_from(["text", "json_schema"]) | WILD, schema=WILD)) | WILD,
    )
    | WILD,
    max_size=8,
)
CHOICES: Final = st.sampled_from(["auto", "none", "required"]) | objects(
    type=st.sampled_from([*FORMS, "allowed_tools", "web_search"]),
    name=NAMES | WILD,
    mode=st.sampled_from(["auto", "required"]) | WILD,
    tools=TOOLS | WILD,
)
FIELDS: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), FLOATS | WHOLE),
    **dict.fromkeys(("max_output_tokens", "top_logprobs", "max_tool_calls"), WHOLE),
    **dict.fromkeys(("stream", "parallel_tool_calls", "store", "background"), st.booleans()),
    **dict.fromkeys(("instructions", "truncation", "service_tier", "user", "safety_identifier"), TEXTS),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention", "previous_response_id", "conversation"), TEXTS),
    **dict.fromkeys(("metadata", "client_metadata", "prompt"), st.dictionaries(TEXTS, WILD, max_size=2)),
    "context_management": st.lists(WILD, max_size=2),
    "moderation": WILD,
    "prompt_cache_options": objects(mode=TEXTS | WILD, ttl=TEXTS | WILD) | WILD,
    "include": st.lists(TEXTS, max_size=3),
    "text": objects(format=objects(type=st.sampled_from(["text", "json_schema"]), schema=WILD), verbosity=TEXTS),
    "reasoning": objects(effort=TEXTS, summary=TEXTS, mode=WILD),
    "stream_options": objects(include_obfuscation=st.booleans()),
    "tools": TOOLS,
    "tool_choice": CHOICES,
}


@st.composite
def sound(draw: st.DrawFn) -> bytes:
    """A request whose fields are sound; what is odd stands in its items."""
    return encoded({"model": "m", "input": draw(ITEMS), "tools": draw(TOOLS)})


REQUESTS: Final = requests({"model": st.just("m"), "input": ITEMS | TEXTS}, FIELDS)
BODIES: Final = sound() | REQUESTS | REQUESTS.flatmap(spoiled)


@given(body=BODIES)
def test_any_body_is_a_conversation_or_an_invalid_request(body: bytes) -> None:
    request = decoded(DIALECT, HEAD, body)
    if request is not None:
        assert msgspec.json.encode(request)
        encoder = ItemEncoder(tool_names(request.conversation))
        for turn in request.conversation.turns:
            encoder.encode(turn.changed(*turn.blocks))


@given(body=BODIES, policy=POLICIES, wire=WIRES)
def test_any_request_gets_an_answer_or_an_error(body: bytes, policy: Policy, wire: bytes) -> None:
    request = decoded(DIALECT, HEAD, body)
    if request is not None:
        check_exchanges(ADAPTERS, DIALECT, CASE, request, policy, wire)


def test_every_field_of_the_request_is_drawn() -> None:
    assert {"model", "input", *FIELDS} == set(ResponsesRequest.__struct_fields__)


def _body(*items: object, **fields: object) -> bytes:
    return encoded({"model": "m", "input": [{"role": "user", "content": "x"}, *items], **fields})


SIZED: Final[Mapping[str, Callable[[int], bytes]]] = {
    "items": lambda n: _body(*[{"role": "user", "content": "x"}] * n),
    "items that are no objects": lambda n: _body(*[1] * n),
    "items of unknown types": lambda n: _body(*[{"type": f"x{i}"} for i in range(n)]),
    "messages of the assistant": lambda n: _body(*[{"role": "assistant", "content": "x"}] * n),
    "calls": lambda n: _body(
        *[{"type": "custom_tool_call", "call_id": f"c{i}", "name": "p", "input": "x"} for i in range(n)]
    ),
    "parts that are no objects": lambda n: _body({"role": "user", "content": [1] * n}),
    "tools": lambda n: _body(tools=[{"type": "custom", "name": f"p{i}"} for i in range(n)]),
    "tools of one name": lambda n: _body(tools=[{"type": "custom", "name": "p"}, {"name": "p"}] * n),
    "tools in namespaces": lambda n: _body(
        tools=[{"type": "namespace", "name": "s", "tools": [{"name": f"f{i}"} for i in range(n)]}]
    ),
    "allowed namespaces": lambda n: _body(
        tools=[{"type": "namespace", "name": f"s{i}", "tools": [{"name": "f"}]} for i in range(n)],
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "namespace", "name": f"s{i}"} for i in range(n)],
        },
    ),
    "unknown fields": lambda n: _body(**{f"x{i}": 1 for i in range(n)}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", SIZED)
def test_the_work_of_decoding_grows_with_the_request(name: str) -> None:
    check_growth(decode_document, SIZED[name])
