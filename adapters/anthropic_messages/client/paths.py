"""Defines how clients of the dialect know the places of a request."""

from typing import Final

from adapters.anthropic_messages.table import TABLE
from gateway.core.field_paths import FieldPaths

PATHS: Final = FieldPaths(
    turn="messages[{turn}]",
    role="messages[{turn}].role",
    part="messages[{turn}].content[{item}]",
    calls="messages[{turn}].content",
    call_id="messages[{turn}].content[{item}].id",
    result="messages[{turn}].content[{item}]",
    result_call_id="messages[{turn}].content[{item}].tool_use_id",
    result_name="messages[{turn}].content[{item}]",
    result_part="messages[{turn}].content[{item}].content[{part}]",
    tool_schema="tools[{tool}].input_schema",
    params=TABLE.paths,
    calls_term="tool_use blocks",
    result_term="tool_result block",
    call_id_term="tool_use_id",
    unnamed_call_term="tool_use block without an id",
)
