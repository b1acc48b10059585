"""Messages requests with an error in each field, message and block, as tables."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from tests.hostile.attacked_gateway import request
from tests.hostile.bodies import FLAG, NUMBER, OBJECT, ODD, WHOLE
from tests.hostile.wire import Hostile

MESSAGES: Final = b"/v1/messages"
COUNT_TOKENS: Final = b"/v1/messages/count_tokens"
# The tokens of a history are counted whatever its faults are, and without a limit for the answer.
_COUNTED: Final = frozenset({"max_tokens"})
# Words that only the API itself may know: its own backends get them, and they change no count.
_WORDS: Final = (
    ("tool_choice", {"type": "sometimes"}),
    ("output_config", {"effort": "x"}),
    ("output_format", {"type": "text"}),
)
USER: Final[dict[str, object]] = {"role": "user", "content": "Hello"}

# Fields of the request, and for each what it can never be.
FIELDS: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  "),
    "max_tokens": (None, *WHOLE),
    "messages": (None, True, 1, {}, [], "x"),
    "stream": FLAG,
    "stop_sequences": ("x", True, 1, {}, [1], [None], [[]]),
    **dict.fromkeys(("temperature", "top_p"), NUMBER),
    "top_k": WHOLE,
    "tools": (
        *("x", True, 1, {}, [1], ["x"], [None], [[]]),
        *([{}], [{"name": 1}], [{"name": "f", "input_schema": []}], [{"name": "f", "description": 1}]),
        *([{"type": 1, "name": "f"}], [{"type": "custom"}], [{"name": "f", "strict": 1}]),
    ),
    "tool_choice": (
        *(True, 1, [], "auto", {}, {"type": 1}, {"type": "sometimes"}, {"type": "tool"}, {"type": "tool", "name": 1}),
        {"type": "auto", "disable_parallel_tool_use": 1},
    ),
    "thinking": (*OBJECT, {}, {"type": 1}, {"type": "enabled", "budget_tokens": "x"}),
    "output_config": (*OBJECT, {"effort": "x"}, {"effort": 1}, {"format": 1}, {"format": {"type": "json_schema"}}),
    "output_format": (*OBJECT, {}, {"type": "text"}, {"type": "json_schema", "schema": []}),
    "metadata": (*OBJECT, {"user_id": 1}),
    "thread": (*OBJECT, {}, {"type": 1}, {"type": "continue"}),
    "mcp_servers": ("x", True, 1, {}),
}
# Messages of the system that are no directives, and what stands in the place of one.
DIRECTIVES: Final[tuple[dict[str, object], ...]] = (
    {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "nothing"}}]},
    {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {}}}]},
    {"role": "system", "content": [{"type": "tool_addition", "tool": []}]},
    {"role": "system", "content": [{"type": "tool_removal"}]},
    {"role": "system", "content": [], "output_config": {"effort": {}}},
    {"role": "system", "content": "x", "output_config": []},
    {"role": "system", "content": "x", "clear_at": ["never"]},
    {"role": "user", "content": "x", "clear_at": "never"},
    {"role": "user", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}]},
)
# The blocks of each role.
BLOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    "user": (
        *("text", "image", "document", "search_result", "tool_result", "container_upload"),
        "compaction",
        "",
        "x" * 10_000,
    ),
    "assistant": (
        *("tool_use", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result"),
        "compaction",
        "\u202e",
    ),
}
PLACES: Final = (
    *("text", "source", "content", "id", "name", "input", "tool_use_id", "is_error", "thinking", "signature", "data"),
    *("title", "citations", "cache_control", "encrypted_content"),
)


def body(**fields: object) -> bytes:
    """The body of a Messages request with these fields instead of the good ones."""
    return json.dumps({"model": "m", "max_tokens": 100, "messages": [USER], **fields}).encode()


def refused() -> Iterator[Hostile]:
    """Requests that cannot be served as they are."""
    for name, values in FIELDS.items():
        for value in values:
            said = f"{name} {str(value)[:60]} {type(value)}"
            counted = name in _COUNTED or (name, value) in _WORDS
            for path in (MESSAGES,) if counted else (MESSAGES, COUNT_TOKENS):
                yield Hostile(f"{path!r} {said}", request(body(**{name: value}), path=path), (400,))

    for directive in DIRECTIVES:
        for path in (MESSAGES, COUNT_TOKENS):
            yield Hostile(f"{path!r} {directive}", request(body(messages=[USER, directive]), path=path), (400,))


def served() -> Iterator[Hostile]:
    """Messages and blocks with a fault, which is repaired or refused."""
    for value in ODD:
        faults: dict[str, dict[str, object]] = {
            "a message": {"messages": [USER, value]},
            "a role": {"messages": [USER, {"role": value, "content": "x"}, USER]},
            "content": {"messages": [USER, {"role": "user", "content": value}]},
            "system": {"system": value},
        }
        for place, fault in faults.items():
            yield Hostile(f"{place} {value}", request(body(**fault), path=MESSAGES), (200, 400))
    for role, kinds in BLOCKS.items():
        for kind, place, value in product(kinds, PLACES, ODD):
            block = {"type": kind, "id": "c", "name": "f", "input": {}, "tool_use_id": "c", place: value}
            sent = request(body(messages=[USER, {"role": role, "content": [block]}, USER]), path=MESSAGES)
            yield Hostile(f"{role} {kind[:20]!r} {place} {value}", sent, (200, 400))
