"""Lists the routes of the dialect, also those that the gateway refuses."""

from typing import Final

import msgspec

from adapters.openai_responses.client.compaction import PATH as COMPACT
from adapters.openai_responses.client.request_models import ResponsesRequest
from adapters.openai_responses.client.stored_queries import INPUT_ITEMS
from adapters.openai_responses.response_models import (
    CompactedResponse,
    DeletedResponse,
    InputItemList,
    InputTokenCount,
    ResponseEvent,
    ResponseObject,
    ResponsesModelList,
)
from adapters.openai_responses.table import COUNT, GENERATE_PATH, MODELS_PATH
from gateway.dialect import Refusal, RequestMark, Route
from gateway.dialects.openapi import (
    EVENT_STREAM,
    JSON,
    Operation,
    QueryParameter,
    events_of,
    json_text,
    reference,
)

_GENERATE: Final = Operation(
    name="create_response",
    description="A response, whole or (`stream: true`) as server-sent events. It is stored unless `store` is "
    "false or the response says so.",
    tag="responses",
    answers={
        JSON: reference(ResponseObject),
        EVENT_STREAM: events_of(
            "Server-sent events. The last is `response.completed`, `response.incomplete` or, if the response failed "
            "after it began, `response.failed`.",
            json_text(reference(ResponseEvent)),
        ),
    },
    request=ResponsesRequest,
    types=(ResponseObject, ResponseEvent),
)
_COMPACT: Final = Operation(
    name="compact_response",
    description="A compaction of the input: the messages of the user, and one item that stands for all of it.",
    tag="responses",
    answers={JSON: reference(CompactedResponse)},
    request=ResponsesRequest,
    types=(CompactedResponse,),
)
_COUNT: Final = Operation(
    name="count_input_tokens",
    description="The estimated tokens of a request.",
    tag="responses",
    answers={JSON: reference(InputTokenCount)},
    request=ResponsesRequest,
    types=(InputTokenCount,),
)
_MODELS: Final = Operation(
    name="list_models_for_codex",
    description="The models, as Codex asks for them: with the parameter `client_version`.",
    tag="models",
    answers={JSON: reference(ResponsesModelList)},
    types=(ResponsesModelList,),
)

_READ: Final = Operation(
    name="get_response",
    description="A stored response of this client.",
    tag="responses",
    answers={JSON: reference(ResponseObject)},
    types=(ResponseObject,),
)
_DELETE: Final = Operation(
    name="delete_response",
    description="Deletes a stored response of this client.",
    tag="responses",
    answers={JSON: reference(DeletedResponse)},
    types=(DeletedResponse,),
)
_ITEMS: Final = Operation(
    name="list_input_items",
    description="The items that a stored response answered, also those of the responses before it.",
    tag="responses",
    answers={JSON: reference(InputItemList)},
    types=(InputItemList,),
    parameters=(
        QueryParameter(
            "limit", "The number of items, 20 by default.", {"type": "integer", "minimum": 1, "maximum": 100}
        ),
        QueryParameter("order", "`desc`, the newest first, by default.", {"enum": ["asc", "desc"]}),
        QueryParameter("after", "The id of the item before the first one.", {"type": "string", "minLength": 1}),
    ),
)

_CODEX: Final = RequestMark(parameter="client_version")
# To a GET that asks for no WebSocket. RFC 9110, section 15.5.22, demands the header `upgrade` and, section 7.8, its
# name among the options of the connection; RFC 6455, section 4.4, the version of the protocol.
_PLAIN_GET: Final = Refusal(
    426,
    "unsupported_operation",
    "A GET opens a WebSocket here, and this one does not ask for one. Send the request as POST, or open a WebSocket.",
    {"upgrade": "websocket", "connection": "close, upgrade", "sec-websocket-version": "13"},
)
_NOT_RUNNING: Final = Refusal(
    404,
    "unsupported_operation",
    "No response runs in the background, so that none can be cancelled. Close its connection instead.",
)


def _with_alias(route: Route) -> tuple[Route, Route]:
    """Returns a route and its alias: Codex joins its base URL with a path that lacks `/v1`."""
    return route, msgspec.structs.replace(route, path=route.path.removeprefix("/v1"), operation=None)


_PATH: Final = f"/v1{GENERATE_PATH}"

# Of two paths that fit a request the first one counts.
ROUTES: Final = tuple(
    served
    for route in (
        Route("POST", _PATH, "generate", _GENERATE),
        Route("POST", f"{_PATH}{COUNT}", "count", _COUNT),
        Route("GET", f"/v1{MODELS_PATH}", "models", _MODELS, mark=_CODEX, facts=True),
        Route("GET", _PATH, "refused", refusal=_PLAIN_GET, websocket=True),
        Route("POST", f"{_PATH}{COMPACT}", "generate", _COMPACT),
        Route("GET", f"{_PATH}/{{id}}{INPUT_ITEMS}", "stored", _ITEMS),
        Route("POST", f"{_PATH}/{{id}}/cancel", "refused", refusal=_NOT_RUNNING),
        Route("GET", f"{_PATH}/{{id}}", "stored", _READ),
        Route("DELETE", f"{_PATH}/{{id}}", "stored", _DELETE),
    )
    for served in _with_alias(route)
)
