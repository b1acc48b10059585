"""What would be sent for a conversation, and why: every stage of the way, told without sending anything."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gateway.adapter import Adapter
from gateway.conversation.classify import classify
from gateway.conversation.fit import fit
from gateway.conversation.flatten import Flattened, flatten
from gateway.conversation.groups import groups
from gateway.conversation.messages import encode_turn
from gateway.conversation.prepare import Prepared, prepare
from gateway.conversation.validate import validate
from gateway.dialects.openai_chat.decode import read_request
from gateway.dialects.openai_chat.document import decode_document
from gateway.dialects.openai_chat.faults import Faults
from gateway.errors import GatewayError, InvalidRequest, SettingsError
from gateway.exchange import Exchange
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.profiles import NEUTRAL, Profile
from gateway.settings import Settings, override_policy, read_settings
from gateway.types import Conversation, Json, JsonObject, Turn, Violation


class Classified(msgspec.Struct, frozen=True):
    """The current exchange, by positions in the client's messages."""

    last_user_index: int | None
    tool_result_ids: tuple[str, ...]
    is_continuation: bool


class Grouped(msgspec.Struct, frozen=True):
    """One atomic group of the repaired messages: `start` up to, not including, `stop`."""

    start: int
    stop: int
    tool_call_ids: tuple[str, ...]


class Encoded(msgspec.Struct, frozen=True):
    """The body as it would travel: its size, its bytes, and the same for a person to read."""

    bytes: int
    hex: str
    decoded: Json


class Messages(msgspec.Struct, frozen=True):
    """The index that each listed message has in the request; null: the gateway wrote it."""

    repaired: tuple[int | None, ...] = ()
    trimmed: tuple[int | None, ...] = ()
    wire: tuple[int | None, ...] = ()


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`repaired`, `trimmed` and `wire` are chat messages; `indexes` tells where each stood in the request.

    `error` is the error object of a request that would be refused; nothing after it is then known.
    `text` and `system_text` are the flattened conversation. `token_estimate` is a quarter of its bytes: nobody counted.
    """

    model: str
    backend: str | None
    violations: tuple[Violation, ...]
    classification: Classified
    groups: tuple[Grouped, ...] = ()
    repaired: tuple[JsonObject, ...] = ()
    trimmed: tuple[JsonObject, ...] = ()
    wire: tuple[JsonObject, ...] = ()
    indexes: Messages = Messages()
    text: str = ""
    system_text: str = ""
    implicit_added: bool = False
    diagnostics: tuple[Notice, ...] = ()
    logs: tuple[str, ...] = ()
    encoded: Encoded | None = None
    token_estimate: int = 0
    error: JsonObject | None = None


def explain(
    conversation: Conversation, policy: Policy, adapter: Adapter | None = None, backend: str | None = None
) -> Explanation:
    """Go the whole way that a request goes, except out. Without an adapter it ends before the encoding."""
    told = Explanation(
        model=conversation.model,
        backend=backend,
        violations=validate(conversation),
        classification=_classified(conversation.turns),
    )
    try:
        prepared = prepare(conversation, policy)
        told = _with_preparation(told, prepared)
        return _with_encoding(told, conversation, prepared, policy, adapter)
    except GatewayError as error:
        notices = (*told.diagnostics, *error.notices)
        return msgspec.structs.replace(
            told, error=error.body(), diagnostics=notices, logs=tuple(notice.detail for notice in notices)
        )


def _classified(turns: Sequence[Turn]) -> Classified:
    found = classify(turns)
    ids = tuple(result.call_id for position in found.results_since for result in turns[position].results)
    last = None if found.last_user is None else turns[found.last_user].index
    return Classified(last, ids, found.awaiting_continuation)


def _with_preparation(told: Explanation, prepared: Prepared) -> Explanation:
    repaired = prepared.repaired.turns
    return msgspec.structs.replace(
        told,
        classification=_classified(repaired),
        groups=tuple(Grouped(group.start, group.stop, group.call_ids) for group in groups(repaired)),
        repaired=_messages(repaired),
        trimmed=_messages(prepared.conversation.turns),
        indexes=Messages(_indexes(repaired), _indexes(prepared.conversation.turns)),
        diagnostics=prepared.notices,
    )


def _with_encoding(
    told: Explanation, asked: Conversation, prepared: Prepared, policy: Policy, adapter: Adapter | None
) -> Explanation:
    exchange = Exchange(adapter, asked, policy) if adapter is not None else None
    fitted = exchange.fitted if exchange is not None else fit(prepared.conversation, policy.profile)
    # A preview must not be refused for an image that the real encoding may well take.
    flattened = flatten(fitted.conversation, msgspec.structs.replace(policy, images="placeholder"))
    flattens = adapter is None or adapter.capabilities.flattens
    turns = fitted.conversation.turns
    notices = (*prepared.notices, *fitted.notices, *flattened.notices) if exchange is None else tuple(exchange.notices)
    wire = _flat(flattened) if flattens else _messages(turns, policy.profile)
    return msgspec.structs.replace(
        told,
        wire=wire,
        indexes=msgspec.structs.replace(told.indexes, wire=(None,) if flattens else _indexes(turns, policy.profile)),
        text=flattened.text,
        system_text=flattened.system_text,
        implicit_added=flattened.implicit_added,
        diagnostics=notices,
        logs=tuple(notice.detail for notice in notices),
        encoded=None if exchange is None or adapter is None else _encoded(exchange.request.body, adapter),
        token_estimate=-(-len(flattened.text.encode("utf-8", "replace")) // 4),
    )


def _flat(flattened: Flattened) -> tuple[JsonObject, ...]:
    return ({"role": "user", "content": flattened.text},)


def _encoded(body: bytes, adapter: Adapter) -> Encoded:
    return Encoded(len(body), body.hex(), adapter.readable(body))


def _messages(turns: Sequence[Turn], profile: Profile = NEUTRAL) -> tuple[JsonObject, ...]:
    return tuple(message for turn in turns for message in encode_turn(turn, profile))


def _indexes(turns: Sequence[Turn], profile: Profile = NEUTRAL) -> tuple[int | None, ...]:
    return tuple(turn.index for turn in turns for _ in encode_turn(turn, profile))


def explain_request(
    body: bytes,
    settings: Settings,
    adapters: Mapping[str, Adapter],
    check_model: Callable[[str], None] = lambda model: None,
) -> Explanation:
    """Explain the JSON of a chat request (`explain_document`)."""
    faults = Faults()
    return explain_document(decode_document(body, faults), faults, settings, adapters, check_model)


def explain_document(
    document: dict[str, Json],
    faults: Faults,
    settings: Settings,
    adapters: Mapping[str, Adapter],
    check_model: Callable[[str], None] = lambda model: None,
) -> Explanation:
    """Explain a chat request. `profile` and `settings` (policy keys) beside its fields override the model's own.
    `check_model` may refuse a model by raising. Raises InvalidRequest for what is no request, and for a model that
    does not exist."""
    fields = {key: value for key, value in document.items() if key not in ("profile", "settings")}
    fields.setdefault("model", next(iter(settings.models), "any"))
    conversation = read_request(fields, faults)
    check_model(conversation.model)
    route = settings.route(conversation.model)
    if route is None and settings.models:
        known = ", ".join(settings.models)
        raise InvalidRequest(
            f"The model {conversation.model!r} does not exist here. Known models: {known}.",
            status=404,
            code="model_not_found",
            param="model",
        )
    policy = _overridden(settings.policy if route is None else route.policy, document, settings.profiles)
    if route is None:
        return explain(conversation, policy)
    sent = conversation if route.name is None else msgspec.structs.replace(conversation, model=route.name)
    told = explain(sent, policy, adapters.get(route.backend), route.backend)
    return msgspec.structs.replace(told, model=conversation.model)


def _overridden(policy: Policy, document: JsonObject, profiles: Mapping[str, Profile]) -> Policy:
    given = document.get("settings")
    changes = {} if given is None else given
    if not isinstance(changes, dict):
        raise InvalidRequest("settings must be an object of policy keys.", param="settings")
    recent = changes.get("recent_tool_results")
    if isinstance(recent, dict) and "redact" in recent:
        # A regular expression from outside could keep the process busy for hours.
        raise InvalidRequest("settings.recent_tool_results.redact belongs into settings.json.", param="settings")
    if document.get("profile") is not None:
        changes = {**changes, "profile": document["profile"]}
    try:
        return override_policy(policy, changes, profiles)
    except SettingsError as error:
        raise InvalidRequest(error.message, param="settings") from error


def plan(
    messages: Sequence[JsonObject],
    settings: Settings | JsonObject | None = None,
    tools: Sequence[JsonObject] | None = None,
    profile: str | None = None,
    model: str | None = None,
) -> Explanation:
    """What the gateway would send for these chat messages.

    `settings` are those of settings.json (or only some policy keys). Raises InvalidRequest for messages that are no
    array of JSON values, SettingsError for wrong settings.
    """
    from gateway.server.backends import load_adapter

    known = settings if isinstance(settings, Settings) else read_settings(dict(settings or {}))
    limit = int(known.limits.max_event_mb * 2**20)
    adapters = {name: load_adapter(name, entry, limit) for name, entry in known.backends.items()}
    request: dict[str, object] = {"messages": messages}
    request |= {} if tools is None else {"tools": tools}
    request |= {} if profile is None else {"profile": profile}
    request |= {} if model is None else {"model": model}
    return explain_request(msgspec.json.encode(request), known, adapters)
