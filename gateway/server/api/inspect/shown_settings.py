"""Says what the inspector's page has to know of the gateway before it asks for requests."""

from collections.abc import Sequence

import msgspec
from starlette.datastructures import URL

from gateway.server.api.gateway_state import GatewayState
from gateway.server.inspect.inspector import Inspector
from gateway.server.upstream.transport import gateway_version


class Workers(msgspec.Struct, frozen=True):
    """How many workers there are, and of how many the page shows the requests."""

    seen: int
    total: int


class ShownSettings(msgspec.Struct, frozen=True):
    """The settings of the inspector, the names that a filter may use, and a command that makes a request. `admin_key`:
    one is asked for. `redacted`: the words were replaced when it was recorded, so that there are none to reveal."""

    version: str
    workers: Workers
    enabled: str
    contents: str
    reveal: bool
    redacted: bool
    admin_key: bool
    keep: int
    keep_mb: float
    request_mb: float
    models: Sequence[str]
    profiles: Sequence[str]
    example: str
    send: bool


async def shown_settings(gateway_state: GatewayState, inspector: Inspector, base_url: URL) -> ShownSettings:
    """Returns the settings. `base_url` is the address by which the page knows the gateway."""
    settings = gateway_state.settings
    known, models = settings.inspector, [*settings.models]
    redacted = inspector.shown_level == "none"
    return ShownSettings(
        version=gateway_version(),
        workers=Workers(await inspector.requests.seen(), settings.server.workers),
        enabled=known.enabled,
        contents=known.contents,
        reveal=known.reveal and not redacted,
        redacted=redacted,
        admin_key=bool(inspector.access.key),
        keep=known.keep,
        keep_mb=known.keep_mb,
        request_mb=known.request_mb,
        models=models,
        profiles=[*settings.profiles],
        send=inspector.resend.allowed,
        example=_example(str(base_url).rstrip("/"), models[0] if models else "MODEL", bool(gateway_state.keys)),
    )


def _example(base_url: str, model: str, keys: bool) -> str:
    body = msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "Hello"}]}).decode()
    key = ' -H "Authorization: Bearer $DRAGOMAN_KEY"' if keys else ""
    quoted = body.replace("'", "'\\''")
    return f"curl {base_url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{quoted}'"
