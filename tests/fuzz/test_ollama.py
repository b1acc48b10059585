"""Law: any body of an Ollama request gives an answer of the contract or InvalidRequest, by every adapter.

Completions are held to the same law: their requests have no history, so that a few fields are all there is to them."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.ollama.client.dialect import OllamaDialect
from adapters.openai_completions.client.dialect import OpenAICompletionsDialect
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import Dialect, RequestHead
from gateway.testing.dialect_case import HEAD
from tests.adapters.ollama.client.test_conformance import CASE as OLLAMA
from tests.adapters.openai_completions.client.test_conformance import CASE as COMPLETIONS
from tests.fuzz.exchanges import ADAPTERS, POLICIES, WIRES, check_exchanges
from tests.fuzz.requests import check_growth, decoded, requests
from tests.fuzz.strategies import (
    FLOATS,
    FUNCTIONS,
    IDS,
    NAMES,
    ROLES,
    TEXTS,
    WHOLE,
    WILD,
    encoded,
    lists,
    objects,
    spoiled,
)

DIALECTS: Final[Mapping[str, Dialect]] = {
    "/api/chat": OllamaDialect(),
    "/api/generate": OllamaDialect(),
    "/v1/completions": OpenAICompletionsDialect(),
}

IMAGES: Final = lists(st.sampled_from(["iVBORw0KGgoAAAAN", "R0lGODlhAQAB", "!", "", "/9j/4AAQ"]) | WILD)
CALLS: Final = lists(
    objects(
        id=IDS | WILD,
        function=objects(name=NAMES | WILD, arguments=st.dictionaries(TEXTS, WILD, max_size=2) | WILD, index=WHOLE)
        | WILD,
    )
    | WILD
)
MESSAGES: Final = st.lists(
    objects(
        role=ROLES | TEXTS | WILD,
        content=TEXTS | WILD,
        thinking=TEXTS | WILD,
        images=IMAGES | WILD,
        tool_calls=CALLS | WILD,
        tool_name=NAMES | WILD,
        tool_call_id=IDS | WILD,
        mood=WILD,
    )
    | WILD,
    max_size=8,
).map(lambda made: [*made])
OPTIONS: Final = objects(
    **dict.fromkeys(("temperature", "top_p", "min_p", "repeat_penalty", "presence_penalty"), FLOATS | WHOLE),
    **dict.fromkeys(("top_k", "seed", "num_predict", "num_ctx"), WHOLE | FLOATS),
    stop=lists(TEXTS),
    x=WILD,
)
SHARED: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    "stream": st.booleans(),
    "format": st.sampled_from(["", "json", "x"]) | st.dictionaries(TEXTS, WILD, max_size=2),
    "think": st.booleans() | st.sampled_from(["low", "max", "x"]),
    "options": OPTIONS,
    "keep_alive": TEXTS | FLOATS | st.just(0),
    "truncate": st.booleans(),
    "shift": WILD,
    "logprobs": st.booleans(),
    "mood": WILD,
}
FIELDS: Final[Mapping[str, Mapping[str, st.SearchStrategy[Json]]]] = {
    "/api/chat": {**SHARED, "messages": MESSAGES, "tools": lists(objects(type=TEXTS, function=FUNCTIONS))},
    "/api/generate": {**SHARED, "prompt": TEXTS, "system": TEXTS, "images": IMAGES, "suffix": TEXTS, "context": WILD},
    "/v1/completions": {
        "prompt": TEXTS | lists(TEXTS),
        "stream": st.booleans(),
        "stop": TEXTS | lists(TEXTS),
        **dict.fromkeys(("temperature", "top_p", "presence_penalty"), FLOATS | WHOLE),
        **dict.fromkeys(("max_tokens", "n", "best_of", "seed", "logprobs"), WHOLE),
        **dict.fromkeys(("echo", "suffix", "logit_bias", "user", "tools", "response_format"), WILD),
    },
}


@st.composite
def sound(draw: st.DrawFn, path: str) -> bytes:
    """A request whose fields are sound; what is odd stands in its messages and texts."""
    if path == "/api/chat":
        return encoded({"model": "m", "messages": draw(MESSAGES)})
    return encoded({"model": "m", "prompt": draw(TEXTS)})


def bodies(path: str) -> st.SearchStrategy[bytes]:
    drawn = requests({"model": st.just("m")}, FIELDS[path])
    return sound(path) | drawn | drawn.flatmap(spoiled)


ASKED: Final = st.sampled_from(sorted(DIALECTS)).flatmap(lambda path: st.tuples(st.just(path), bodies(path)))


@given(asked=ASKED)
def test_any_body_is_a_conversation_or_an_invalid_request(asked: tuple[str, bytes]) -> None:
    path, body = asked
    request = decoded(DIALECTS[path], RequestHead(path), body)
    if request is not None:
        # What stands in it can be written again, whatever it is.
        assert msgspec.json.encode(request)
        assert decoded(DIALECTS[path], RequestHead(path), body) == request


@given(asked=ASKED, policy=POLICIES, stream=st.booleans(), wire=WIRES)
def test_any_request_gets_an_answer_or_an_error(
    asked: tuple[str, bytes], policy: Policy, stream: bool, wire: bytes
) -> None:
    path, body = asked
    dialect, case = DIALECTS[path], COMPLETIONS if path == "/v1/completions" else OLLAMA
    request = decoded(dialect, RequestHead(path), body)
    if request is None:
        return
    if not request.generates:
        assert case.read_whole(dialect.encode_answer(request, HEAD, ())).finish in ("load", "unload")
        return
    conversation = msgspec.structs.replace(request.conversation, stream=stream)
    request = msgspec.structs.replace(request, conversation=conversation)
    check_exchanges(ADAPTERS, dialect, case, request, policy, wire)


SIZES: Final[Mapping[str, Callable[[int], bytes]]] = {
    "calls without ids": lambda n: encoded(
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * n},
                *[{"role": "tool", "tool_name": "f", "content": "r"}] * n,
            ],
        }
    ),
    "messages that are none": lambda n: encoded({"model": "m", "messages": [0] * n}),
    "unknown fields": lambda n: encoded({"model": "m", **{f"field{at}": at for at in range(n)}}),
    "images": lambda n: encoded({"model": "m", "messages": [{"role": "user", "images": ["iVBORw0KGgoAAAAN"] * n}]}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", SIZES)
def test_the_work_of_decoding_grows_with_the_request(name: str) -> None:
    check_growth(lambda document: DIALECTS["/api/chat"].decode(document, RequestHead("/api/chat")), SIZES[name])
