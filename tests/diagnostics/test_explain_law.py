"""Explain shows the request that is sent, for every conversation, wire and encoding."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.text.backend.presets import PRESETS
from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json, Text, ToolChoice, ToolSpec, Turn
from gateway.core.policy import Policy
from gateway.diagnostics.explain import explain
from gateway.diagnostics.explain_text import explain_text
from gateway.diagnostics.explanation import Explanation
from gateway.exchange import Exchange
from gateway.history.transcript.styles import STYLES
from gateway.providers.registry import PROFILES
from gateway.tool_calls.parsers.formats import FORMATS
from tests.adapters.text.backend.encoded_request import adapter as text_adapter
from tests.history.strategies import broken_turns, valid_turns
from tests.tiers import sample

MAX: int = 1 << 20
ANY_STYLE = st.sampled_from(sorted(STYLES))
CHOICES: st.SearchStrategy[ToolChoice] = st.sampled_from(["auto", "none", "required"])
SPOKEN = Turn("assistant", (Text('<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>'),), index=90)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Any history, now and then with a call in plain words, with tools or without."""
    turns = draw(broken_turns() | valid_turns())
    tools = draw(st.sampled_from([(), (ToolSpec("read", "Reads."),)]))
    said = draw(st.sampled_from([(), (SPOKEN,)]))
    return Conversation((*turns, *said), tools, draw(CHOICES), model="m", stream=True)


def policy(style: str, profile: str = "openai") -> Policy:
    made: Policy = msgspec.convert({"flatten": {"style": style}, "images": "placeholder"}, Policy)
    return msgspec.structs.replace(made, profile=PROFILES[profile])


def leaves(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key in value:
                yield from leaves(value[key])
        case list():
            for item in value:
                yield from leaves(item)
        case _:
            pass


def explained(asked: Conversation, how: Policy, adapter: Adapter) -> tuple[Explanation, bytes]:
    """Returns the explanation of the request, and the body that is sent for it. Skips an example that is refused."""
    told = explain(asked, how, adapter)
    assume(told.error is None)
    return told, Exchange(adapter, asked, how).request.body


@sample()
@pytest.mark.parametrize("wire", PRESETS)
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15)
@given(conversations(), ANY_STYLE)
def test_law_a_text_wire(wire: str, name: str, asked: Conversation, style: str) -> None:
    adapter = text_adapter(wire=wire, tool_format=name, force_tools="prompt")
    told, body = explained(asked, policy(style), adapter)
    sent: Any = json.loads(body)
    texts = [str(message["content"]) for message in told.wire]
    found = [*leaves(sent)]
    # Every text that is shown stands in the body, and the body holds no other text of the conversation.
    assert [leaf for leaf in found if leaf in texts] == texts and told.text == texts[-1]
    assert [leaf for leaf in found if leaf not in texts and re.search(r"<\d+>", leaf)] == []
    if wire != "ollama_chat":
        assert told.text.rpartition("\n\n")[2].startswith("Assistant:") and len(texts) == 1
    assert told.implicit_added is (policy(style).flatten.continuation in told.text)
    page = explain_text(told, []).split("\n\n  ", 1)[1]
    assert len(texts) > 1 or page.count("\n  ") == told.text.count("\n")


@pytest.mark.parametrize("encoding", ["flatten", "structured"])
@given(conversations(), ANY_STYLE)
def test_law_a_protobuf_wire(encoding: Any, asked: Conversation, style: str) -> None:
    adapter = WarpAdapter(WarpOptions(encoding=encoding), MAX)
    told, body = explained(asked, policy(style), adapter)
    request = pb.Request.FromString(body)
    if encoding == "flatten":
        (query,) = [one.user_query.query for one in request.input.user_inputs.inputs]
        assert told.wire == ({"role": "user", "content": query},) and told.text == query
    else:
        assert told.encoded is not None and told.wire == (told.encoded.decoded,)
        assert adapter.describe(body) == told.encoded.decoded and told.text == told.system_text == ""
        assert not told.implicit_added


@pytest.mark.parametrize("profile", PROFILES)
@given(conversations())
def test_law_a_native_wire(profile: str, asked: Conversation) -> None:
    adapter = OpenAIChatAdapter(OpenAIChatOptions(), MAX)
    told, body = explained(asked, policy("labels", profile), adapter)
    sent = json.loads(body)["messages"]
    assert sent == [dict(message) for message in told.wire] or sent == []
    assert (told.text, told.implicit_added) == ("", False) and len(told.indexes.wire) == len(told.wire)
