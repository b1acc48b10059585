"""Names the places of a request as clients know them, in camelCase."""

from typing import Final

from adapters.gemini.table import TABLE
from gateway.core.field_paths import FieldPaths

# A request for a number of tokens may hold a whole request in this field.
WRAPPER: Final = "generateContentRequest"


def _paths(before: str) -> FieldPaths:
    """Returns the paths of a request that stands behind this prefix."""
    turn = f"{before}contents[{{turn}}]"
    part = f"{turn}.parts[{{item}}]"
    return FieldPaths(
        turn=turn,
        role=f"{turn}.role",
        part=part,
        calls=f"{turn}.parts",
        call_id=f"{part}.functionCall.id",
        result=f"{part}.functionResponse",
        result_call_id=f"{part}.functionResponse.id",
        result_name=f"{part}.functionResponse.name",
        result_part=f"{part}.functionResponse.parts[{{part}}]",
        tool_schema=f"{before}tools[{{tool}}]",
        params={name: f"{before}{path}" for name, path in TABLE.paths.items()},
        calls_term="functionCall parts",
        result_term="functionResponse part",
        call_id_term="functionResponse.id",
        unnamed_call_term="functionCall without an id",
    )


PATHS: Final = _paths("")
WRAPPED_PATHS: Final = _paths(f"{WRAPPER}.")
