"""Defines the routes of the dialect: the verbs of a model, the models, and what is refused."""

from collections.abc import Iterator
from typing import Final

from adapters.gemini.client.request_models import CountContentTokensRequest, GenerateContentRequest
from adapters.gemini.response_models import (
    CountTokensResponse,
    GeminiErrorBody,
    GeminiModel,
    GeminiModelList,
    GenerateContentResponse,
)
from adapters.gemini.table import COUNT, GENERATE, MODELS_PATH, STREAM
from gateway.dialect import Refusal, RequestMark, Route
from gateway.dialects.openapi import EVENT_STREAM, JSON, Operation, events_of, json_text, reference

_TAG: Final = "gemini"
_WHOLE: Final = Operation(
    name="generate_content",
    description="A response of the model, whole.",
    tag=_TAG,
    answers={JSON: reference(GenerateContentResponse)},
    request=GenerateContentRequest,
    types=(GenerateContentResponse,),
)
_STREAMED: Final = Operation(
    name="stream_generate_content",
    description="A response of the model in pieces: with `alt=sse` server-sent events, else one array of JSON.",
    tag=_TAG,
    answers={
        JSON: {"type": "array", "items": {"anyOf": [reference(GenerateContentResponse), reference(GeminiErrorBody)]}},
        EVENT_STREAM: events_of(
            "Server-sent events. If the response failed after it began, an error as JSON follows them.",
            json_text(reference(GenerateContentResponse)),
        ),
    },
    request=GenerateContentRequest,
    types=(GenerateContentResponse,),
)
_COUNT: Final = Operation(
    name="count_tokens",
    description="The number of tokens of a request, estimated. No backend is asked.",
    tag=_TAG,
    answers={JSON: reference(CountTokensResponse)},
    request=CountContentTokensRequest,
    types=(CountTokensResponse,),
)
_MODELS: Final = Operation(
    name="list_gemini_models",
    description="The models that the gateway serves and the API key may use.",
    tag=_TAG,
    answers={JSON: reference(GeminiModelList)},
    types=(GeminiModelList,),
)
_MODEL: Final = Operation(
    name="get_gemini_model",
    description="One model.",
    tag=_TAG,
    answers={JSON: reference(GeminiModel)},
    types=(GeminiModel,),
)
# Requests to paths of version 1 that other APIs have, too.
_MARK: Final = RequestMark(header=b"x-goog-api-key")
_NOT_SERVED: Final = "The gateway does not serve {what}."
_REFUSED: Final = {
    "models/{name}:embedContent": "embeddings",
    "models/{name}:batchEmbedContents": "embeddings",
    "models/{name}:batchGenerateContent": "batches",
    "models/{name}:predict": "images",
    "models/{name}:predictLongRunning": "videos",
    "cachedContents": "cached contents, because it keeps no state",
    "files": "files, because it keeps no state",
}


def _routes() -> Iterator[Route]:
    """Yields the routes of both versions, with an operation for the first one."""
    for version, first in (("v1beta", True), ("v1", False)):
        model = f"/{version}{MODELS_PATH}/{{name}}"
        yield Route("POST", f"{model}:{GENERATE}", "generate", _WHOLE if first else None)
        yield Route("POST", f"{model}:{STREAM}", "generate", _STREAMED if first else None)
        yield Route("POST", f"{model}:{COUNT}", "count", _COUNT if first else None)
        yield Route(
            "GET",
            f"/{version}{MODELS_PATH}",
            "models",
            _MODELS if first else None,
            mark=None if first else _MARK,
            facts=True,
        )
        yield Route("GET", model, "model", _MODEL if first else None, mark=None if first else _MARK, facts=True)
        for path, what in _REFUSED.items():
            refusal = Refusal(404, "unsupported_operation", _NOT_SERVED.format(what=what))
            # Other APIs have the shorter paths of version 1.
            if first or path.startswith("models/"):
                yield Route("POST", f"/{version}/{path}", "refused", refusal=refusal)


ROUTES: Final = tuple(_routes())
