"""Derives the attributes of a request's spans. They contain no text of a request or response.

Names are those of the conventions for HTTP (1.44) and for generative AI, where there is one, else `dragoman.*`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from gateway.adapter import BackendRequest, ProviderAdapter
from gateway.core.conversation import Conversation
from gateway.core.events import Finish, ResponseStart, UsageReport
from gateway.dialects.usage import UsagePart, usage_part
from gateway.providers.registry import TRACE_NAMES
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.telemetry.tracing.span import Attribute
from gateway.server.upstream.backends import Backend

# The number of characters kept of a name that a client or a backend chose. It is cut again when all secrets are
# removed, so that none can end where it is cut.
KEPT: Final = 2000
_SAMPLING: Final = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
}
_USAGE: Final = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
}
_PARTS: Final[Mapping[UsagePart, str]] = {
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}


def context_attributes(context: RequestContext, status: int) -> dict[str, Attribute]:
    """Returns the client, the subject and the outcome of a request."""
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "chat",
        "http.request.method": context.method,
        "url.path": context.path,
        "http.route": context.path_template,
        "dragoman.dialect": context.dialect,
        "http.response.status_code": status,
        "dragoman.request_id": context.id,
        "dragoman.key": context.key,
        "dragoman.backend": context.backend,
        "gen_ai.request.model": context.model[:KEPT],
    }
    attributes |= {f"dragoman.changes.{stage}": count for stage, count in context.changes.items()}
    if context.failed:
        attributes |= {"error.type": context.code[:KEPT], "dragoman.phase": context.phase}
    return {name: value for name, value in attributes.items() if value != "-"}


def request_attributes(backend: Backend, conversation: Conversation) -> dict[str, Attribute]:
    """Returns the parameters of the request to the backend."""
    attributes: dict[str, Attribute] = {
        "gen_ai.provider.name": provider(backend),
        "gen_ai.request.stream": conversation.stream,
    }
    for field, name in _SAMPLING.items():
        if (value := getattr(conversation.sampling, field)) is not None:
            attributes[name] = value
    return attributes


def target_attributes(backend: Backend, request: BackendRequest, model: str) -> dict[str, Attribute]:
    """Returns the server and operation of a backend request. Its path and query may contain more than a name, so they
    are left out."""
    address = backend.url(request.path).address
    return {
        "http.request.method": request.method,
        "url.scheme": address.scheme,
        "server.address": address.host,
        "server.port": address.port,
        "dragoman.backend": backend.name,
        "dragoman.backend.model": model[:KEPT],
    }


def answer_attributes(
    event: ResponseStart | UsageReport | Finish, redact: Callable[[str], str]
) -> Iterator[tuple[str, Attribute]]:
    """Yields the attributes of a response. `redact` removes the secrets that its backend knows."""
    match event:
        case ResponseStart():
            if event.model:
                yield "gen_ai.response.model", redact(event.model)[:KEPT]
            if event.id:
                yield "gen_ai.response.id", redact(event.id)[:KEPT]
        case Finish():
            yield "gen_ai.response.finish_reasons", (event.reason,)
        case UsageReport():
            yield from _usage(event)


def notice_attributes(stage: str, rule: str, action: str, count: int) -> dict[str, Attribute]:
    """Returns the kind of a notice and the number of its occurrences."""
    return {"dragoman.stage": stage, "dragoman.rule": rule, "dragoman.action": action, "dragoman.count": count}


def provider(backend: Backend) -> str:
    """Returns the provider: its profile identifies it best, else its adapter does."""
    name = backend.settings.profile or "none"
    if name == "none":
        module = backend.settings.adapter.partition(":")[0].rpartition(".")[2]
        name = _named_provider(type(backend.adapter)) or module
    return TRACE_NAMES.get(name, name)


@cache
def _named_provider(adapter: type) -> str:
    """Returns the provider that a class of adapters names, or an empty text. Once for each class: the check of a
    protocol looks for its members every time, and this one is asked for each request."""
    return adapter.provider if isinstance(adapter, ProviderAdapter) else ""


def _usage(usage: UsageReport) -> Iterator[tuple[str, Attribute]]:
    for field, name in _USAGE.items():
        if (tokens := getattr(usage, field)) is not None:
            yield name, tokens
    for part, name in _PARTS.items():
        if (found := usage_part(usage, part)) is not None:
            yield name, found
    if usage.estimated:
        yield "dragoman.usage.estimated", True
