"""Makes the adapter, the policy and the head of a recorded request again."""

from urllib.parse import quote, unquote

import msgspec

from gateway.adapter import Adapter
from gateway.core.conversation import JsonObject
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.recording.lines import RecordingError, RouteLine
from gateway.recording.recording import Interaction
from gateway.registry import ADAPTERS, load_adapter
from gateway.settings import BackendSettings, Settings


def adapter_of(route: RouteLine, settings: Settings | None = None) -> Adapter:
    """Returns the adapter of a route with the recorded options: those of the settings may be others by now. Where they
    cannot be used, because they were redacted or name a file, a backend of the settings with the recorded name and
    adapter gives its own. A recording may name the built-in adapters, and those that the settings use. Raises
    SettingsError for any other adapter, and RecordingError for options that it does not take."""
    known = {} if settings is None else settings.backends
    if route.adapter not in {*ADAPTERS, *ADAPTERS.values(), *(entry.adapter for entry in known.values())}:
        raise SettingsError(
            f"the recording names the adapter {route.adapter!r}, which is not built in: name a settings file that uses "
            "it with --settings"
        )
    try:
        return load_adapter(route.backend, BackendSettings(route.adapter, "", options=route.options), route.max_event)
    except SettingsError as error:
        own = known.get(route.backend)
        if own is not None and own.adapter == route.adapter:
            return load_adapter(route.backend, own, route.max_event)
        raise RecordingError(f"The recorded options cannot be used: {error.message}") from error


def policy_fields(policy: Policy) -> JsonObject:
    """Returns a policy as a recording holds it."""
    fields: JsonObject = msgspec.json.decode(msgspec.json.encode(policy))
    return fields


def policy_of(route: RouteLine) -> Policy:
    """Returns the policy of a route. Raises RecordingError."""
    try:
        return msgspec.convert(route.policy, Policy)
    except (msgspec.ValidationError, ValueError) as error:
        raise RecordingError(f"The recorded policy cannot be used: {error}") from error


def quoted_path(path: str) -> str:
    """Returns the path of a client's request as a recording holds it; `request_head` reads it."""
    return quote(path, safe="/:@+~,;=!$&'()*")


def request_head(interaction: Interaction) -> RequestHead:
    """Returns the head of the client's request."""
    path, _, query = interaction.request.path.partition("?")
    headers = {name.encode(): value.encode("latin-1", "replace") for name, value in interaction.request.headers.items()}
    return RequestHead(unquote(path), query.encode(), headers)
