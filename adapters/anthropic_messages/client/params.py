"""Reads the fields beside messages and tools under their canonical names, and reports those that have none."""

import hashlib
from typing import Final

from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.request_models import MessagesFields, OutputFormat, Thinking
from adapters.anthropic_messages.client.tools import WORDS
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.dialects.field_types import missing_field

# Every field that is read here or elsewhere in the dialect; any other is reported.
READ: Final = frozenset({*MessagesFields.__struct_fields__, "messages"})
_OUTPUT_FIELDS: Final = frozenset({"effort", "format"})
_METADATA_FIELDS: Final = frozenset({"user_id"})
_SCHEMA: Final = "json_schema"
_EFFORTS: Final = frozenset({"low", "medium", "high", "xhigh", "max"})
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
    _report(request, fields, changes)
    params: dict[str, Json] = {
        "max_tokens": request.max_tokens,
        "stop": list(request.stop_sequences or ()) or None,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "response_format": _response_format(request),
        "reasoning_effort": _effort(request, changes),
        "thinking": None if _budget(request.thinking) else fields.get("thinking"),
        "user": _user(request, changes),
        "parallel_tool_calls": False if forbids_parallel_calls(request) else None,
    }
    return {name: value for name, value in params.items() if value is not None}


def own_fields(request: MessagesFields) -> tuple[str, ...]:
    """Returns the fields that only a backend of the same API gives an effect: those by which Anthropic's servers would
    run tools, and those with a word that is in none of the published types."""
    choice, wanted = request.tool_choice, _format(request)
    effort = None if request.output_config is None else request.output_config.effort
    fields = {
        "mcp_servers": request.mcp_servers,
        "container": request.container,
        "tool_choice.type": choice is not None and choice.type not in {*WORDS, "tool"},
        "output_config.effort": effort is not None and effort not in _EFFORTS,
        "output_config.format.type": wanted is not None and wanted.type != _SCHEMA,
    }
    return tuple([name for name, value in fields.items() if value])


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


def _report(request: MessagesFields, fields: JsonObject, changes: Changes) -> None:
    """Adds a notice for each field that has no canonical name."""
    unknown = [name for name in fields if name not in READ]
    for holder, known in (("output_config", _OUTPUT_FIELDS), ("metadata", _METADATA_FIELDS)):
        inner = fields.get(holder)
        unknown += [f"{holder}.{name}" for name in inner if name not in known] if isinstance(inner, dict) else ()
    if request.thread is not None:
        unknown.append("thread")
    for name in unknown:
        if fields.get(name, name) is not None:
            changes.drop_field(name)


def _format(request: MessagesFields) -> OutputFormat | None:
    config = request.output_config
    return request.output_format if config is None or config.format is None else config.format


def _response_format(request: MessagesFields) -> Json:
    wanted = _format(request)
    if wanted is None or wanted.type != _SCHEMA:
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
            changes.drop_field(name, f"{name} is not sent beside output_config.effort")
        return asked if asked in _EFFORTS else None
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
