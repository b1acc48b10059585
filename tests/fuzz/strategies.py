"""Hypothesis strategies for hostile input: wild JSON, requests made from the published schema, damaged documents."""

import json
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from gateway.dialects.openai_chat.schema import ChatCompletionRequest
from gateway.testing.strategies import HOSTILE
from gateway.types import Json

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

# Any: a JSON Schema is untyped.
(_SCHEMA,), _COMPONENTS = msgspec.json.schema_components([ChatCompletionRequest], ref_template="{name}")


def _of(schema: dict[str, Any]) -> st.SearchStrategy[Json]:
    """Values that this schema allows. Raises KeyError for a word of JSON Schema that our document does not use."""
    if "$ref" in schema:
        return _of(_COMPONENTS[schema["$ref"]])
    if "anyOf" in schema:
        return st.one_of([_of(option) for option in schema["anyOf"]])
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = set(schema.get("required", ()))
            fields = {name: _of(field) for name, field in schema["properties"].items()}
            return st.fixed_dictionaries(
                {name: fields[name] for name in fields if name in required},
                optional={name: fields[name] for name in fields if name not in required},
            )
        case "object":
            return st.dictionaries(TEXTS, _of(schema.get("additionalProperties") or {}), max_size=3)
        case "array":
            return st.lists(_of(schema.get("items", {})), max_size=3)
        case kind:
            return _SIMPLE[kind]


_SIMPLE: Final[dict[str | None, st.SearchStrategy[Json]]] = {
    "string": TEXTS,
    "boolean": st.booleans(),
    "integer": st.integers(-9, 9) | st.sampled_from([number for number in NUMBERS if isinstance(number, int)]),
    "number": st.floats(-2, 2) | st.integers(-9, 9),
    "null": st.none(),
    None: WILD,
}


def _objects(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    return st.fixed_dictionaries({}, optional=fields)


IDS: Final = st.sampled_from(["k0", "k1", "k1 ", "", "k/0", "\u00e9"]) | TEXTS
NAMES: Final = st.sampled_from(["f", "g", "call_mcp_tool", "a b", ""]) | TEXTS
PARTS: Final = st.lists(
    _objects(
        type=st.sampled_from(["text", "image_url", "file", "input_audio", "refusal"]) | WILD,
        text=TEXTS | WILD,
        image_url=_objects(url=TEXTS) | WILD,
        cache_control=WILD,
    )
    | WILD,
    max_size=3,
)
CONTENTS: Final = TEXTS | PARTS | WILD
CALLS: Final = st.lists(
    _objects(
        id=IDS | WILD,
        type=st.sampled_from(["function", "custom"]) | WILD,
        index=st.integers(-1, 3),
        function=_objects(name=NAMES, arguments=TEXTS | WILD) | WILD,
        extra_content=WILD,
    )
    | WILD,
    max_size=3,
)
MESSAGES: Final = st.lists(
    _objects(
        role=st.sampled_from(["user", "assistant", "tool", "system", "developer", "function"]) | WILD,
        content=CONTENTS,
        tool_calls=CALLS | WILD,
        tool_call_id=IDS | WILD,
        name=NAMES | WILD,
        reasoning_content=TEXTS | WILD,
        function_call=_objects(name=NAMES, arguments=TEXTS) | WILD,
        refusal=WILD,
        cache_control=WILD,
    )
    | WILD,
    max_size=8,
)


FUNCTIONS: Final = _objects(name=NAMES, description=TEXTS, parameters=st.dictionaries(TEXTS, WILD, max_size=3))


@st.composite
def requests(draw: st.DrawFn) -> Json:
    """A chat request whose envelope is sound; what is odd stands in its messages and its tools."""
    document: dict[str, Json] = {"model": "m", "messages": draw(MESSAGES.filter(bool)), "stream": draw(st.booleans())}
    if draw(st.booleans()):
        functions = draw(st.lists(FUNCTIONS, max_size=3))
        document["tools"] = [{"type": "function", "function": {"name": "f", **function}} for function in functions]
    if draw(st.booleans()):
        document["stop"] = list(draw(st.lists(TEXTS, max_size=2)))
        document["max_tokens"] = draw(st.integers())
    return document


@st.composite
def documents(draw: st.DrawFn) -> Json:
    """What the published schema allows, but for its messages and for up to two odd fields."""
    document = draw(_of(_SCHEMA))
    assert isinstance(document, dict)
    document["messages"] = draw(MESSAGES | WILD)
    for name in draw(st.lists(st.sampled_from(sorted(document)) | TEXTS, max_size=2)):
        document[name] = draw(WILD)
    return document


def encoded(document: object) -> bytes:
    """As a client might write it: half characters and all."""
    return json.dumps(document).encode()


def bodies() -> st.SearchStrategy[bytes]:
    """Bodies of requests, from sound to senseless."""
    sound, schema = requests().map(encoded), documents().map(encoded)
    return sound | schema | sound.flatmap(spoiled) | schema.flatmap(spoiled) | WILD.map(encoded) | st.binary()


@st.composite
def spoiled(draw: st.DrawFn, document: bytes) -> bytes:
    """The document with a few bytes replaced, and perhaps cut short."""
    made = bytearray(document)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(made)))
        made[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(made[: draw(st.integers(0, len(made)))] if draw(st.booleans()) else made)
