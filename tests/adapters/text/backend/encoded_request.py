"""A conversation and the options of an adapter in, what the backend would be sent out."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from adapters.text.backend import TextAdapter
from gateway.adapter import BackendRequest
from gateway.core.conversation import Conversation, Json, Sampling, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.settings import check_options
from gateway.testing.adapter_case import MAX_EVENT

WEATHER = ToolSpec(
    "get_weather",
    "Tells the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TIME = ToolSpec("get_time")
UNSAID = Sampling()
POLICY = Policy()
ASKED = Turn("user", (Text("Weather in Paris?"),), index=0)
CALLED = Turn("assistant", (Text("I look."), ToolCall("c1", "get_weather", '{"city": "Paris"}')), index=1)
ANSWERED = Turn("tool", (ToolResult("c1", (Text("sunny"),)),), index=2)


def adapter(**options: Json) -> TextAdapter:
    """Raises SettingsError for options that settings.json could not have either."""
    kind = TextAdapter.Options
    made: Any = check_options(options, kind, "backends.b")
    return TextAdapter(made, MAX_EVENT)


def conversation(*turns: Turn, sampling: Sampling = UNSAID, **fields: Any) -> Conversation:
    asked = Conversation(turns or (ASKED,), model="m", sampling=sampling, stream=True)
    return msgspec.structs.replace(asked, **fields)


def exchange(
    asked: Conversation | None = None, policy: Policy = POLICY, options: Mapping[str, Json] | None = None
) -> Exchange:
    return Exchange(adapter(**(options or {})), asked or conversation(), policy)


def request(asked: Conversation | None = None, policy: Policy = POLICY, **options: Json) -> BackendRequest:
    return adapter(**options).encode(asked or conversation(), policy)


def sent(asked: Conversation | None = None, policy: Policy = POLICY, **options: Json) -> dict[str, Any]:
    """The body of the request."""
    body = json.loads(request(asked, policy, **options).body)
    assert isinstance(body, dict)
    return body
