"""Defines the routes of the dialect."""

from collections.abc import Iterator
from typing import Final

import msgspec

from adapters.gemini_interactions.client.request_models import InteractionRequest
from adapters.gemini_interactions.client.stored import CANCEL
from adapters.gemini_interactions.response_models import DeletedInteraction, InteractionEvent, InteractionObject
from adapters.gemini_interactions.table import PATH
from gateway.dialect import Route
from gateway.dialects.openapi import (
    EVENT_STREAM,
    JSON,
    Operation,
    QueryParameter,
    events_of,
    json_text,
    reference,
)

_TAG: Final = "interactions"
_CREATE: Final = Operation(
    name="create_interaction",
    description="An interaction, whole or (`stream: true`) as server-sent events. It is stored unless `store` is false "
    "or the interaction says so.",
    tag=_TAG,
    answers={
        JSON: reference(InteractionObject),
        EVENT_STREAM: events_of(
            "Server-sent events. The last ones are `interaction.completed` and one with the data `[DONE]` or, if the "
            "interaction failed after it began, `error`.",
            json_text(reference(InteractionEvent)),
            {"const": "[DONE]"},
        ),
    },
    request=InteractionRequest,
    types=(InteractionObject, InteractionEvent),
)
_READ: Final = Operation(
    name="get_interaction",
    description="A stored interaction of this client. Its steps are those of its own input and of its answer.",
    tag=_TAG,
    answers={JSON: reference(InteractionObject)},
    types=(InteractionObject,),
    parameters=(QueryParameter("include_input", "Whether the answer has `input`, too.", {"enum": ["true", "false"]}),),
)
_DELETE: Final = Operation(
    name="delete_interaction",
    description="Deletes a stored interaction of this client.",
    tag=_TAG,
    answers={JSON: reference(DeletedInteraction)},
    types=(DeletedInteraction,),
)

_ROUTES: Final = (
    Route("POST", PATH, "generate", _CREATE),
    # Of two paths that fit a request the first one counts.
    Route("POST", f"{PATH}/{{id}}{CANCEL}", "stored"),
    Route("GET", f"{PATH}/{{id}}", "stored", _READ),
    Route("DELETE", f"{PATH}/{{id}}", "stored", _DELETE),
)


def _routes() -> Iterator[Route]:
    """Yields the routes of both versions: the SDKs ask below `/v1` by default, the pages of the API below `/v1beta`."""
    for route in _ROUTES:
        yield msgspec.structs.replace(route, path=f"/v1beta{route.path}")
        yield msgspec.structs.replace(route, path=f"/v1{route.path}", operation=None)


ROUTES: Final = tuple(_routes())
