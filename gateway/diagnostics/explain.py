"""Explains what the gateway would send for a conversation, and why, at every stage; nothing is sent."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from gateway.adapter import Adapter, FieldPlace, SchemaAdapter, SentText
from gateway.capabilities.request_fields import unsent_fields
from gateway.core.conversation import Conversation, Json, JsonObject, Turn, Violation
from gateway.core.errors import GatewayError, InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.diagnostics.routed_request import RoutedRequest, route_document
from gateway.diagnostics.summary_state import SummaryState
from gateway.dialects.base import Dialect
from gateway.dialects.document import Document, read_document
from gateway.exchange import Exchange
from gateway.history.apply_profile import apply_profile
from gateway.history.classify import classify
from gateway.history.groups import groups
from gateway.history.prepare import Prepared, Substitution, prepare, repaired
from gateway.history.transcript.render import CONTINUATION_ADDED, flatten
from gateway.history.validate import validate
from gateway.registry import load_adapters, load_dialect
from gateway.settings import Settings, read_settings
from gateway.settings.model_names import ModelNames

# Messages, and the index of each in the request.
Indexed: TypeAlias = tuple[tuple[JsonObject, ...], tuple[int | None, ...]]


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


class SchemaFacts(msgspec.Struct, frozen=True):
    """The protobuf schema in use: the files that it comes from, and the digest of its descriptors."""

    source: str
    sha256: str


class Encoded(msgspec.Struct, frozen=True):
    """The body as it would be sent: its size, its bytes, and a readable form. Of a protobuf message that settings.json
    describes also `schema`, the place that made each field (`fields`), and the fields of the request that have no place
    in it (`unsent`)."""

    bytes: int
    hex: str
    decoded: Json
    schema: SchemaFacts | None = None
    fields: tuple[FieldPlace, ...] = ()
    unsent: tuple[str, ...] = ()


class Messages(msgspec.Struct, frozen=True):
    """The index of each listed message in the request; null: the gateway wrote it; below 0: it was stored."""

    repaired: tuple[int | None, ...] = ()
    trimmed: tuple[int | None, ...] = ()
    wire: tuple[int | None, ...] = ()


class StateExplanation(msgspec.Struct, frozen=True):
    """What the gateway remembers of earlier requests, as far as it concerns this one. `summary`: compression, where it
    is enabled for the model."""

    summary: SummaryState | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of one conversation.

    - `stored` are the messages of stored answers that stand before those of the request.
    - `repaired` and `trimmed` are messages in the client's dialect; `indexes` holds the index of each in the request.
    - `wire` is what is sent: the chat messages of the body, the text in it as one message (and its system text as
      another, where that has a separate field), or else all of the body. Without a backend it is the flattened
      conversation.
    - `error` is the error that the client of a refused request would get, in its dialect, and `refusal` the message in
      it; nothing after it is then known.
    - `text` is the text that is sent, and `system_text` the system text in it or beside it; both are empty where none
      is.
    - `token_estimate` is a quarter of the bytes of the conversation as text: no tokenizer counted.
    - `state` is what the gateway remembers; null where no feature for that is on.
    """

    model: str
    backend: str | None
    violations: tuple[Violation, ...]
    classification: Classified
    stored: tuple[JsonObject, ...] = ()
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
    refusal: str | None = None
    state: StateExplanation | None = None


def explain(
    conversation: Conversation,
    policy: Policy,
    adapter: Adapter | None = None,
    backend: str | None = None,
    dialect: Dialect | None = None,
    summary: Substitution | None = None,
) -> Explanation:
    """Runs every stage of a request except sending. Without an adapter it ends before the encoding. `dialect` is
    that of the client, None: the default one. `summary` stands for the oldest turns; None: all are sent."""
    dialect = dialect or load_dialect()
    explanation = Explanation(
        model=conversation.model,
        backend=backend,
        violations=validate(conversation, policy.profile),
        stored=_shown([turn for turn in conversation.turns if turn.index is not None and turn.index < 0], dialect)[0],
        classification=_classified(conversation.turns),
    )
    try:
        prepared = prepare(conversation, policy, summary)
        explanation = _with_preparation(explanation, prepared, dialect)
        return _with_encoding(explanation, conversation, prepared, policy, adapter, summary)
    except GatewayError as error:
        notices = (*explanation.diagnostics, *error.notices)
        encoded = dialect.encode_error(error)
        return msgspec.structs.replace(
            explanation,
            error=msgspec.json.decode(encoded.body),
            refusal=error.message,
            diagnostics=notices,
            logs=tuple(notice.detail for notice in notices),
        )


def _classified(turns: Sequence[Turn]) -> Classified:
    found = classify(turns)
    ids = tuple(result.call_id for position in found.results_since for result in turns[position].results)
    last = None if found.last_user is None else turns[found.last_user].index
    return Classified(last, ids, found.awaiting_continuation)


def _with_preparation(explanation: Explanation, prepared: Prepared, dialect: Dialect) -> Explanation:
    repaired = prepared.repaired.turns
    repaired_messages, repaired_indexes = _shown(repaired, dialect)
    trimmed_messages, trimmed_indexes = _shown(prepared.conversation.turns, dialect)
    return msgspec.structs.replace(
        explanation,
        classification=_classified(repaired),
        groups=tuple(Grouped(group.start, group.stop, group.call_ids) for group in groups(repaired)),
        repaired=repaired_messages,
        trimmed=trimmed_messages,
        indexes=Messages(repaired_indexes, trimmed_indexes),
        diagnostics=prepared.notices,
    )


def _with_encoding(
    explanation: Explanation,
    conversation: Conversation,
    prepared: Prepared,
    policy: Policy,
    adapter: Adapter | None,
    summary: Substitution | None,
) -> Explanation:
    if adapter is None:
        return _with_preview(explanation, conversation, prepared, policy)
    exchange = Exchange(adapter, conversation, policy, summary)
    encoded = encoded_request(exchange, adapter, policy)
    turns = exchange.profiled.conversation.turns
    text = exchange.request.sent_text
    if text is not None:
        explanation = _with_text(explanation, text)
    else:
        wire, indexes = _sent(encoded.decoded, turns)
        preview = flatten(exchange.profiled.conversation, msgspec.structs.replace(policy, images="placeholder"))
        explanation = msgspec.structs.replace(
            explanation,
            wire=wire,
            indexes=msgspec.structs.replace(explanation.indexes, wire=indexes),
            token_estimate=_tokens(preview.text),
        )
    return _with_notices(msgspec.structs.replace(explanation, encoded=encoded), tuple(exchange.notices))


def _with_preview(
    explanation: Explanation, conversation: Conversation, prepared: Prepared, policy: Policy
) -> Explanation:
    """Adds the text for a text-only backend. An image is no error here, because another backend may accept it."""
    profiled = apply_profile(prepared.conversation, policy.profile)
    flattened = flatten(profiled.conversation, msgspec.structs.replace(policy, images="placeholder"))
    explanation = _with_text(explanation, SentText(flattened.text, flattened.system_text))
    notices = (*conversation.notices, *prepared.notices, *profiled.notices, *flattened.notices)
    return _with_notices(explanation, notices)


def _with_text(explanation: Explanation, text: SentText) -> Explanation:
    system: tuple[JsonObject, ...] = ({"role": "system", "content": text.system},) if text.apart and text.system else ()
    wire = (*system, {"role": "user", "content": text.text})
    return msgspec.structs.replace(
        explanation,
        wire=wire,
        indexes=msgspec.structs.replace(explanation.indexes, wire=(None,) * len(wire)),
        text=text.text,
        system_text=text.system,
        token_estimate=_tokens(text.system * text.apart + text.text),
    )


def _with_notices(explanation: Explanation, notices: tuple[Notice, ...]) -> Explanation:
    return msgspec.structs.replace(
        explanation,
        implicit_added=CONTINUATION_ADDED in notices,
        diagnostics=notices,
        logs=tuple(notice.detail for notice in notices),
    )


def _sent(body: Json, turns: Sequence[Turn]) -> Indexed:
    """Returns the messages of the body, if any, with their indexes; else all of the body."""
    messages = body.get("messages") if isinstance(body, dict) else None
    found = tuple(message for message in messages if isinstance(message, dict)) if isinstance(messages, list) else ()
    indexes = tuple(turn.index for turn in turns for _ in range(_messages_of(turn)))
    if found and len(found) == len(indexes):
        return found, indexes
    return ({"body": body} if not isinstance(body, dict) else body,), (None,)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // 4)


def encoded_request(exchange: Exchange, adapter: Adapter, policy: Policy) -> Encoded:
    """Returns the body of an exchange's request in every form. Raises InvalidRequest like `Adapter.encode`."""
    body = exchange.request.body
    encoded = Encoded(len(body), body.hex(), adapter.describe(body))
    if not isinstance(adapter, SchemaAdapter):
        return encoded
    return msgspec.structs.replace(
        encoded,
        schema=SchemaFacts(adapter.schema.source, adapter.schema.sha256),
        fields=adapter.field_places(exchange.conversation, policy),
        unsent=unsent_fields(exchange.conversation, adapter.capabilities),
    )


def _shown(turns: Sequence[Turn], dialect: Dialect) -> Indexed:
    """Returns turns as the client would write them."""
    encoded = [(message, turn.index) for turn in turns for message in dialect.encode_turn(turn)]
    return tuple([message for message, _ in encoded]), tuple([index for _, index in encoded])


def _messages_of(turn: Turn) -> int:
    """Returns the number of chat messages that a turn is sent as: one for each result, and one for all else."""
    results = len(turn.results)
    return results + (len(turn.blocks) > results) or 1


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
    return explain_routed(routed, dialect, state=_state(routed, settings))


def explain_routed(
    routed: RoutedRequest,
    dialect: Dialect,
    noticed: Sequence[Notice] = (),
    summary: Substitution | None = None,
    state: StateExplanation | None = None,
) -> Explanation:
    """Explains a request of this dialect whose backend is known. `noticed` tells what was put into it before, `summary`
    stands for its oldest turns, and `state` is what is remembered of it."""
    explanation = explain(routed.conversation, routed.policy, routed.adapter, routed.backend, dialect, summary)
    explanation = msgspec.structs.replace(explanation, model=routed.model, state=state)
    return _with_notices(explanation, (*noticed, *explanation.diagnostics)) if noticed else explanation


def _state(routed: RoutedRequest, settings: Settings) -> StateExplanation | None:
    """Returns what is known of a conversation without a running gateway: its size, and what a job would cover."""
    entry = settings.route(ModelNames(settings.models).known_name(routed.model))
    if entry is None or not entry.compress.enabled:
        return None
    # Loaded where compression is on.
    from gateway.diagnostics.explain_summary import compress_limits, explain_summary
    from gateway.history.compress.chain import chain

    writer = entry if entry.compress.model is None else settings.route(entry.compress.model)
    try:
        history = repaired(routed.conversation, routed.policy)
    except InvalidRequest:
        return None
    limits = compress_limits(entry, writer or entry)
    return StateExplanation(explain_summary(history, chain(history.turns, b"", ""), limits))


def plan(
    messages: Sequence[JsonObject],
    settings: Settings | JsonObject | None = None,
    tools: Sequence[JsonObject] | None = None,
    profile: str | None = None,
    model: str | None = None,
) -> Explanation:
    """Returns what the gateway would send for these messages of the default dialect.

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
