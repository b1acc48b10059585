"""Two texts of one tool result stay two where a wire has parts, and are two lines wherever it has one text.

A line end is the join of `ToolResult.text`, the one home of it: chat templates of models join text parts with it, and a
text that ends with a word does not run into the next. OpenAI's reference of the tool message names no join, since its
models get the parts.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest

from gateway.core.policy import FlattenOptions, Policy
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.testing.dialect_case import texts_of
from tests.call_ids.clients import CLIENTS
from tests.call_ids.wires import WIRES, Wire
from tests.tiers import sample

FIRST, SECOND = "first mark", "second mark"
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)
USER: Final = {"role": "user", "content": "Begin."}


def chat(failed: bool) -> list[Any]:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    content = [{"type": "text", "text": text} for text in (FIRST, SECOND)]
    return [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": content},
    ]


def responses(failed: bool) -> list[Any]:
    output = [{"type": "input_text", "text": text} for text in (FIRST, SECOND)]
    return [
        USER,
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": output},
    ]


def anthropic(failed: bool) -> list[Any]:
    content = [{"type": "text", "text": text} for text in (FIRST, SECOND)]
    return [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": failed}],
        },
    ]


# The API of Ollama has one text in a message, and Gemini's one object in a response.
WRITERS: Final = {"chat": chat, "Responses": responses, "Messages": anthropic}
MORE: Final[Mapping[str, Wire]] = {
    "Warp, flat": Wire("warp"),
    "gRPC, Vertex": Wire("proto", {"preset": "vertex_grpc"}),
    "gRPC, xAI": Wire("proto", {"preset": "xai"}),
}
ADAPTERS: Final = {name: wire.load() for name, wire in {**WIRES, **MORE}.items()}
# The profiles of the wires, one that sends calls and results as plain turns, and one for each style of a text.
PROFILED: Final[list[tuple[str, str, Policy]]] = [
    *[
        (name, profile, msgspec.structs.replace(UNLIMITED, profile=PROFILES[profile]))
        for name, wire in {**WIRES, **MORE}.items()
        for profile in wire.profiles
    ],
    ("chat", "calls as text", msgspec.structs.replace(UNLIMITED, profile=Profile(tool_turns="text"))),
    *[
        (name, style, msgspec.structs.replace(UNLIMITED, flatten=FlattenOptions(style=style)))
        for name in ("text", "Warp, flat")
        for style in ("json", "fenced")
    ],
]


def found(body: Any) -> Iterator[str]:
    """Yield the texts of the body that hold one of the two."""
    for text in sorted(texts_of(body)):
        if FIRST in text or SECOND in text:
            yield text


@sample()
@pytest.mark.parametrize(("wire", "how", "policy"), PROFILED, ids=[f"{wire}-{how}" for wire, how, _ in PROFILED])
@pytest.mark.parametrize("client", WRITERS)
@pytest.mark.parametrize("failed", [False, True])
def test_two_texts_of_a_result_are_two_parts_or_two_lines(
    wire: str, how: str, policy: Policy, client: str, failed: bool
) -> None:
    conversation = CLIENTS[client].asks(WRITERS[client](failed)).conversation
    body = ADAPTERS[wire].describe(Exchange(ADAPTERS[wire], conversation, policy).request.body)
    texts = [*found(body)]
    lines = f"{FIRST}\n{SECOND}"
    joined = [text for text in texts if lines in text or json.dumps(lines)[1:-1] in text]
    assert len(joined) == len(texts) == 1 or texts == [FIRST, SECOND], texts
