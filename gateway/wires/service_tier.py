"""Reads the `service_tier` of chat completions for an API that has other tiers."""

from collections.abc import Mapping

from gateway.core.conversation import Conversation
from gateway.core.notices import Notice


def service_tier(conversation: Conversation, tiers: Mapping[str, str], notices: list[Notice]) -> str | None:
    """Returns the backend's name of the tier that the client asked for; None: it did not, or there is no such tier,
    which is added to the notices. `auto` is the default, and may have no name."""
    asked = conversation.params.get("service_tier")
    if asked is None:
        return None
    tier = tiers.get(asked) if isinstance(asked, str) else None
    if tier is None and asked != "auto":
        param = conversation.paths.param("service_tier")
        detail = f"the backend has no tier for the value {str(asked)[:40]!r} of {param}"
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug"))
    return tier
