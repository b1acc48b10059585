"""Responses requests with an error in each field, item and tool, as tables."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import FLAG, NUMBER, OBJECT, ODD, WHOLE
from tests.hostile.wire import Hostile

PATHS: Final = (b"/v1/responses", b"/responses", b"/v1/responses/input_tokens")
# The tokens of a history are counted whatever its faults are.
_COUNTED: Final = frozenset({"input"})
# What a backend of the same API may take; no backend is asked for the count.
_OF_BACKENDS: Final = frozenset({("tool_choice", "sometimes"), ("tool_choice", str({"type": "web_search"}))})
USER: Final[dict[str, object]] = {"role": "user", "content": "Hello"}
TEXT: Final[tuple[object, ...]] = (True, 1, [], {}, ["x"])

# Fields of the request, and for each what it can never be.
FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  "),
    "input": (None, True, 1, {}, [], USER, [None], [1], ["x"], [[]]),
    "instructions": TEXT,
    "stream": FLAG,
    "stream_options": (*OBJECT, {"include_obfuscation": "x"}),
    "tools": (
        *("x", True, 1, {}, [1], ["x"], [None], [[]]),
        *([{}], [{"type": 1}], [{"type": "function", "name": 1}], [{"type": "function", "function": {"name": "f"}}]),
        *([{"type": "custom"}], [{"type": "custom", "name": "f", "format": 1}], [{"name": "f", "parameters": []}]),
        *([{"type": "namespace", "name": "n", "tools": [1]}], [{"type": "tool_search", "execution": 1}]),
    ),
    "tool_choice": (
        *(True, 1, [], "sometimes", {}, {"type": 1}, {"type": "function"}, {"type": "web_search"}),
        *({"type": "allowed_tools"}, {"type": "allowed_tools", "mode": "auto", "tools": [1]}),
    ),
    "parallel_tool_calls": FLAG,
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), NUMBER),
    **dict.fromkeys(("max_output_tokens", "top_logprobs", "max_tool_calls"), WHOLE),
    "text": (
        *OBJECT,
        {"format": 1},
        {"format": {}},
        {"format": {"type": "json_schema", "schema": []}},
        {"verbosity": 1},
    ),
    "reasoning": (*OBJECT, {"effort": 1}, {"summary": []}),
    "include": ("x", True, 1, {}, [1], [None]),
    "truncation": TEXT,
    "context_management": ("x", True, 1, {}),
    "store": FLAG,
    "background": (True, *FLAG),
    "previous_response_id": ("resp_1", "", *TEXT),
    "conversation": ("conv_1", True, 1, [], {"id": "conv_1"}),
    "prompt": (*OBJECT, {"id": "x"}),
    **dict.fromkeys(("service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user"), TEXT),
    **dict.fromkeys(("metadata", "client_metadata"), OBJECT),
}
REFUSED_ITEMS: Final[tuple[object, ...]] = (
    {"type": "item_reference", "id": "msg_1"},
    {"id": "a\r\nx-injected: 1"},
    {"type": "compaction", "encrypted_content": 5},
    {"type": "compaction", "encrypted_content": "DragomanSealAAAA"},
    {"type": "additional_tools", "tools": 1},
    {"type": "configuration_update", "reasoning": 1},
    {"type": "configuration_update", "reasoning": {"effort": []}},
    {"type": "configuration_update", "text": {"format": {"type": None}}},
    {"type": "tool_search_output", "tools": [{"type": "custom"}]},
    {"role": 1, "content": "x"},
)
TYPES: Final = (
    *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call"),
    *("apply_patch_call_output", "tool_search_call", "web_search_call", "", "\u202e", "x" * 10_000),
)
PLACES: Final = (
    *("content", "call_id", "name", "namespace", "arguments", "input", "action", "operation", "output", "summary"),
    *("encrypted_content", "id", "status"),
)


def body(**fields: object) -> bytes:
    """The body of a Responses request with these fields instead of the good ones."""
    return json.dumps({"model": "m", "input": [USER], **fields}).encode()


def refused() -> Iterator[Hostile]:
    """Requests that cannot be served as they are."""
    for name, values in FIELDS.items():
        for value in values:
            said = f"{name} {str(value)[:60]}"
            for path in PATHS[:2] if name in _COUNTED else PATHS:
                status = 200 if path == PATHS[2] and (name, str(value)) in _OF_BACKENDS else 400
                yield Hostile(f"{path!r} {said} {type(value)}", request(body(**{name: value}), path=path), (status,))
    for item in REFUSED_ITEMS:
        yield Hostile(f"item {item}", request(body(input=[USER, item]), path=PATHS[0]), (400,))


def served() -> Iterator[Hostile]:
    """Items with a fault, which is repaired or refused."""
    for kind in TYPES:
        for place in PLACES:
            for value in ODD:
                item = {"type": kind, "role": "assistant", "call_id": "c", "name": "f", place: value}
                sent = request(body(input=[USER, item, USER]), path=PATHS[0])
                yield Hostile(f"{kind[:20]!r} {place} {value}", sent, (200, 400))
