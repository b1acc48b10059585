"""Short builders for what is encoded, and the request that came of it."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.capabilities.unsupported_content import dropped_fields, keep_to
from gateway.core.conversation import Conversation, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.system_reminders import keep_in_place

Encoding = Literal["flatten", "structured"]
ENCODINGS: tuple[Encoding, ...] = ("flatten", "structured")

EXECUTE = ToolSpec("Execute", "", {"type": "object"})
RED_DOT = "data:image/png;base64,iVBORw0KGgo="


def system(text: str) -> Turn:
    return Turn("system", (Text(text),))


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def assistant(text: str, *calls: ToolCall) -> Turn:
    return Turn("assistant", (Text(text), *calls) if text else calls)


def call(call_id: str, arguments: str = "{}", name: str = "Execute") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def result(call_id: str, text: str, is_error: bool = False) -> Turn:
    return Turn("tool", (ToolResult(call_id, (Text(text),), is_error),))


def conversation(*turns: Turn, tools: Sequence[ToolSpec] = (EXECUTE,)) -> Conversation:
    return Conversation(turns, tuple(tools), model="auto")


def sent(conversation: Conversation, policy: Policy | None = None, **options: object) -> pb.Request:
    """The request as the backend reads it."""
    return both(conversation, policy, **options)[0]


def both(
    conversation: Conversation, policy: Policy | None = None, **options: object
) -> tuple[pb.Request, tuple[Notice, ...]]:
    """The request that is made of what the adapter declares to take, and the notices of making it."""
    policy = policy or Policy()
    adapter = WarpAdapter(msgspec.convert(options, WarpOptions), 1 << 20)
    placed, in_place = keep_in_place(conversation) if adapter.capabilities.system == "first" else (conversation, [])
    kept, told = keep_to(placed, adapter.capabilities, policy)
    made = adapter.encode(kept, policy)
    unsent = dropped_fields(kept, adapter.capabilities)
    return pb.Request.FromString(made.body), (*in_place, *told, *made.notices, *unsent)


def query(request: pb.Request) -> str:
    """The text of the only question."""
    (given,) = request.input.user_inputs.inputs
    return given.user_query.query


def rules(notices: Sequence[Notice]) -> list[str]:
    return [notice.rule for notice in notices]
