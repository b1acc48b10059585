"""Says of two requests of one conversation, as a client wrote them, what a provider's prompt cache loses of the later
one; nothing is sent."""

from collections.abc import Mapping

import msgspec

from gateway.adapter import Adapter
from gateway.core.errors import InvalidRequest
from gateway.diagnostics.explain_request import compression
from gateway.diagnostics.explanation import CacheExplanation
from gateway.diagnostics.prompt_cache.finding import compare
from gateway.diagnostics.prompt_cache.prompt import Prompt, prompt_of, tokens_of
from gateway.diagnostics.prompt_cache.words import cause_name, cause_rule, finding_sentence
from gateway.diagnostics.routed_request import route_document
from gateway.dialect import Dialect
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.settings import Settings


class SavedRequest(msgspec.Struct, frozen=True):
    """A request in the words of its dialect."""

    document: Document
    dialect: Dialect


def explain_since(
    later: SavedRequest, earlier: SavedRequest, settings: Settings, adapters: Mapping[str, Adapter]
) -> CacheExplanation:
    """Returns what a provider's cache, which has the earlier request, cannot serve of the later one. Raises
    InvalidRequest for a request that would be refused, or that has no backend."""
    old, _ = _prompt(earlier, settings, adapters)
    new, exchange = _prompt(later, settings, adapters)
    found = compare(old, new, tokens_of(exchange.conversation))
    if found is None:
        held = tokens_of(exchange.conversation)(range(len(old.sent.all)))
        return CacheExplanation("The earlier request is the beginning of this one.", held=held)
    cause = found.cause
    return CacheExplanation(finding_sentence(found), cause_name(cause), cause_rule(cause), found.held, found.lost)


def _prompt(saved: SavedRequest, settings: Settings, adapters: Mapping[str, Adapter]) -> tuple[Prompt, Exchange]:
    routed = route_document(saved.document, settings, adapters, saved.dialect)
    if routed.adapter is None or routed.backend is None:
        raise InvalidRequest("To compare prompts, the settings must have a model with a backend.", param="model")
    summary, _ = compression(routed, settings)
    adapter = routed.adapter
    exchange = Exchange(adapter, routed.conversation, routed.policy, summary, routed.label, routed.window)
    return prompt_of(exchange, adapter.capabilities.passthrough, routed.backend), exchange
