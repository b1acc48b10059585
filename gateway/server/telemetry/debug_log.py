"""Logs one request to a backend as the DEBUG block between two banners that people grep for."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import Conversation
from gateway.core.secrets import redact_keys
from gateway.exchange import Exchange
from gateway.history.classify import classify
from gateway.server.log.logger import BANNER, LOGGER
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.credentials import redact_secrets

BODY_CAP: Final = 64 * 1024


def log_request(
    context: RequestContext, backend: Backend, exchange: Exchange, body: bytes | None, keys: Sequence[bytes] = ()
) -> None:
    """Writes the block, for a log at DEBUG. `body` is the client's request body, given only where the settings ask for
    it; `keys` are what the client sent as its key, which the block does not show."""
    results, history = count(exchange.conversation)
    api = api_name(backend.settings.adapter)
    lines = [
        BANNER,
        f"[{api} Request] Submitting to {api} API:",
        f"  Tool results: {results}",
        f"  History messages: {history}",
        f"  Backend: {backend.name}, {exchange.request.path}, {len(exchange.request.body)} bytes",
    ]
    if body is not None:
        text = body[:BODY_CAP].decode(errors="replace")
        secrets = [key.decode("latin-1") for key in keys]
        lines.append(f"  Client request: {redact_keys(backend.redact(redact_secrets(text, *secrets)))}")
    for line in (*lines, BANNER):
        LOGGER.debug("%s", line, extra={"request_id": context.id})


def api_name(adapter: str) -> str:
    """Returns the name of a backend's API in the block, which people search for: that of its adapter in the settings,
    such as `Warp` of `warp`; of `module:Class` the class."""
    _, colon, kind = adapter.partition(":")
    return kind.removesuffix("Adapter") if colon else adapter.title().replace("_", "").replace("Openai", "OpenAI")


def count(conversation: Conversation) -> tuple[int, int]:
    """Counts the tool results since the last user turn, and the turns that are neither those nor that user turn."""
    turns = conversation.turns
    found = classify(turns)
    results = sum(len(turns[position].results) for position in found.results_since)
    return results, len(turns) - len(found.results_since) - (0 if found.last_user is None else 1)
