"""Checks that what an adapter declares in its capabilities has an effect on what it sends.

A field that is declared and not sent is worse than one that is not declared: no notice tells the client that it had no
effect.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.conversation import (
    SYSTEM_ROLES,
    Conversation,
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
from gateway.core.errors import InvalidRequest
from gateway.core.provider_state import STATE_FIELD, with_provider_state
from gateway.testing.adapter_case import Case

_SCHEMA: Final[JsonObject] = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
_LOOK: Final = ToolSpec("look", "Looks.", _SCHEMA)
_POINT: Final = ToolSpec("point", "Points.", _SCHEMA)
_ASKED: Final = Turn("user", (Text("What is this?"),), index=0)
_CALLED: Final = Turn("assistant", (ToolCall("k", "look", '{"at": "sky"}'),), index=1)
_BROUGHT: Final = Turn("tool", (ToolResult("k", (Text("A cloud."),)),), index=2)

# Examples of fields by their chat completions names.
VALUES: Final[JsonObject] = {
    "max_completion_tokens": 77,
    "max_tokens": 77,
    "parallel_tool_calls": False,
    "seed": 7,
    "stop": ["stopmarker"],
    "temperature": 0.5,
    "top_p": 0.5,
    "frequency_penalty": 0.5,
    "logit_bias": {"7": 1},
    "logprobs": True,
    "metadata": {"key": "metadatamarker"},
    "n": 2,
    "presence_penalty": 0.5,
    "prompt_cache_key": "keymarker",
    "reasoning_effort": "low",
    "response_format": {"type": "json_schema", "json_schema": {"name": "shape", "schema": dict(_SCHEMA)}},
    "safety_identifier": "identifiermarker",
    "service_tier": "default",
    "store": True,
    "top_k": 7,
    "top_logprobs": 2,
    "user": "usermarker",
    "verbosity": "low",
}
# Those of them that a conversation also has as values, and how it has them.
FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {  # Any: fields of a Conversation
    "max_completion_tokens": {"sampling": Sampling(max_tokens=77)},
    "max_tokens": {"sampling": Sampling(max_tokens=77)},
    "model": {"model": "another"},
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "seed": {"sampling": Sampling(seed=7)},
    "stop": {"sampling": Sampling(stop=("stopmarker",))},
    "temperature": {"sampling": Sampling(temperature=0.5)},
    "top_p": {"sampling": Sampling(top_p=0.5)},
}
_CHOICES: Final = ("none", "required", NamedTool("look"))
# Two states in every field that a provider may have for it, where the case gives no examples of its own.
_NAMES: Final = ("signature", "thought_signature", "encrypted_content", "opaque", "id", "message_id", "request_id")
_STATES: Final[tuple[JsonObject, ...]] = tuple(
    [dict.fromkeys(_NAMES, state) for state in ("c3RhdGVtYXJrZXIx", "c3RhdGVtYXJrZXIy")]
)


def declared_fields_are_sent(case: Case) -> None:
    """Each field of `supported_params` changes the request: `model` the body or the path."""
    tools = (_LOOK, _POINT) if case.shared.capabilities.tools else ()
    plain = Conversation((_ASKED,), tools, model="model")
    for name in sorted(case.shared.capabilities.supported_params):
        if name == "tool_choice":
            for choice in _CHOICES if tools else ():
                _changes_the_request(case, plain, {"tool_choice": choice}, f"tool_choice {choice}")
        elif name != "parallel_tool_calls" or tools:
            params = {"params": {name: VALUES[name]}} if name in VALUES else {}
            changes = {**FIELDS.get(name, {}), **params}
            _changes_the_request(case, plain, changes, name)


def tools_are_sent_whole(case: Case) -> None:
    """The name, the description and the schema of a tool change the request of an adapter that takes tools."""
    if not case.shared.capabilities.tools:
        return
    plain = Conversation((_ASKED,), (_LOOK,), model="model")
    others: Mapping[str, ToolSpec] = {
        "name": msgspec.structs.replace(_LOOK, name="watch"),
        "description": msgspec.structs.replace(_LOOK, description="Watches."),
        "schema": msgspec.structs.replace(
            _LOOK, parameters={"type": "object", "properties": {"at": {"type": "number"}}, "required": ["at"]}
        ),
    }
    for what, tool in others.items():
        _changes_the_request(case, plain, {"tools": (tool,)}, f"the {what} of a tool")


def later_system_text_is_sent(case: Case) -> None:
    """A system or developer message behind other messages is sent, rejected, or reported as dropped."""
    for role in SYSTEM_ROLES:
        later = Turn(role, (Text("latermarker"),), index=2)
        turns = (Turn("system", (Text("Be brief."),), index=0), msgspec.structs.replace(_ASKED, index=1), later)
        for history in (turns, (*turns, Turn("user", (Text("And this?"),), index=3))):
            try:
                exchange = case.sends(Conversation(history, model="model"))
            except InvalidRequest:
                continue
            dropped = any(notice.index == 2 and notice.action == "dropped" for notice in exchange.notices)
            assert dropped or b"latermarker" in exchange.request.body, f"a later {role} message is not sent"


def failed_results_are_told(case: Case) -> None:
    """That a result reports a failure changes the request of an adapter that declares `is_error`."""
    if "is_error" not in case.shared.capabilities.carries or not case.shared.capabilities.tools:
        return
    plain = Conversation((_ASKED, _CALLED, _BROUGHT), (_LOOK,), model="model")
    failed = Turn("tool", (ToolResult("k", (Text("A cloud."),), is_error=True),), index=2)
    _changes_the_request(case, plain, {"turns": (_ASKED, _CALLED, failed)}, "is_error of a result")


def request_ids_are_sent(case: Case) -> None:
    """The id of a request is in the body or the headers of an adapter that declares `request_id`."""
    if not case.shared.capabilities.request_id:
        return
    plain = Conversation((_ASKED,), model="model")
    other = msgspec.structs.replace(plain, request_id="01234567-89ab-4def-8123-456789abcdef")
    sent, without = case.sends(other).request, case.sends(plain).request
    assert (sent.body, sent.headers) != (without.body, without.headers), (
        "request_id is declared and not sent: send it, or take it out of the capabilities"
    )


def provider_state_is_sent(case: Case) -> None:
    """State of a provider that the adapter declares is sent, at reasoning or at a call: another one changes the
    request."""
    prefix = f"{STATE_FIELD}."
    for provider in sorted(name[len(prefix) :] for name in case.shared.capabilities.carries if name.startswith(prefix)):
        one, other = [_with_state(case, with_provider_state(provider, state)) for state in case.states or _STATES]
        _changes_the_request(case, one, {"turns": other.turns}, f"the state of {provider}")


def _with_state(case: Case, extra: JsonObject) -> Conversation:
    """Builds a round of calls, or an answer for an adapter without tools, with this state at each of its blocks."""
    blocks = (Reasoning("Hm.", extra=extra), Text("Let me see."))
    if not case.shared.capabilities.tools:
        return Conversation((_ASKED, _CALLED.changed(*blocks), msgspec.structs.replace(_ASKED, index=2)), model="model")
    calls = [msgspec.structs.replace(call, extra=extra) for call in _CALLED.calls]
    return Conversation((_ASKED, _CALLED.changed(*blocks, *calls), _BROUGHT), (_LOOK,), model="model")


def _changes_the_request(case: Case, plain: Conversation, changes: Mapping[str, Any], what: str) -> None:
    if not changes:
        return  # a field of which the kit has no example
    changed = msgspec.structs.replace(plain, **changes)
    try:
        exchange = case.sends(changed)
    except InvalidRequest:
        return
    without = case.sends(plain).request
    if (exchange.request.body, exchange.request.path) != (without.body, without.path):
        return
    told = [notice.rule for notice in exchange.notices if notice.action in ("dropped", "changed")]
    assert told, f"{what} is declared and not sent: send it, or take it out of the capabilities"


CHECKS: Final[tuple[Callable[[Case], None], ...]] = (
    declared_fields_are_sent,
    tools_are_sent_whole,
    later_system_text_is_sent,
    failed_results_are_told,
    request_ids_are_sent,
    provider_state_is_sent,
)
