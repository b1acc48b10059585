"""One request to a backend -> the DEBUG block between two banners that people grep for."""

import logging
from typing import Final

from gateway.backend_status import blot_keys
from gateway.conversation.classify import classify
from gateway.exchange import Exchange
from gateway.server.backends import Backend
from gateway.server.call import Call
from gateway.server.credentials import blot
from gateway.server.log import BANNER, LOGGER
from gateway.types import Conversation

BODY_CAP: Final = 64 * 1024


def log_request(call: Call, backend: Backend, exchange: Exchange, body: bytes | None) -> None:
    """Write the block, at DEBUG only. `body` is what the client sent, given only where the settings ask for it."""
    if not LOGGER.isEnabledFor(logging.DEBUG):
        return
    results, history = count(exchange.conversation)
    family = type(backend.adapter).__name__.removesuffix("Adapter")
    lines = [
        BANNER,
        f"[{family} Request] Submitting to {family} API:",
        f"  Tool results: {results}",
        f"  History messages: {history}",
        f"  Backend: {backend.name}, {exchange.request.path}, {len(exchange.request.body)} bytes",
    ]
    if body is not None:
        text = body[:BODY_CAP].decode(errors="replace")
        _, _, key = call.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        lines.append(f"  Client request: {blot_keys(backend.redact(blot(text, key.strip())))}")
    for line in (*lines, BANNER):
        LOGGER.debug("%s", line, extra={"request_id": call.id})


def count(conversation: Conversation) -> tuple[int, int]:
    """Tool results since the last user turn, and the turns that are neither those nor that user turn."""
    turns = conversation.turns
    found = classify(turns)
    results = sum(len(turns[position].results) for position in found.results_since)
    return results, len(turns) - len(found.results_since) - (0 if found.last_user is None else 1)
