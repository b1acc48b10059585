"""Encodes a conversation as the body of a request."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from adapters.openai_responses import DIALECT
from adapters.openai_responses.backend.canonical import (
    OPENAI,
    canonical_fields,
    canonical_turn,
    custom_names,
    fit_limit,
)
from adapters.openai_responses.function_names import ToolNames
from adapters.openai_responses.tools import tool_names
from adapters.openai_responses.turn_items import INSTRUCTIONS, PREVIOUS, ItemEncoder
from gateway.core.conversation import SYSTEM_ROLES, Conversation, Json, JsonObject
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.providers.cache_rules import RESPONSES_CACHE
from gateway.wires.cache_marks import MessageForm, Placement, Writer, has_fields, in_parts

# Fields of the client that stand for turns: the stored ones, and the instructions, which no pass may have changed.
_GATEWAY_FIELDS: Final = (INSTRUCTIONS, PREVIOUS)

_LIMIT: Final = "max_output_tokens"

STATE: Final = "reasoning.encrypted_content"
_encode: Final = msgspec.json.Encoder().encode


def encode_body(conversation: Conversation, policy: Policy, notices: list[Notice]) -> bytes:
    """Encodes the client's own fields if the client spoke this dialect; otherwise build the fields from the values.

    The backend stores nothing: the gateway itself stores the responses of its clients, and sends the whole history.
    """
    if conversation.dialect != DIALECT:
        return _canonical_body(conversation, policy, notices)
    source = None if conversation.source is None else conversation.source.in_dialect(DIALECT)
    body: dict[str, object] = {"model": "", "input": [], **(source or {}), "store": False}
    for own in _GATEWAY_FIELDS:
        if body.get(own):
            del body[own]
    state = policy.profile.state
    plain = state is not None and state.reasoning == "plain"
    items = list(_own_items(conversation, body, notices, plain=plain))
    body["model"], body["input"] = conversation.model, items
    if conversation.keeps is not None:
        body["include"] = _with_state(body.get("include"))
    if conversation.tool_choice == "none" and body.get("tools"):
        body["tool_choice"] = "none"
    if bool(body.get("stream")) != conversation.stream:
        body["stream"] = conversation.stream
    if type(limit := body.get(_LIMIT)) is int and policy.profile in OPENAI:
        body[_LIMIT] = fit_limit(limit, policy.profile, conversation.paths, notices)
    return _encode(body)


def _canonical_body(conversation: Conversation, policy: Policy, notices: list[Notice]) -> bytes:
    encoder = ItemEncoder(custom_names(conversation))
    items = [item for turn in conversation.turns for item in encoder.encode(canonical_turn(turn, notices))]
    fields = canonical_fields(conversation, policy.base_model or conversation.model, policy.profile, notices)
    if conversation.keeps is not None:
        fields["include"] = _with_state(None)
    if conversation.marked:
        items = in_parts(items, _FORM)
    elif policy.prompt_cache.breakpoints and RESPONSES_CACHE.govern(policy.base_model or conversation.model):
        items = _with_marks(items, fields, notices)
    return _encode({"model": conversation.model, "input": items, "store": False, **fields})


def _with_marks(items: list[JsonObject], fields: dict[str, Json], notices: list[Notice]) -> list[JsonObject]:
    """Returns the items with the marks of the cache, unless the client says something of it."""
    if has_fields(fields):
        return items
    placement = Placement(RESPONSES_CACHE)
    marked = placement.in_messages(items, _FORM)
    notices += placement.notices()
    return marked


def _writer(item: JsonObject) -> Writer:
    role = item.get("role")
    if role in SYSTEM_ROLES:
        return "system"
    return "input" if role == "user" or item.get("type") in _OUTPUTS else "model"


_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_FORM: Final = MessageForm(
    _writer,
    lambda item: "output" if item.get("type") in _OUTPUTS else "content",
    "input_text",
    frozenset({"input_text", "input_image"}),
)


def _with_state(include: object) -> list[Json]:
    """Returns what the response includes, with the state that the gateway keeps: without being asked, the backend sends
    none."""
    asked: list[Json] = [*include] if isinstance(include, list) else []
    return asked if STATE in asked else [*asked, STATE]


def _own_items(
    conversation: Conversation, body: dict[str, object], notices: list[Notice], *, plain: bool
) -> Iterator[JsonObject]:
    """Yields the client's items, and those of the turns that a pass has changed. The text of an unchanged turn of the
    instructions stands in its own field again.

    Reasoning with neither its encrypted content nor its own text is a reference to an item that the backend stored.
    OpenAI refuses the whole request for one that it did not store, and for an item with an id behind which nothing of
    the model follows ("was provided without its required following item"), as in an answer that its client has steered
    or interrupted there. `plain`: the provider reads the text of reasoning, in whatever form.
    """
    changed = any(turn.source is None for turn in conversation.turns)
    encoder = ItemEncoder(tool_names(conversation) if changed else ToolNames(), own=True)
    # Reasoning for which the item that must follow it has not come yet.
    held: list[tuple[JsonObject, int | None]] = []
    for turn in conversation.turns:
        source = None if turn.source is None else turn.source.in_dialect(DIALECT)
        if source is not None and INSTRUCTIONS in source:
            body[INSTRUCTIONS] = source[INSTRUCTIONS]
            continue
        for item in encoder.encode(turn):
            if plain or item.get("type") != "reasoning":
                if held:
                    yield from _behind(held, notices, follows=turn.role == "assistant")
                    held = []
                yield item
            elif item.get("encrypted_content") or item.get("content"):
                held.append((item, turn.index))
            else:
                detail = "reasoning without its encrypted content and its text, which the backend does not store"
                notices.append(_not_sent(detail, turn.index))
    yield from _behind(held, notices, follows=False)


def _behind(
    held: Sequence[tuple[JsonObject, int | None]], notices: list[Notice], *, follows: bool
) -> Iterator[JsonObject]:
    """Yields reasoning behind which an item of the model `follows`, or that needs none."""
    for item, index in held:
        if follows or not item.get("id"):
            yield item
        else:
            notices.append(_not_sent("reasoning behind which nothing of the model follows", index))


def _not_sent(detail: str, index: int | None) -> Notice:
    return Notice("encode", "dropped", "REASONING_NOT_SENT", detail, index=index, level="debug")
