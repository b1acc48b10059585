"""Checks that a dialect reads every field that its clients write. Each takes a DialectCase and raises AssertionError.

A field that is lost while a request is read cannot be missed by any later check: no capability is asked for it, and no
notice tells the client that it had no effect.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.conversation import (
    Conversation,
    Image,
    JsonObject,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.provider_state import with_provider_state
from gateway.testing.declaration_checks import FIELDS, VALUES
from gateway.testing.dialect_case import DialectCase, DialectCheck

_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
_OTHER_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {"at": {"type": "number"}}, "required": ["at"]}
_LOOK: Final = ToolSpec("look", "Looks.", _SCHEMA)
_POINT: Final = ToolSpec("point", "Points.", _SCHEMA)
_SYSTEM: Final = Turn("system", (Text("Be brief."),))
_ASKED: Final = Turn("user", (Text("What is this?"),))
_CALLED: Final = Turn("assistant", (ToolCall("k", "look", '{"at": "sky"}'),))
_BROUGHT: Final = Turn("tool", (ToolResult("k", (Text("A cloud."),)),))
_FAILED: Final = Turn("tool", (ToolResult("k", (Text("A cloud."),), is_error=True),))
_SHOWN: Final = Image("data:image/png;base64,iVBORw0KGgo=")
_STATE: Final = "c3RhdGVtYXJrZXI="
# The fields in which a provider may have its state.
_STATE_FIELDS: Final = ("signature", "thought_signature", "encrypted_content")


class Example(msgspec.Struct, frozen=True):
    """What a client may say: the `changes` of a plain request that say it, and what must be `read` of both alike.

    (Any: fields of a Conversation.)
    """

    changes: Mapping[str, Any]
    read: Callable[[Conversation], object]


def _sampling(name: str, *params: str) -> Example:
    """A parameter that is a value of the sampling, and stands under one of these names among the params."""

    def read(conversation: Conversation) -> object:
        value = getattr(conversation.sampling, name)
        written = [conversation.params[param] for param in params or (name,) if param in conversation.params]
        return value, written in ([value], [list(value)] if isinstance(value, tuple) else None)

    changes: Mapping[str, Any] = {**FIELDS[name], "params": {(params or (name,))[0]: VALUES[name]}}
    return Example(changes, read)


def _param(name: str) -> Example:
    return Example({"params": {name: VALUES[name]}}, lambda conversation: conversation.params.get(name))


def _schema(conversation: Conversation) -> object:
    form = conversation.params.get("response_format")
    match form:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return schema
        case _:
            return None


def _of_tools(conversation: Conversation) -> object:
    return [(tool.name, tool.description, dict(tool.parameters)) for tool in conversation.tools]


def _roles_and_texts(conversation: Conversation) -> object:
    return [(turn.role, turn.text) for turn in conversation.turns]


def _with_tool(**changes: Any) -> Mapping[str, Any]:
    return {"tools": (msgspec.structs.replace(_LOOK, **changes), _POINT)}


# By the names that `DialectCase.lacks` may contain.
EXAMPLES: Final[Mapping[str, Example]] = {
    "model": Example({"model": "another"}, lambda conversation: conversation.model),
    "max_tokens": _sampling("max_tokens", "max_tokens", "max_completion_tokens"),
    "temperature": _sampling("temperature"),
    "top_p": _sampling("top_p"),
    "stop": _sampling("stop"),
    "seed": _sampling("seed"),
    **{
        name: _param(name)
        for name in (
            "top_k",
            "presence_penalty",
            "frequency_penalty",
            "reasoning_effort",
            "service_tier",
            "user",
        )
    },
    "response_format": Example({"params": {"response_format": VALUES["response_format"]}}, _schema),
    "tool_choice": Example({"tool_choice": "required"}, lambda conversation: conversation.tool_choice),
    "tool_choice none": Example({"tool_choice": "none"}, lambda conversation: conversation.tool_choice),
    "tool_choice named": Example({"tool_choice": NamedTool("look")}, lambda conversation: conversation.tool_choice),
    "parallel_tool_calls": Example(
        {"parallel_tool_calls": False}, lambda conversation: conversation.parallel_tool_calls
    ),
    "tools": Example(_with_tool(name="watch"), _of_tools),
    "tool description": Example(_with_tool(description="Watches."), _of_tools),
    "tool schema": Example(_with_tool(parameters=_OTHER_SCHEMA), _of_tools),
    "strict": Example(
        _with_tool(strict=True), lambda conversation: [tool.strict is True for tool in conversation.tools]
    ),
    "image": Example(
        {"turns": (_ASKED.changed(*_ASKED.blocks, _SHOWN),)},
        lambda conversation: [
            block.url for turn in conversation.turns for block in turn.blocks if type(block) is Image
        ],
    ),
    "system": Example({"turns": (_SYSTEM, _ASKED)}, _roles_and_texts),
    "developer": Example({"turns": (Turn("developer", (Text("Be brief."),)), _ASKED)}, _roles_and_texts),
    "later system": Example({"turns": (_SYSTEM, _ASKED, Turn("system", (Text("Later."),)), _ASKED)}, _roles_and_texts),
    "is_error": Example(
        {"turns": (_ASKED, _CALLED, _FAILED)},
        lambda conversation: [result.is_error for turn in conversation.turns for result in turn.results],
    ),
    "reasoning": Example(
        {"turns": (_ASKED, Turn("assistant", (Reasoning("Hm."), Text("Sky."))), _ASKED)},
        lambda conversation: [
            block.text for turn in conversation.turns for block in turn.blocks if type(block) is Reasoning
        ],
    ),
}
# Those whose plain request is a round of a call.
_ROUND: Final[Mapping[str, tuple[Turn, ...]]] = {"is_error": (_ASKED, _CALLED, _BROUGHT)}


def fields_are_read(case: DialectCase) -> None:
    """Each example that the API does not lack is written by the client, and read as it was written."""
    unknown = case.lacks - EXAMPLES.keys()
    assert not unknown, f"the kit has no example of {', '.join(sorted(unknown))}"
    for name, example in EXAMPLES.items():
        if name in case.lacks:
            continue
        plain = _plain(case, _ROUND.get(name, (_ASKED,)))
        asked = _stated(case, msgspec.structs.replace(plain, **example.changes))
        assert _written(case, asked) != _written(case, plain), (
            f"the client writes no {name}: let it, or name it in `lacks`"
        )
        read = case.decode(case.write(asked), asked).conversation
        assert example.read(read) == example.read(asked), f"{name} is written and not read"


def state_is_read(case: DialectCase) -> None:
    """State that a client returns with its reasoning or with a call is read, of each of them alone."""
    if not case.provider:
        return
    extra = with_provider_state(case.provider, dict.fromkeys(_STATE_FIELDS, _STATE))
    call = msgspec.structs.replace(_CALLED.calls[0], extra=extra)
    found = [_state_of(case, Reasoning("Hm.", extra=extra), _CALLED.calls[0]), _state_of(case, Reasoning("Hm."), call)]
    assert True in found, f"the client returns no state of {case.provider}"
    assert False not in found, f"state of {case.provider} is written and not read"


def _state_of(case: DialectCase, *blocks: Reasoning | ToolCall) -> bool | None:
    """Returns whether the state of these blocks is read; None: the client does not return it there."""
    asked = msgspec.structs.replace(_plain(case, (_ASKED, _CALLED.changed(*blocks), _BROUGHT)))
    if _STATE not in _written(case, asked):
        return None
    turns = case.decode(case.write(asked), asked).conversation.turns
    extras = [turn.extra for turn in turns]
    extras += [block.extra for turn in turns for block in turn.blocks if isinstance(block, Reasoning | ToolCall)]
    return _STATE in str(extras)


def _plain(case: DialectCase, turns: tuple[Turn, ...]) -> Conversation:
    tools = () if "tools" in case.lacks else (_LOOK, _POINT)
    return Conversation(turns, tools, model="model", sampling=Sampling())


def _stated(case: DialectCase, conversation: Conversation) -> Conversation:
    """Returns a request whose reasoning has the state without which the provider of the API does not take it back."""
    if not case.provider:
        return conversation
    extra = with_provider_state(case.provider, dict.fromkeys(_STATE_FIELDS, _STATE))
    turns = [
        turn.changed(
            *[
                msgspec.structs.replace(block, extra=extra) if type(block) is Reasoning else block
                for block in turn.blocks
            ]
        )
        for turn in conversation.turns
    ]
    return msgspec.structs.replace(conversation, turns=tuple(turns))


def _written(case: DialectCase, conversation: Conversation) -> str:
    """The whole request: the body, and the path where it says something."""
    return f"{case.target(conversation)} {case.write(conversation).decode()}"


CHECKS: Final[tuple[DialectCheck, ...]] = (fields_are_read, state_is_read)
