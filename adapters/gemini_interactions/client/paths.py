"""Names the places of a request as clients of the dialect know them."""

from typing import Final

from adapters.gemini_interactions.table import TABLE
from gateway.core.field_paths import FieldPaths

PATHS: Final = FieldPaths(
    turn="input[{turn}]",
    role="input[{turn}].type",
    part="input[{turn}].content[{item}]",
    calls="input[{item}]",
    call_id="input[{item}].id",
    result="input[{item}].type",
    result_call_id="input[{item}].call_id",
    result_name="input[{item}].name",
    result_part="input[{item}].result[{part}]",
    tool_schema="tools[{tool}].parameters",
    params=TABLE.paths,
    calls_term="function_call steps",
    result_term="function_result step",
    call_id_term="call_id",
    unnamed_call_term="function_call without an id",
)
