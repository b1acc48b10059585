"""Hypothesis strategies for hostile input: wild JSON, requests, damaged documents."""

import json
from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.testing.strategies import HOSTILE
from tests.fuzz.recorded import asked

NUMBERS: Final = (0, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**70), 1e308, -0.0, 5e-324)
WORDS: Final = (
    *("user", "assistant", "tool", "system", "developer", "function", "text", "image_url", "input_text", "custom"),
    *("role", "content", "tool_calls", "tool_call_id", "id", "type", "name", "arguments", "reasoning_content", "parts"),
    *("call_mcp_tool", "f", "g", "k0", "https://x/y.png", "data:image/png;base64,AAAA", "data:,", "{}", '{"n":1}', "["),
    *("", "\u202e", "a" * 300),
)

# Half characters too: a client that cuts strings sends them, and JSON can write them.
TEXTS: Final = (
    st.sampled_from(WORDS)
    | st.sampled_from(HOSTILE)
    | st.text(st.characters(exclude_categories=()), max_size=12)
    | st.text(max_size=12)
)
FLOATS: Final = st.floats(allow_nan=False, allow_infinity=False)
SCALARS: Final = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(NUMBERS) | FLOATS | TEXTS
WILD: Final[st.SearchStrategy[Json]] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


def objects(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    """Objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def lists(inner: st.SearchStrategy[Json] | st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[Json]:
    """Up to three of these."""
    return st.lists(inner, max_size=3).map(lambda made: [*made])


IDS: Final = st.sampled_from(["k0", "k1", "k1 ", "", "k/0", "\u00e9"]) | TEXTS
NAMES: Final = st.sampled_from(["f", "g", "call_mcp_tool", "a b", ""]) | TEXTS
PARTS: Final = st.lists(
    objects(
        type=st.sampled_from(["text", "image_url", "file", "input_audio", "refusal"]) | WILD,
        text=TEXTS | WILD,
        image_url=objects(url=TEXTS) | WILD,
        cache_control=WILD,
    )
    | WILD,
    max_size=3,
)
CONTENTS: Final = TEXTS | PARTS | WILD
CALLS: Final = st.lists(
    objects(
        id=IDS | WILD,
        type=st.sampled_from(["function", "custom"]) | WILD,
        index=st.integers(-1, 3),
        function=objects(name=NAMES, arguments=TEXTS | WILD) | WILD,
        extra_content=WILD,
    )
    | WILD,
    max_size=3,
)
ROLES: Final = st.sampled_from(["user", "assistant", "tool", "system", "developer", "function"])
MESSAGE: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    "content": CONTENTS,
    "tool_calls": CALLS | WILD,
    "tool_call_id": IDS | WILD,
    "name": NAMES | WILD,
    "reasoning_content": TEXTS | WILD,
    "function_call": objects(name=NAMES, arguments=TEXTS) | WILD,
    "refusal": WILD,
    "cache_control": WILD,
}
# Whatever else is odd in them, these are messages: objects with a role.
ODD_MESSAGES: Final[st.SearchStrategy[list[Json]]] = st.lists(
    st.fixed_dictionaries({"role": ROLES | TEXTS}, optional=MESSAGE), max_size=8
)
MESSAGES: Final[st.SearchStrategy[list[Json]]] = ODD_MESSAGES | st.lists(
    objects(role=ROLES | WILD, **MESSAGE) | WILD, max_size=8
)


WHOLE: Final = st.integers(-9, 9) | st.sampled_from([number for number in NUMBERS if isinstance(number, int)])
FUNCTIONS: Final = objects(name=NAMES, description=TEXTS, parameters=st.dictionaries(TEXTS, WILD, max_size=3))

TOOLS: Final = lists(objects(type=st.sampled_from(["function", "custom"]) | TEXTS, function=FUNCTIONS))
CHOSEN: Final = st.sampled_from(["auto", "none", "required"]) | objects(
    type=st.sampled_from(["function", "custom", "allowed_tools"]),
    function=objects(name=NAMES),
    custom=objects(name=NAMES),
    allowed_tools=objects(mode=st.sampled_from(["auto", "required"]), tools=TOOLS),
)
FIELDS: Final[Mapping[str, st.SearchStrategy[Json]]] = {
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), FLOATS | WHOLE),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "seed", "n", "top_logprobs"), WHOLE),
    **dict.fromkeys(("stream", "parallel_tool_calls", "logprobs"), st.booleans()),
    "stream_options": objects(include_usage=st.booleans()),
    "tools": TOOLS,
    "tool_choice": CHOSEN,
    "function_call": CHOSEN,
    "functions": lists(FUNCTIONS),
    "stop": TEXTS | st.lists(TEXTS, max_size=3),
    "logit_bias": st.dictionaries(TEXTS, FLOATS, max_size=2),
    "response_format": objects(type=st.sampled_from(["text", "json_object", "json_schema"]), json_schema=WILD),
}


@st.composite
def requests(draw: st.DrawFn) -> Json:
    """A chat request whose envelope is sound; what is odd stands in its messages and its tools."""
    document: dict[str, Json] = {
        "model": "m",
        "messages": draw(ODD_MESSAGES.filter(bool)),
        "stream": draw(st.booleans()),
    }
    if draw(st.booleans()):
        functions = draw(st.lists(FUNCTIONS, max_size=3))
        document["tools"] = [{"type": "function", "function": {"name": "f", **function}} for function in functions]
    if draw(st.booleans()):
        document["stop"] = list(draw(st.lists(TEXTS, max_size=2)))
        document["max_tokens"] = draw(st.integers())
    return document


@st.composite
def documents(draw: st.DrawFn) -> Json:
    """A request with any of the envelope's fields, sound as a rule. (`make contract` draws from the whole schema.)"""
    document = {"model": draw(TEXTS), "messages": draw(MESSAGES | WILD), **draw(objects(**FIELDS))}
    for name in draw(st.lists(st.sampled_from(sorted(document)) | TEXTS, max_size=2)):
        document[name] = draw(WILD)
    return document


def encoded(document: object) -> bytes:
    """As a client might write it: half characters and all."""
    return json.dumps(document).encode()


def bodies() -> st.SearchStrategy[bytes]:
    """Bodies of requests, from sound to senseless."""
    sound, schema = requests().map(encoded), documents().map(encoded)
    return sound | schema | sound.flatmap(spoiled) | schema.flatmap(spoiled) | asked() | WILD.map(encoded) | st.binary()


@st.composite
def spoiled(draw: st.DrawFn, document: bytes) -> bytes:
    """The document with a few bytes replaced, and perhaps cut short."""
    made = bytearray(document)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(made)))
        made[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(made[: draw(st.integers(0, len(made)))] if draw(st.booleans()) else made)
