"""Decodes a request and finds the backend that its model names, without a running gateway."""

from collections.abc import Callable, Mapping

import msgspec

from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, JsonObject
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.core.policy import Policy
from gateway.dialect import Dialect, RequestHead
from gateway.dialects.document import Document
from gateway.providers.profile import Profile
from gateway.settings import Settings, override_policy
from gateway.settings.model_names import ModelNames


class RoutedRequest(msgspec.Struct, frozen=True):
    """A request with the backend that its model names: None for both where the settings have no models. `model` is the
    client's name of it, `label` that of the backend's opaque state, and `window` the context of the model in tokens, if
    it is known."""

    model: str
    conversation: Conversation
    policy: Policy
    adapter: Adapter | None = None
    backend: str | None = None
    label: str | None = None
    window: int | None = None


def route_document(
    document: Document,
    settings: Settings,
    adapters: Mapping[str, Adapter],
    dialect: Dialect,
    check_model: Callable[[str], None] = lambda model: None,
) -> RoutedRequest:
    """Returns the request in a document of this dialect.

    `profile` and `settings` (policy keys) beside its fields override the model's own. `check_model` may refuse a model
    by raising. Raises InvalidRequest for a document that is no request, and for an unknown model.
    """
    given = document.fields
    fields = {key: value for key, value in given.items() if key not in ("profile", "settings")}
    fields.setdefault("model", next(iter(settings.models), "any"))
    request = dialect.decode(Document(fields, document.repaired, document.stored), RequestHead(""))
    if not request.generates:
        history = dialect.paths.param("messages")
        raise InvalidRequest(f"{history} is empty: the gateway answers by itself, and sends nothing.", param=history)
    conversation = request.conversation
    model = ModelNames(settings.models).known_name(conversation.model)
    check_model(model)
    route = settings.route(model)
    if route is None and settings.models:
        known = ", ".join(settings.models)
        raise InvalidRequest(
            f"Unknown model {conversation.model!r}. Known models: {known}.",
            status=404,
            code="model_not_found",
            param="model",
        )
    if route is None:
        policy = _overridden(settings.policy, given, settings.profiles)
        return RoutedRequest(conversation.model, conversation, policy)
    adapter = adapters.get(route.backend)
    acting = route.on(adapter is not None and adapter.capabilities.native)
    sent = msgspec.structs.replace(conversation, model=route.name or model)
    policy = _overridden(acting.policy, given, settings.profiles)
    label = settings.backends[route.backend].state_label
    return RoutedRequest(conversation.model, sent, policy, adapter, route.backend, label, route.context_length)


def _overridden(policy: Policy, document: JsonObject, profiles: Mapping[str, Profile]) -> Policy:
    given = document.get("settings")
    changes = {} if given is None else given
    if not isinstance(changes, dict):
        raise InvalidRequest("settings must be an object of policy keys.", param="settings")
    recent = changes.get("recent_tool_results")
    if isinstance(recent, dict) and "redact" in recent:
        # A regular expression from outside could keep the process busy for hours.
        raise InvalidRequest("settings.recent_tool_results.redact can be set only in settings.json.", param="settings")
    if document.get("profile") is not None:
        changes = {**changes, "profile": document["profile"]}
    try:
        return override_policy(policy, changes, profiles)
    except SettingsError as error:
        raise InvalidRequest(error.message, param="settings") from error
