"""Tests the laws of the Warp encoder for any conversation, valid or not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.encoder import encode_request
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import (
    Block,
    Conversation,
    File,
    Image,
    Json,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import GatewayError
from gateway.core.policy import Policy
from tests.adapters.warp.backend.sent import ENCODINGS, RED_DOT, Encoding

TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(["User: x", "\ud800", "", "\x00", "a\u2028b"])
EXTRAS = st.sampled_from(
    [{}, {"extra_content": {"warp": {"conversation_id": "c", "task_id": 1}}}, {"extra_content": []}, {"x": None}]
)
IMAGES = st.builds(Image, st.sampled_from([RED_DOT, "data:", "https://h/a", "data:image/png,%zz\ud800"]))
FILES = st.builds(File, TEXTS, st.just({}))
PARTS = st.builds(Text, TEXTS) | IMAGES | FILES
ARGUMENTS = TEXTS | st.sampled_from(['{"a":1}', '{"n":1e308}', '{"n":9007199254740993}', "[" * 999, '{"a":' * 99])
BLOCKS: st.SearchStrategy[Block] = (
    st.builds(Text, TEXTS)
    | st.builds(Reasoning, TEXTS)
    | IMAGES
    | FILES
    | st.builds(ToolCall, TEXTS, TEXTS, ARGUMENTS, EXTRAS)
    | st.builds(ToolResult, TEXTS, st.lists(PARTS, max_size=2).map(tuple), st.booleans())
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["system", "developer", "user", "assistant", "tool"])
TURNS = st.builds(
    Turn,
    ROLES,
    st.lists(BLOCKS, max_size=3).map(tuple),
    st.none() | TEXTS,
    st.none() | st.integers(0, 9),
    EXTRAS,
)
SCHEMAS: st.SearchStrategy[dict[str, Json]] = st.dictionaries(
    TEXTS, st.none() | st.integers() | st.floats() | TEXTS | st.just([{}]), max_size=2
)
TOOLS = st.builds(ToolSpec, TEXTS, TEXTS, SCHEMAS)
CONVERSATIONS = st.builds(
    Conversation,
    st.lists(TURNS, max_size=5).map(tuple),
    st.lists(TOOLS, max_size=2).map(tuple),
    st.sampled_from(["auto", "none"]),
    st.booleans(),
    TEXTS,
)
POLICIES = st.sampled_from([Policy(), Policy(images="placeholder"), Policy(disable_warp_tools=True)])


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(conversation=CONVERSATIONS, policy=POLICIES)
def test_a_conversation_is_encoded_always_alike_or_refused_with_a_reason(
    encoding: Encoding, conversation: Conversation, policy: Policy
) -> None:
    options = WarpOptions(encoding=encoding)
    before = repr(conversation)
    try:
        made = encode_request(conversation, policy, options)
    except GatewayError as error:
        assert 400 <= error.status < 500
        return
    assert encode_request(conversation, policy, options) == made
    assert repr(conversation) == before
    request = pb.Request.FromString(made.body)
    assert request.input.WhichOneof("type")
    assert pb.TOOL_CALL_MCP_TOOL in request.settings.supported_tools


SPOKEN = st.lists(st.sampled_from(["user", "assistant"]), min_size=1, max_size=6)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(roles=SPOKEN)
def test_every_text_is_told_once_and_in_order(encoding: Encoding, roles: list[Role]) -> None:
    turns = tuple(Turn(role, (Text(f"<{n}>"),)) for n, role in enumerate(roles))
    request = pb.Request.FromString(encode_request(Conversation(turns), Policy(), WarpOptions(encoding=encoding)).body)
    text = str(request)
    places = [text.index(f"<{n}>") for n in range(len(roles))]
    assert places == sorted(places)
    assert all(text.count(f"<{n}>") == 1 for n in range(len(roles)))


def test_a_longer_history_costs_in_proportion() -> None:
    """Counted in bytes that are written, not in seconds: a test about time fails on a busy machine."""

    def size(count: int) -> int:
        turn = Turn("user", (Text("x" * 1000),))
        asked = Conversation((turn,) * count)
        return len(encode_request(asked, Policy(), msgspec.convert({"encoding": "structured"}, WarpOptions)).body)

    assert size(400) < 2.1 * size(200)
