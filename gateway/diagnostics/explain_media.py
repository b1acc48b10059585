"""Explains which pictures and PDFs of a request would be read for its model. None is read, and no model is asked."""

import msgspec

from gateway.capabilities.read_parts import parts_to_read, with_texts, would_read
from gateway.core.notices import Notice
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.settings import Settings


def explain_media(routed: RoutedRequest, settings: Settings) -> tuple[RoutedRequest, list[Notice]]:
    """Returns the request with a placeholder for each part that would be read, and a notice for each."""
    entry = settings.route(routed.model)
    if entry is None or routed.adapter is None:
        return routed, []
    parts = parts_to_read(routed.conversation, routed.adapter.capabilities, routed.policy, entry.facts)
    if not parts:
        return routed, []
    conversation = with_texts(routed.conversation, {part.place: f"[{part.kind}]" for part in parts})
    notices = [would_read(part, settings.vision.model) for part in parts]
    return msgspec.structs.replace(routed, conversation=conversation), notices
