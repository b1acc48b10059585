"""Encodes a conversation as the body of a Messages request, and the header with the client's betas."""

import re
from typing import Final

import msgspec

from adapters.anthropic_messages import BETA_FIELD, DIALECT
from adapters.anthropic_messages.backend.canonical import canonical_fields
from adapters.anthropic_messages.backend.options import AnthropicMessagesOptions
from adapters.anthropic_messages.backend.request_fields import fit_fields
from adapters.anthropic_messages.backend.turns import EncodedTurns, encode_turns
from gateway.core.conversation import Conversation, Json, JsonObject
from gateway.core.errors import nothing_to_send
from gateway.core.notices import Notice
from gateway.providers.cache_rules import MESSAGES_CACHE
from gateway.providers.messages_rules import MessagesModel, MessagesRules
from gateway.wires.cache_marks import MessageForm, Placement, Writer, has_fields, in_parts

# A thread would leave the history to the backend, and the next request would refer to it.
_NOT_SENT: Final = frozenset({BETA_FIELD, "thread"})
# The beta of `thinking.block_binding`, and the mode of a request that does not say one.
_BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
_ADAPTIVE: Final[dict[str, Json]] = {"type": "adaptive"}
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*")

_encode: Final = msgspec.json.Encoder().encode


class EncodedRequest(msgspec.Struct, frozen=True):
    """A body, the client's betas (empty: none), and what encoding changed."""

    body: bytes
    betas: str = ""
    notices: tuple[Notice, ...] = ()


def encode_request(
    conversation: Conversation,
    options: AnthropicMessagesOptions,
    rules: MessagesRules,
    model: str | None = None,
    *,
    marks: bool = False,
) -> EncodedRequest:
    """Encodes the client's own fields if the client spoke this API; otherwise build the fields from the values. `model`
    is the name by which the rules go, if it is not that of the conversation. `marks`: those of the cache are placed
    where a client of another API sets none. Raises InvalidRequest for an image that the API cannot read, and for a
    conversation of system or blank text alone."""
    of_model = rules.of_model(model or conversation.model)
    notices: list[Notice] = []
    turns = encode_turns(conversation, rules, notices)
    source = conversation.source
    own = None if source is None else source.in_dialect(DIALECT)
    if not turns.messages:
        raise nothing_to_send(conversation.paths.param("messages"))
    if own is None:
        fields = canonical_fields(conversation, options, turns, notices)
        notices += fit_fields(fields, rules, of_model, conversation)
        betas = _with_binding(conversation, of_model, fields, "", notices)
        if conversation.marked:
            messages = [_in_parts(message) for message in turns.messages]
            turns = msgspec.structs.replace(turns, messages=messages)
        elif marks and not has_fields(fields):
            turns = _with_marks(fields, turns, notices)
        return EncodedRequest(_body(conversation, turns, fields), betas, tuple(notices))
    fields = {name: value for name, value in own.items() if name not in _NOT_SENT}
    if own.get("thread") is not None:
        detail = "thread is left out: the gateway and its clients send the whole history"
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug"))
    _follow(conversation, fields)
    notices += fit_fields(fields, rules, of_model, conversation)
    betas = _with_binding(conversation, of_model, fields, _betas(own.get(BETA_FIELD), notices), notices)
    return EncodedRequest(_body(conversation, turns, fields), betas, tuple(notices))


def _body(conversation: Conversation, turns: EncodedTurns, fields: dict[str, Json]) -> bytes:
    body: dict[str, object] = {**fields, "model": conversation.model, "messages": turns.messages}
    if turns.system:
        body["system"] = turns.system
    return _encode(body)


def _with_marks(fields: dict[str, Json], turns: EncodedTurns, notices: list[Notice]) -> EncodedTurns:
    """Returns the turns with the marks of the cache, which a tool has as well."""
    placement = Placement(MESSAGES_CACHE)
    if isinstance(tools := fields.get("tools"), list):
        fields["tools"] = placement.behind_tools(tools)
    system = placement.behind_system(turns.system, _FORM)
    marked = msgspec.structs.replace(turns, system=system, messages=placement.in_messages(turns.messages, _FORM))
    notices += placement.notices()
    return marked


def _in_parts(message: JsonObject) -> JsonObject:
    """Returns a message with parts of text, also in its results, of which one may have a mark."""
    (listed,) = in_parts([message], _FORM)
    if not isinstance(blocks := listed["content"], list):
        return message
    return {**listed, "content": [in_parts([block], _RESULT)[0] if _is_result(block) else block for block in blocks]}


def _is_result(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _writer(message: JsonObject) -> Writer:
    return "model" if message.get("role") == "assistant" else "input"


# Thinking takes no mark.
_FORM: Final = MessageForm(
    _writer, lambda _: "content", "text", frozenset({"text", "image", "document", "tool_result"})
)


_RESULT: Final = MessageForm(lambda _: "input", lambda _: "content", "text", frozenset({"text", "image"}))


def _follow(conversation: Conversation, fields: dict[str, Json]) -> None:
    """Replaces what the client wrote by what the passes decided."""
    choice = fields.get("tool_choice")
    forbidden = isinstance(choice, dict) and choice.get("type") == "none"
    if conversation.tool_choice == "none" and fields.get("tools") and not forbidden:
        fields["tool_choice"] = {"type": "none"}
    if bool(fields.get("stream")) != conversation.stream:
        fields["stream"] = conversation.stream


def _with_binding(
    conversation: Conversation, model: MessagesModel | None, fields: dict[str, Json], betas: str, notices: list[Notice]
) -> str:
    """Asks the API to drop the thinking that was made before a summary came, which no request can tell. Returns the
    betas with the one for this.

    Source: Anthropic, "Preserved thinking", `prefix_mismatch_behavior`: models that bind thinking to its prefix think
    by default, so that the field changes nothing else.
    """
    if model is None or model.thinking != "bound" or not any(turn.summary for turn in conversation.turns):
        return betas
    thinking = fields.get("thinking", _ADAPTIVE)
    if not isinstance(thinking, dict) or thinking.get("type") == "disabled":
        return betas
    fields["thinking"] = {**thinking, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    detail = "thinking.block_binding asks the API to drop the thinking that was made before the summary came"
    notices.append(Notice("encode", "added", "BLOCK_BINDING_ADDED", detail))
    known = [word.strip() for word in betas.split(",") if word.strip()]
    return betas if _BINDING_BETA in known else ",".join([*known, _BINDING_BETA])


def _betas(betas: Json, notices: list[Notice]) -> str:
    """Returns the value of the header."""
    if not isinstance(betas, str) or not betas.strip():
        return ""
    if _HEADER_VALUE.fullmatch(betas.strip()):
        return betas.strip()
    detail = "the header 'anthropic-beta' has characters that a header cannot carry"
    notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="warning"))
    return ""
