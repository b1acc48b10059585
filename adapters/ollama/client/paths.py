"""Defines how clients of Ollama know the places of a request: those of a chat, and those of a generate request."""

from typing import Final

import msgspec

from adapters.ollama.table import CHAT, GENERATE
from gateway.core.field_paths import FieldPaths

CHAT_PATHS: Final = FieldPaths(
    turn="messages[{turn}]",
    role="messages[{turn}].role",
    part="messages[{turn}].images[{item}]",
    calls="messages[{turn}].tool_calls",
    call_id="messages[{turn}].tool_calls[{item}].id",
    result="messages[{turn}].role",
    result_call_id="messages[{turn}].tool_call_id",
    result_name="messages[{turn}].tool_name",
    result_part="messages[{turn}].images[{part}]",
    tool_schema="tools[{tool}].function.parameters",
    params=CHAT.paths,
    calls_term="tool_calls",
    result_term="tool message",
    call_id_term="tool_call_id",
    unnamed_call_term="call without an id",
)

# Its turns are one prompt, and the system text before it.
GENERATE_PATHS: Final = msgspec.structs.replace(
    CHAT_PATHS, turn="prompt", role="prompt", part="images[{item}]", params=GENERATE.paths
)
