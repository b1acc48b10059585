"""Names the places of a request as clients of the dialect know them."""

from typing import Final

from adapters.openai_responses.table import TABLE
from gateway.core.field_paths import FieldPaths

PATHS: Final = FieldPaths(
    turn="input[{turn}]",
    role="input[{turn}].role",
    part="input[{turn}].content[{item}]",
    calls="input[{item}]",
    call_id="input[{item}].call_id",
    result="input[{item}].type",
    result_call_id="input[{item}].call_id",
    result_name="input[{item}].call_id",
    result_part="input[{item}].output[{part}]",
    tool_schema="tools[{tool}].parameters",
    params=TABLE.paths,
    calls_term="function calls",
    result_term="function_call_output",
    call_id_term="call_id",
    unnamed_call_term="call without an id",
)
