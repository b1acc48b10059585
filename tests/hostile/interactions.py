"""Requests for interactions with an error in each field, step and content, as tables."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import FLAG, NUMBER, OBJECT, ODD, WHOLE
from tests.hostile.wire import Hostile

PATHS: Final = (b"/v1beta/interactions", b"/v1/interactions")
TEXT: Final[tuple[object, ...]] = (True, 1, [], {}, ["x"])
TEXTS: Final[tuple[object, ...]] = ("x", True, 1, {}, [1], [None])
OBJECTS: Final[tuple[object, ...]] = ("x", True, 1, [])
USER: Final[dict[str, object]] = {"type": "user_input", "content": [{"type": "text", "text": "Hello"}]}
FUNCTION: Final = {"type": "function", "name": "f"}

# Fields of `generation_config`, and for each what it can never be.
CONFIG: Final[Mapping[str, tuple[object, ...]]] = {
    **dict.fromkeys(("temperature", "top_p"), NUMBER),
    **dict.fromkeys(("seed", "max_output_tokens"), (*WHOLE, 2**31, -(2**64))),
    "stop_sequences": TEXTS,
    "thinking_level": ("extreme", "", *TEXT),
    "thinking_summaries": ("long", *TEXT),
    "tool_choice": (
        *("sometimes", True, 1, [], ["f"], {"function": "f"}, {"allowed_tools": 1}, {"allowed_tools": {"mode": "x"}}),
        *({"allowed_tools": {"tools": "f"}}, {"allowed_tools": {"tools": [1]}}, {"allowed_tools": {"tools": ["g"]}}),
    ),
    **dict.fromkeys(("image_config", "transcription_config", "video_config"), OBJECTS),
}
# Fields of the request.
FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  ", "models/"),
    "input": (None, True, 1, [], [None], [1], ["x"], [[]]),
    "system_instruction": TEXT,
    "stream": FLAG,
    "tools": (
        *("x", True, 1, {}, [1], ["x"], [None], [[]], [{}], [{"type": 1}], [{"type": []}], [{"type": "function"}]),
        *([{"type": "function", "name": 1}], [{**FUNCTION, "parameters": []}], [{**FUNCTION, "description": 1}]),
    ),
    "generation_config": (*OBJECT[:4], *[{name: value} for name, values in CONFIG.items() for value in values]),
    "response_format": (
        *("x", True, 1, [1], {"type": "image"}, {"type": "text", "mime_type": "text/html"}, [{"type": "audio"}]),
        *({"type": "text", "schema": 1}, {"type": "text", "mime_type": 1}, [{"type": "text"}] * 2),
    ),
    "response_mime_type": ("text/html", "image/png", *TEXT),
    "response_modalities": (["AUDIO"], ["image"], *TEXTS),
    "store": FLAG,
    "background": (True, *FLAG),
    "previous_interaction_id": ("int_1", "resp_1", "\r\nx-injected: 1", "x" * 100_000, *TEXT),
    "agent": ("deep-research", "", *TEXT),
    "environment": ("env", {}, *TEXT),
    "cached_content": ("cachedContents/1", *TEXT),
    "continuation_token": ("x", *TEXT),
    "service_tier": TEXT,
    "safety_settings": ("x", True, 1, {}, [1]),
    **dict.fromkeys(("labels", "webhook_config"), OBJECTS),
}
# Contents that no history may hold.
REFUSED_CONTENTS: Final[tuple[object, ...]] = (
    {"type": "image", "uri": "gs://bucket/a.png"},
    {"type": "document", "uri": "https://host/v1beta/files/a"},
    {"type": "image", "mime_type": "image/png", "data": "AAAA"},
    {"type": "audio", "mime_type": "audio/wav", "data": "AAAA"},
    {"type": "hologram"},
)
TYPES: Final = (
    *("user_input", "model_output", "thought", "function_call", "function_result", "google_search_call"),
    *("text", "image", "", "\u202e", "x" * 10_000),
)
PLACES: Final = (
    *("content", "summary", "signature", "id", "call_id", "name", "arguments", "result", "is_error", "role", "text"),
    *("data", "mime_type", "uri", "mood"),
)
# Of a stored interaction, with the statuses that they get.
STORED: Final = (
    (b"GET", b"/int_1", 404),
    (b"GET", b"/" + b"x" * 5000, 404),
    (b"GET", b"/%00", 404),
    (b"GET", b"/int_1?include_input=yes", 400),
    (b"GET", b"/int_1?stream=true", 400),
    (b"GET", b"/int_1?last_event_id=x", 400),
    (b"DELETE", b"/int_1", 404),
    (b"POST", b"/int_1/cancel", 404),
)


def body(**fields: object) -> bytes:
    """The body of a request with these fields instead of the good ones."""
    return json.dumps({"model": "m", "input": [USER], "tools": [FUNCTION], **fields}).encode()


def refused() -> Iterator[Hostile]:
    """Requests that cannot be served as they are."""
    for path in PATHS:
        for name, values in FIELDS.items():
            for number, value in enumerate(values):
                sent = request(body(**{name: value}), path=path)
                yield Hostile(f"{path!r} {name} {number} {str(value)[:80]}", sent, (400,))
        for method, behind, status in STORED:
            sent = request(b"{}", path=path + behind).replace(b"POST ", method + b" ", 1)
            yield Hostile(f"{method!r} {path!r}{behind[:40]!r}", sent, (status,))
    for content in REFUSED_CONTENTS:
        sent = request(body(input=[{"type": "user_input", "content": [content]}]), path=PATHS[0])
        yield Hostile(f"content {content}", sent, (400,))


def served() -> Iterator[Hostile]:
    """Steps with a fault, which is repaired or refused."""
    for kind in TYPES:
        for place in PLACES:
            for value in ODD:
                step = {"type": kind, "id": "c", "call_id": "c", "name": "f", place: value}
                sent = request(body(input=[USER, step, USER]), path=PATHS[0])
                yield Hostile(f"{kind[:20]!r} {place} {value}", sent, (200, 400))
    for value in ODD:
        for step in ({"type": value}, {**USER, "content": [value]}):
            yield Hostile(f"step {step}", request(body(input=[USER, step]), path=PATHS[0]), (200, 400))
