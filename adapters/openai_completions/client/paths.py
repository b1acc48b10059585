"""Defines how clients of completions know the places of a request, whose only turn is the prompt."""

from typing import Final

import msgspec

from adapters.openai_completions.table import TABLE
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths

PATHS: Final[FieldPaths] = msgspec.structs.replace(
    CANONICAL_PATHS, turn="prompt", role="prompt", part="prompt", params=TABLE.paths
)
