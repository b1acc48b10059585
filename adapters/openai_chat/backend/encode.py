"""Encodes a conversation as the body of a chat completions request."""

from typing import Any, Final, cast

import msgspec

from adapters.openai_chat import DIALECT
from adapters.openai_chat.backend.canonical import canonical_fields, canonical_turn
from adapters.openai_chat.backend.request_fields import fit_fields
from adapters.openai_chat.backend.thinking import unsent_thinking
from adapters.openai_chat.backend.tool_choice import Body
from adapters.openai_chat.messages import encode_turn
from gateway.core.conversation import SYSTEM_ROLES, Conversation, JsonObject, have_derived
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.providers.cache_rules import CacheRules
from gateway.providers.profile import Profile
from gateway.wires.cache_marks import MessageForm, Placement, Writer, has_fields, has_marks, in_parts

# The fields that offer functions, and the fields by which a pass forbids them. `functions` is deprecated.
_CHOICES: Final = {"tools": "tool_choice", "functions": "function_call"}

# The mark that is a part of this API.
BREAKPOINT: Final = "prompt_cache_breakpoint"

_encode: Final = msgspec.json.Encoder().encode
# Under which name the JSON of a message is kept with its turn.
_SENT: Final = "sent"
# Turns that are not worth a look at what is kept of them.
_FEW: Final = 4


def encode_body(conversation: Conversation, policy: Policy) -> tuple[bytes, tuple[Notice, ...]]:
    """Encodes the client's own fields if the client spoke this dialect; otherwise build the fields from the values.

    The notices say what the profile's rules for a request change.
    """
    profile, own = policy.profile, conversation.dialect == DIALECT
    rules = profile.request_rules
    body = _own_body(conversation, profile, final=rules is None) if own else _canonical_body(conversation, profile)
    if rules is None:
        return _encode(body), () if own else tuple(unsent_thinking(body, conversation))
    model = policy.base_model or conversation.model
    notices = fit_fields(body, rules, model, conversation)
    if conversation.marked:
        body["messages"] = in_parts(cast("list[JsonObject]", body["messages"]), _FORM)
    elif policy.prompt_cache.breakpoints and rules.cache is not None and rules.cache.govern(model):
        notices += _with_marks(body, rules.cache, own=own)
    return _encode(body), tuple(notices)


def _with_marks(body: Body, rules: CacheRules, *, own: bool) -> list[Notice]:
    """Places the marks of the provider's cache in the messages. `own`: the client has this API, of which the marks of
    OpenAI are a part, so that it places them itself."""
    messages: Any = body["messages"]
    if (own and rules.mark == BREAKPOINT) or has_fields(body) or has_marks(messages, body.get("tools")):
        return []
    placement = Placement(rules)
    body["messages"] = placement.in_messages(messages, _FORM)
    return placement.notices()


def _writer(message: JsonObject) -> Writer:
    role = message.get("role")
    return "model" if role == "assistant" else "system" if role in SYSTEM_ROLES else "input"


_FORM: Final = MessageForm(_writer, lambda _: "content", "text", frozenset({"text", "image_url"}))


# What asks for the token counts of a stream. The gateway may want them although the client does not.
_COUNTED: Final = {"include_usage": True}


def _own_body(conversation: Conversation, profile: Profile, *, final: bool) -> Body:
    """Returns the client's fields. `final`: nobody reads the messages but the encoder."""
    messages: list[JsonObject | msgspec.Raw] = []
    again = final and conversation.turns[_FEW:] and have_derived(conversation.turns)
    for turn in conversation.turns:
        source = turn.source
        if source is None or source.dialect != DIALECT:
            messages += encode_turn(turn, profile)
            continue
        known = getattr(turn, "derived", None) if again else None
        if known is None:
            messages.append(source.value)
            continue
        if _SENT not in known:
            # The encoder leaves room behind what it writes; the copy has none.
            known[_SENT] = msgspec.Raw(bytes(memoryview(_encode(source.value))))
        messages.append(known[_SENT])
    params = conversation.params
    body: Body = {"model": "", "messages": [], **params}
    body["model"], body["messages"] = conversation.model, messages
    # The passes decide, not what the client wrote.
    if conversation.tool_choice == "none":
        body |= {choice: "none" for tools, choice in _CHOICES.items() if params.get(tools)}
    if bool(params.get("stream")) != conversation.stream:
        body["stream"] = conversation.stream
    if conversation.include_usage and ("stream_options" not in params or params["stream_options"] != _COUNTED):
        asked = params.get("stream_options")
        body["stream_options"] = {**(asked if isinstance(asked, dict) else {}), **_COUNTED}
    return body


def _canonical_body(conversation: Conversation, profile: Profile) -> Body:
    kept = frozenset() if profile.state is None else frozenset(profile.state.fields)
    turns = [canonical_turn(turn, kept) for turn in conversation.turns]
    messages = [message for turn in turns for message in encode_turn(turn, profile)]
    return {"model": conversation.model, "messages": messages, **canonical_fields(conversation)}
