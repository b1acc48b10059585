"""Explains what the gateway would send for a conversation, and why, at every stage; nothing is sent."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from gateway.adapter import Adapter, SchemaAdapter, SentText
from gateway.capabilities.refused_history import refused_history
from gateway.capabilities.request_fields import unsent_fields
from gateway.core.conversation import Conversation, Json, JsonObject, Turn
from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text
from gateway.diagnostics.explanation import (
    Classified,
    Encoded,
    ExplainedDirective,
    Explanation,
    Grouped,
    Messages,
    PinnedMessage,
    SchemaFacts,
)
from gateway.dialect import Dialect
from gateway.exchange import Exchange
from gateway.history.apply_profile import apply_profile
from gateway.history.classify import classify
from gateway.history.directives import described, each_in_force, in_force, with_fields, with_messages
from gateway.history.groups import groups
from gateway.history.pinned import pinned_turns
from gateway.history.prepare import Prepared, Substitution, prepare
from gateway.history.transcript.render import CONTINUATION_ADDED, flatten
from gateway.registry import load_dialect

# Messages, and the index of each in the request.
Indexed: TypeAlias = tuple[tuple[JsonObject, ...], tuple[int | None, ...]]


def explain(
    conversation: Conversation,
    policy: Policy,
    adapter: Adapter | None = None,
    backend: str | None = None,
    dialect: Dialect | None = None,
    summary: Substitution | None = None,
    label: str | None = None,
    window: int | None = None,
) -> Explanation:
    """Runs every stage of a request except sending. Without an adapter it ends before the encoding. `dialect` is
    that of the client, None: the default one. `summary`, `label` and
    `window` are those of the exchange."""
    dialect = dialect or load_dialect()
    explanation = Explanation(
        model=conversation.model,
        backend=backend,
        violations=refused_history(conversation, policy.profile, None if adapter is None else adapter.capabilities),
        stored=_shown([turn for turn in conversation.turns if turn.index is not None and turn.index < 0], dialect)[0],
        classification=_classified(conversation),
        directives=tuple(
            [ExplainedDirective(one.index, described(one), holds) for one, holds in each_in_force(conversation)]
        ),
    )
    try:
        prepared = prepare(conversation, policy, summary)
        explanation = _with_preparation(explanation, prepared, dialect)
        return _with_encoding(explanation, conversation, prepared, policy, adapter, summary, label, window)
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


def _classified(conversation: Conversation) -> Classified:
    turns = conversation.turns
    found = classify(turns, ends_with_result=conversation.ends_with_result)
    ids = tuple(result.call_id for position in found.results_since for result in turns[position].results)
    last = None if found.last_user is None else turns[found.last_user].index
    return Classified(last, ids, found.awaiting_continuation)


def _pinned(turns: Sequence[Turn]) -> tuple[PinnedMessage, ...]:
    found = pinned_turns(turns).reasons
    return tuple(PinnedMessage(turns[at].index, found[at]) for at in sorted(found))


def _with_preparation(explanation: Explanation, prepared: Prepared, dialect: Dialect) -> Explanation:
    repaired = prepared.repaired.turns
    repaired_messages, repaired_indexes = _shown(repaired, dialect)
    trimmed_messages, trimmed_indexes = _shown(prepared.conversation.turns, dialect)
    return msgspec.structs.replace(
        explanation,
        classification=_classified(prepared.repaired),
        groups=tuple(Grouped(group.start, group.stop, group.call_ids) for group in groups(repaired)),
        pinned=_pinned(repaired),
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
    label: str | None,
    window: int | None,
) -> Explanation:
    if adapter is None:
        return _with_preview(explanation, conversation, prepared, policy)
    exchange = Exchange(adapter, conversation, policy, summary, label, window)
    encoded = encoded_request(exchange, adapter, policy)
    turns = exchange.profiled.conversation.turns
    text = exchange.request.sent_text
    if text is not None:
        explanation = _with_text(explanation, text)
    else:
        wire, indexes = _sent(encoded.decoded, turns if encoded.schema is None else None)
        preview = flatten(exchange.profiled.conversation, msgspec.structs.replace(policy, images="placeholder"))
        explanation = msgspec.structs.replace(
            explanation,
            wire=wire,
            indexes=msgspec.structs.replace(explanation.indexes, wire=indexes),
            token_estimate=estimate_text(preview.text),
        )
    return with_notices(msgspec.structs.replace(explanation, encoded=encoded), tuple(exchange.notices))


def _with_preview(
    explanation: Explanation, conversation: Conversation, prepared: Prepared, policy: Policy
) -> Explanation:
    """Adds the text for a text-only backend. An image is no error here, because another backend may accept it."""
    sent, applied = _with_directives(prepared.conversation, conversation)
    profiled = apply_profile(sent, policy.profile)
    flattened = flatten(profiled.conversation, msgspec.structs.replace(policy, images="placeholder"))
    explanation = _with_text(explanation, SentText(flattened.text, flattened.system_text))
    notices = (*conversation.notices, *prepared.notices, *applied, *profiled.notices, *flattened.notices)
    return with_notices(explanation, notices)


def _with_directives(prepared: Conversation, asked: Conversation) -> tuple[Conversation, Sequence[Notice]]:
    """Returns the prepared conversation as a backend without directives gets it, and the notices."""
    if not asked.directives:
        return prepared, ()
    state = in_force(asked)
    changed, of_fields = with_fields(prepared, state)
    sent, of_messages = with_messages(changed, asked, state)
    return sent, (*of_fields, *of_messages)


def _with_text(explanation: Explanation, text: SentText) -> Explanation:
    system: tuple[JsonObject, ...] = ({"role": "system", "content": text.system},) if text.apart and text.system else ()
    wire = (*system, {"role": "user", "content": text.text})
    return msgspec.structs.replace(
        explanation,
        wire=wire,
        indexes=msgspec.structs.replace(explanation.indexes, wire=(None,) * len(wire)),
        text=text.text,
        system_text=text.system,
        token_estimate=estimate_text(text.system * text.apart + text.text),
    )


def with_notices(explanation: Explanation, notices: tuple[Notice, ...]) -> Explanation:
    """Returns the explanation with these notices, in place of those that it has."""
    return msgspec.structs.replace(
        explanation,
        implicit_added=CONTINUATION_ADDED in notices,
        diagnostics=notices,
        logs=tuple(notice.detail for notice in notices),
    )


def _sent(body: Json, turns: Sequence[Turn] | None) -> Indexed:
    """Returns the messages of the body, if any, with their indexes; else all of the body. `turns` is None for a backend
    by declaration: its mapping decides which turns become which messages."""
    messages = body.get("messages") if isinstance(body, dict) else None
    found = tuple(message for message in messages if isinstance(message, dict)) if isinstance(messages, list) else ()
    if found and turns is None:
        return found, (None,) * len(found)
    indexes = tuple(turn.index for turn in turns or () for _ in range(_messages_of(turn)))
    if found and len(found) == len(indexes):
        return found, indexes
    return ({"body": body} if not isinstance(body, dict) else body,), (None,)


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
