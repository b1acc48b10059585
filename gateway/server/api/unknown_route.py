"""Advises a client whose path is not served: what it probably meant, and what is served."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.dialect import Dialect

# Clients of these APIs add the version, or the folder, to their base URL themselves.
_DOUBLED: Final = ("/v1/v1/", "/v1/v1beta/", "/v1/api/")
# Routes of these APIs that a gateway for conversations does not have, by a part of the path.
_ABSENT: Final[Mapping[str, str]] = {
    "assistants": "assistants",
    "audio": "audio",
    "embeddings": "embeddings",
    "evals": "evaluations",
    "fine_tuning": "fine-tuning",
    "images": "images",
    "moderations": "moderations",
    "realtime": "realtime sessions",
    "rerank": "reranking",
    "threads": "threads",
    "vector_stores": "vector stores",
    "videos": "videos",
}
_LONGEST: Final = 80
_SIMILAR: Final = 0.75


def advice(path: str, dialects: Iterable[Dialect]) -> str:
    """Returns sentences about a path that no route has."""
    if path.startswith(_DOUBLED):
        return "Remove /v1 from the base URL of the client."
    routes = [route for dialect in dialects for route in dialect.routes if route.kind != "refused"]
    meant = difflib.get_close_matches(path[:_LONGEST], {route.path for route in routes}, 1, _SIMILAR)
    if meant:
        return f"Did you mean {meant[0]}? GET /docs lists the routes."
    absent = next((_ABSENT[part] for part in path.split("/") if part in _ABSENT), None)
    lacking = f"The gateway has no {absent}. " if absent else ""
    served = dict.fromkeys(route.path for route in routes if route.kind == "generate" and route.operation)
    return f"{lacking}It serves {', '.join(served)}. GET /docs lists all routes."
