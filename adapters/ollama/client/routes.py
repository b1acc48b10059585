"""Lists the routes of the Ollama API: those that are served, and those that need models on the gateway's own disk."""

from typing import Final

from adapters.ollama.client.request_models import OllamaChatRequest, OllamaGenerateRequest, OllamaShowRequest
from adapters.ollama.client.response_models import (
    OllamaChatAnswer,
    OllamaError,
    OllamaGenerateAnswer,
    OllamaModel,
    OllamaModelList,
    OllamaPulled,
    OllamaRunningModels,
    OllamaVersion,
)
from adapters.ollama.client.stream import NDJSON
from gateway.dialect import FixedAnswer, Refusal, Route
from gateway.dialects.openapi import JSON, Operation, json_text, reference

GENERATE_PATH: Final = "/api/generate"
# The version whose API is served. Clients compare its numbers with the oldest that they accept.
VERSION: Final = "0.32.0"

_TAG: Final = "ollama"
_CHAT: Final = Operation(
    name="ollama_chat",
    description="An answer in a chat, as lines of JSON or (`stream: false`) whole.",
    tag=_TAG,
    answers={JSON: reference(OllamaChatAnswer), NDJSON: json_text(reference(OllamaChatAnswer), reference(OllamaError))},
    request=OllamaChatRequest,
    types=(OllamaChatAnswer,),
)
_GENERATE: Final = Operation(
    name="ollama_generate",
    description="An answer to a prompt, as lines of JSON or (`stream: false`) whole.",
    tag=_TAG,
    answers={
        JSON: reference(OllamaGenerateAnswer),
        NDJSON: json_text(reference(OllamaGenerateAnswer), reference(OllamaError)),
    },
    request=OllamaGenerateRequest,
    types=(OllamaGenerateAnswer,),
)
_MODELS: Final = Operation(
    name="ollama_list_models",
    description="The models that the gateway serves and the API key may use.",
    tag=_TAG,
    answers={JSON: reference(OllamaModelList)},
    types=(OllamaModelList,),
)
_MODEL: Final = Operation(
    name="ollama_show_model",
    description="One model: what it can do, and its context length if the settings tell it.",
    tag=_TAG,
    answers={JSON: reference(OllamaModel)},
    request=OllamaShowRequest,
    types=(OllamaModel,),
)
_PULL: Final = Operation(
    name="ollama_pull_model",
    description="Success for a model that the gateway serves: there is nothing to download. Others are an error.",
    tag=_TAG,
    answers={JSON: reference(OllamaPulled)},
    request=OllamaShowRequest,
    types=(OllamaPulled,),
)
_VERSION: Final = Operation(
    name="ollama_version",
    description="The version of Ollama whose API the gateway serves.",
    tag=_TAG,
    answers={JSON: reference(OllamaVersion)},
    types=(OllamaVersion,),
)
_RUNNING: Final = Operation(
    name="ollama_list_running_models",
    description="The models in memory: the gateway holds none.",
    tag=_TAG,
    answers={JSON: reference(OllamaRunningModels)},
    types=(OllamaRunningModels,),
)

_ALIVE: Final = FixedAnswer(b"Ollama is running", "text/plain; charset=utf-8")
_VERSION_ANSWER: Final = FixedAnswer(b'{"version":"%b"}' % VERSION.encode())
_PULLED: Final = FixedAnswer(b'{"status":"success"}')
_NO_EMBEDDINGS: Final = Refusal(501, code="unsupported_operation", message="The gateway makes no embeddings.")
_NO_MODELS: Final = Refusal(
    501,
    code="unsupported_operation",
    message="The gateway stores no models. GET /api/tags lists those that its backends have.",
)

ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", "/api/chat", "generate", _CHAT),
    Route("POST", GENERATE_PATH, "generate", _GENERATE),
    Route("GET", "/api/tags", "models", _MODELS, facts=True),
    Route("POST", "/api/show", "model", _MODEL, name_fields=("model", "name"), facts=True),
    # Clients pull a model whose name they do not find in the list, which has a tag that they may leave out.
    Route("POST", "/api/pull", "model", _PULL, name_fields=("model", "name"), fixed=_PULLED),
    Route("GET", "/api/version", "fixed", _VERSION, fixed=_VERSION_ANSWER),
    Route("HEAD", "/api/version", "fixed", fixed=_VERSION_ANSWER),
    Route("GET", "/api/ps", "fixed", _RUNNING, fixed=FixedAnswer(b'{"models":[]}')),
    Route("GET", "/", "fixed", fixed=_ALIVE),
    Route("HEAD", "/", "fixed", fixed=_ALIVE),
    *[Route("POST", path, "refused", refusal=_NO_EMBEDDINGS) for path in ("/api/embed", "/api/embeddings")],
    *[Route("POST", path, "refused", refusal=_NO_MODELS) for path in ("/api/push", "/api/create", "/api/copy")],
    Route("DELETE", "/api/delete", "refused", refusal=_NO_MODELS),
)
