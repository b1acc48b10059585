"""Ollama requests and completions with an error in each field, message and call, as tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import FLAG, NUMBER, OBJECT, ODD, WHOLE
from tests.hostile.wire import Hostile

CHAT: Final = b"/api/chat"
GENERATE: Final = b"/api/generate"
COMPLETIONS: Final = b"/v1/completions"
USER: Final[dict[str, object]] = {"role": "user", "content": "Hello"}
TEXT: Final[tuple[object, ...]] = (True, 1, [], {}, ["x"])
TEXTS: Final[tuple[object, ...]] = ("x", True, 1, {}, [1], [None])
IMAGES: Final[tuple[object, ...]] = (*TEXTS, ["x"], ["https://x/y.png"], ["data:image/png;base64,AAAA"], [""])
COUNT: Final[tuple[object, ...]] = (*NUMBER, 1.5, 2**63, -(2**64))

# Fields of a request, and for each what it can never be.
_SHARED: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  "),
    "stream": FLAG,
    "format": (True, 1, [], "xml", "{}"),
    "think": (1, [], {}, "much", ""),
    "options": (
        *OBJECT[:4],
        *[{name: value} for name in ("temperature", "top_p", "min_p", "repeat_penalty") for value in NUMBER],
        *[{name: value} for name in ("top_k", "seed", "num_predict") for value in COUNT],
        *[{"stop": value} for value in TEXTS],
    ),
    "keep_alive": (True, [], {}),
    **dict.fromkeys(("truncate", "shift"), FLAG),
    "logprobs": (True, *FLAG),
    "top_logprobs": (2, *WHOLE),
    "_debug_render_only": (True, *FLAG),
}
FIELDS: Final[Mapping[bytes, Mapping[str, tuple[object, ...]]]] = {
    CHAT: {
        **_SHARED,
        "messages": (True, 1, "x", {}, USER, [None], [1], ["x"], [[]], [{"role": 1}], [{"content": "x"}]),
        "tools": (
            *("x", True, 1, {}, [1], ["x"], [None], [[]], [{}], [{"type": 1}], [{"function": {}}]),
            *([{"function": {"name": 1}}], [{"function": {"name": "f", "parameters": []}}]),
        ),
    },
    GENERATE: {
        **_SHARED,
        **dict.fromkeys(("prompt", "system"), TEXT),
        **dict.fromkeys(("suffix", "template"), ("x", *TEXT)),
        "images": IMAGES,
        "raw": (True, *FLAG),
        "context": ([1], *TEXTS),
        **dict.fromkeys(("width", "height", "steps"), (64, *WHOLE)),
    },
    COMPLETIONS: {
        "model": (None, True, 1, [], {}, "", "  "),
        "prompt": (None, True, 1, {}, [], ["a", "b"], [1, 2], [[1, 2]], [None]),
        "stream": FLAG,
        "stream_options": (*OBJECT, {"include_usage": "x"}),
        **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), NUMBER),
        **dict.fromkeys(("max_tokens", "seed"), WHOLE),
        "stop": (True, 1, {}, [1], [None]),
        "n": (*WHOLE, 0, 2, -1),
        "best_of": (*WHOLE, 2),
        "suffix": ("x", *TEXT),
        "echo": (True, *FLAG),
        "logprobs": (0, 5, *WHOLE),
        "logit_bias": ({"1": 1}, *OBJECT[:4]),
        "user": TEXT,
    },
}
GOOD: Final[Mapping[bytes, Mapping[str, object]]] = {
    CHAT: {"model": "m", "messages": [USER]},
    GENERATE: {"model": "m", "prompt": "Hello"},
    COMPLETIONS: {"model": "m", "prompt": "Hello"},
}
ROLES: Final = ("system", "user", "assistant", "tool", "narrator", "", "\u202e", "x" * 10_000)
PLACES: Final = ("content", "thinking", "tool_calls", "tool_name", "tool_call_id", "mood")
CALL_PLACES: Final = ("id", "function", "type")
FUNCTION_PLACES: Final = ("name", "arguments", "index")


def body(path: bytes, **fields: object) -> bytes:
    """The body of a request with these fields instead of the good ones."""
    return json.dumps({**GOOD[path], **fields}).encode()


def refused() -> Iterator[Hostile]:
    """Requests that cannot be served as they are."""
    for path, fields in FIELDS.items():
        for name, values in fields.items():
            for number, value in enumerate(values):
                title = f"{path!r} {name} {number} {str(value)[:60]}"
                yield Hostile(title, request(body(path, **{name: value}), path=path), (400,))
    for images in IMAGES:
        sent = request(body(CHAT, messages=[{**USER, "images": images}]), path=CHAT)
        yield Hostile(f"images of a message {images}", sent, (400,))


def served() -> Iterator[Hostile]:
    """Messages with a fault, which is repaired or refused."""
    for role in ROLES:
        for place in PLACES:
            for value in ODD:
                message = {"role": role, "content": "x", place: value}
                yield _served(f"{role[:20]!r} {place} {value}", [USER, message, USER])
    for place in (*CALL_PLACES, *FUNCTION_PLACES):
        for value in ODD:
            function = {"name": "f", "arguments": {}, **({place: value} if place in FUNCTION_PLACES else {})}
            call = {"function": function, **({place: value} if place in CALL_PLACES else {})}
            calling = {"role": "assistant", "content": "", "tool_calls": [call, call]}
            result = {"role": "tool", "tool_name": "f", "content": "r"}
            yield _served(f"call {place} {value}", [USER, calling, result, result])


def _served(title: str, messages: Sequence[Mapping[str, object]]) -> Hostile:
    return Hostile(title, request(body(CHAT, messages=messages), path=CHAT), (200, 400))
