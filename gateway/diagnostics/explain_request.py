"""Explains a request as a client wrote it: JSON and settings in, an explanation out; nothing is sent."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.adapter import Adapter
from gateway.core.conversation import JsonObject
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.requirements import breaches
from gateway.diagnostics.explain import explain, with_notices
from gateway.diagnostics.explain_media import explain_media
from gateway.diagnostics.explanation import Explanation, StateExplanation
from gateway.diagnostics.routed_request import RoutedRequest, route_document
from gateway.dialect import Dialect
from gateway.dialects.document import Document, read_document
from gateway.history.prepare import Substitution, repaired
from gateway.registry import load_adapters, load_dialect
from gateway.settings import Settings, read_settings
from gateway.settings.model_names import ModelNames


def explain_request(
    body: bytes,
    settings: Settings,
    adapters: Mapping[str, Adapter],
    dialect: Dialect | None = None,
    check_model: Callable[[str], None] = lambda model: None,
) -> Explanation:
    """Explains the JSON of a request (`explain_document`). `dialect` is that of the client, None: the default one."""
    return explain_document(read_document(body), settings, adapters, dialect or load_dialect(), check_model)


def explain_document(
    document: Document,
    settings: Settings,
    adapters: Mapping[str, Adapter],
    dialect: Dialect,
    check_model: Callable[[str], None] = lambda model: None,
) -> Explanation:
    """Explains a request of this dialect. Parameters and errors are those of `route_document`."""
    routed = route_document(document, settings, adapters, dialect, check_model)
    routed, noticed = explain_media(routed, settings)
    fitted, state = compression(routed, settings)
    return explain_routed(routed, dialect, noticed, summary=fitted, state=state)


def explain_routed(
    routed: RoutedRequest,
    dialect: Dialect,
    noticed: Sequence[Notice] = (),
    summary: Substitution | None = None,
    state: StateExplanation | None = None,
) -> Explanation:
    """Explains a request of this dialect whose backend is known. `noticed` reports what was put into it before,
    `summary` stands for a part of it, and `state` is what is remembered of it."""
    conversation, policy, label = routed.conversation, routed.policy, routed.label
    explanation = explain(conversation, policy, routed.adapter, routed.backend, dialect, summary, label, routed.window)
    if noticed:
        explanation = with_notices(explanation, (*noticed, *explanation.diagnostics))
    found = breaches(explanation.diagnostics)
    losses = {word: tuple(dict.fromkeys([notice.rule for notice in broken])) for word, broken in found.items()}
    return msgspec.structs.replace(explanation, model=routed.model, state=state, losses=losses)


def compression(routed: RoutedRequest, settings: Settings) -> tuple[Substitution | None, StateExplanation | None]:
    """Returns the effect of compression on a conversation without a running gateway: which results it shortens, and its
    size and what a job would cover."""
    entry = settings.route(ModelNames(settings.models).known_name(routed.model))
    if entry is None or not entry.compress.enabled:
        return None, None
    # Loaded where compression is on.
    from gateway.capabilities.held_tools import with_offered
    from gateway.diagnostics.explain_summary import compress_limits, explain_summary
    from gateway.memory.history_digest import history_digests

    writer = entry if entry.compress.model is None else settings.route(entry.compress.model)
    try:
        history = repaired(routed.conversation, routed.policy)
    except InvalidRequest:
        return None, None
    if routed.adapter is not None:
        history = with_offered(history, routed.policy, routed.adapter.capabilities)
    limits = compress_limits(entry, writer or entry)
    fitted, state = explain_summary(history, history_digests(history.turns, b"", ""), limits)
    return fitted, StateExplanation(state)


def plan(
    messages: Sequence[JsonObject],
    settings: Settings | JsonObject | None = None,
    tools: Sequence[JsonObject] | None = None,
    profile: str | None = None,
    model: str | None = None,
) -> Explanation:
    """Returns the request that the gateway would send for these messages of the default dialect.

    `settings` are those of settings.json (or only some policy keys). Raises InvalidRequest for messages that are no
    array of JSON values, SettingsError for wrong settings.
    """
    known = settings if isinstance(settings, Settings) else read_settings(dict(settings or {}))
    dialect = load_dialect()
    request: dict[str, object] = {dialect.paths.param("messages"): messages}
    request |= {} if tools is None else {"tools": tools}
    request |= {} if profile is None else {"profile": profile}
    request |= {} if model is None else {"model": model}
    return explain_request(msgspec.json.encode(request), known, load_adapters(known), dialect)
