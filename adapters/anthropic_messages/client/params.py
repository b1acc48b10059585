"""Reads the fields beside messages and tools under their canonical names, and reports those that have none."""

import hashlib
from typing import Final

from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.compaction import MANAGEMENT, only_compacts
from adapters.anthropic_messages.table import (
    CHOICES,
    EFFORTS,
    FIELDS,
    METADATA,
    OUTPUT_CONFIG,
    SCHEMA,
    MessagesFields,
    OutputFormat,
    Thinking,
)
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.dialects.field_types import missing_field

# A budget of fewer tokens than this is of the effort beside it.
_BUDGETS: Final = ((4096, "low"), (16384, "medium"))
# What OpenAI accepts; Claude Code sends JSON that is longer.
_LONGEST_USER: Final = 64
# What Claude Code looks for: it then sends the whole conversation, and does so from then on.
_THREAD_REFUSED: Final = "capability_rejected: beta_header:message-threads-2026-08-12"


def read_params(request: MessagesFields, fields: JsonObject, changes: Changes) -> dict[str, Json]:
    """Returns the parameters. `fields` are those of the request as the client wrote them.

    Raises InvalidRequest for a field that refers to what only Anthropic's servers hold.
    """
    _refuse(request)
    _report(fields, changes)
    params: dict[str, Json] = {
        **FIELDS.read(request),
        "response_format": _response_format(request),
        "reasoning_effort": _effort(request, changes),
        "thinking": None if _budget(request.thinking) else fields.get("thinking"),
        "user": _user(request, changes),
        "parallel_tool_calls": False if forbids_parallel_calls(request) else None,
    }
    return {name: value for name, value in params.items() if value is not None}


def own_fields(request: MessagesFields, fields: JsonObject) -> tuple[str, ...]:
    """Returns those of the fields that only a backend of the same API gives an effect: those by which Anthropic's
    servers would run tools, and words that are in none of the published types. `fields` are as the client wrote
    them."""
    choice, wanted = request.tool_choice, _format(request)
    effort = None if request.output_config is None else request.output_config.effort
    words = {
        "tool_choice.type": choice is not None and choice.type not in (*CHOICES.known, "tool"),
        "output_config.effort": effort is not None and effort not in EFFORTS.known,
        "output_config.format.type": wanted is not None and wanted.type != SCHEMA,
    }
    return (*FIELDS.asked(fields), *[name for name, is_new in words.items() if is_new])


def forbids_parallel_calls(request: MessagesFields) -> bool:
    """Returns whether the answer may have one call at most."""
    return request.tool_choice is not None and request.tool_choice.disable_parallel_tool_use is True


def _refuse(request: MessagesFields) -> None:
    if request.thread is not None and request.thread.type == "continue":
        raise InvalidRequest(
            f"The gateway keeps no conversations: send all messages, without thread ({_THREAD_REFUSED}).",
            code="unsupported_parameter",
            param="thread",
            extra={"details": {"error_code": "thread_unsupported_request"}},
        )


def _report(fields: JsonObject, changes: Changes) -> None:
    """Adds a notice for each field that has no canonical name."""
    unsent = FIELDS.unsent(fields)
    if MANAGEMENT in unsent and only_compacts(fields.get(MANAGEMENT)):
        # The gateway compacts for a backend that does not.
        unsent.remove(MANAGEMENT)
    for holder, section in (("output_config", OUTPUT_CONFIG), ("metadata", METADATA)):
        inner = fields.get(holder)
        unsent += [f"{holder}.{name}" for name in section.unsent(inner)] if isinstance(inner, dict) else ()
    for name in unsent:
        if fields.get(name, name) is not None:
            changes.drop_field(name)


def _format(request: MessagesFields) -> OutputFormat | None:
    config = request.output_config
    return request.output_format if config is None or config.format is None else config.format


def _response_format(request: MessagesFields) -> Json:
    wanted = _format(request)
    if wanted is None or wanted.type != SCHEMA:
        return None
    if wanted.schema is None:
        raise missing_field("output_config.format.schema")
    return {"type": "json_schema", "json_schema": {"schema": wanted.schema, "strict": True}}


def _effort(request: MessagesFields, changes: Changes) -> str | None:
    asked = None if request.output_config is None else request.output_config.effort
    budget = _budget(request.thinking)
    if asked is not None:
        if budget:
            name = "thinking.budget_tokens"
            changes.drop_field(name, f"{name} is not sent beside output_config.effort", lost="thinking")
        return EFFORTS.values.get(asked)
    if not budget:
        return None
    effort = next((effort for limit, effort in _BUDGETS if budget < limit), "high")
    changes.add("changed", "EFFORT_CHANGED", f"thinking.budget_tokens is sent as the effort {effort}")
    return effort


def _budget(thinking: Thinking | None) -> int:
    """The budget of thinking in tokens; 0 where the request sets none above it, as for adaptive thinking."""
    return max(0, thinking.budget_tokens or 0) if thinking is not None and thinking.type == "enabled" else 0


def _user(request: MessagesFields, changes: Changes) -> str | None:
    user = None if request.metadata is None else request.metadata.user_id
    if user is None or len(user) <= _LONGEST_USER:
        return user
    changes.add(
        "changed", "USER_HASHED", f"metadata.user_id is longer than {_LONGEST_USER} characters: its hash is sent"
    )
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
