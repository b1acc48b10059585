"""Shapes a message: how content, empty text, arguments and the name of a tool message are written. Drops the fields
of a choice, and keeps the deprecated form of calls (`function_call`, role `function`) for all or for none."""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.call_arguments import AS_TEXT, is_custom, read_object
from gateway.core.conversation import (
    Block,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.providers.profile import Profile


def fit_tool_name(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Drops a tool message's name, or derives it from the call that it answers; never trusts the client's name."""
    if profile.tool_name == "keep":
        return turns
    names: dict[str, str] = {}
    profiled: list[Turn] = []
    for turn in turns:
        for call in turn.calls:
            names[call.id] = call.name
        if turn.role == "tool":
            turn = _named(turn, names, profile, notices)
        profiled.append(turn)
    return tuple(profiled)


def _named(turn: Turn, names: dict[str, str], profile: Profile, notices: list[Notice]) -> Turn:
    field = profile.tool_name_field
    if profile.tool_name == "drop":
        if turn.name is None and field not in turn.extra and "name" not in turn.extra:
            return turn
        notices.append(changed(turn, "TOOL_NAME_DROPPED", "name of a tool message not sent", action="dropped"))
        return msgspec.structs.replace(turn, name=None, extra=_unnamed(turn, field), source=None)
    name = next((names[result.call_id] for result in turn.results if result.call_id in names), None)
    fields = {**turn.extra} if turn.name is None else {**turn.extra, "name": turn.name}
    if name is None or {key: fields[key] for key in ("name", field) if key in fields} == {field: name}:
        return turn
    notices.append(changed(turn, "TOOL_NAME_DERIVED", f"tool message named {name!r} after its call"))
    extra = _unnamed(turn, field)
    if field == "name":
        return msgspec.structs.replace(turn, name=name, extra=extra, source=None)
    return msgspec.structs.replace(turn, name=None, extra={**extra, field: name}, source=None)


def _unnamed(turn: Turn, field: str) -> JsonObject:
    """Returns the message's other fields. (A name that is no text is one of them, too.)"""
    return {key: value for key, value in turn.extra.items() if key not in ("name", field)}


def fit_arguments(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Drops the source of turns with calls where arguments are objects; the adapter writes them from the text."""
    if profile.arguments == "string":
        return turns
    return tuple(_with_objects(turn, notices) if turn.calls else turn for turn in turns)


def _with_objects(turn: Turn, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "ARGUMENTS_AS_OBJECT", "arguments of calls sent as objects"))
    for call in turn.calls:
        if not is_custom(call) and read_object(call.arguments) is None:
            detail = (
                f"the arguments of {call.name!r} are not a JSON object; they are sent as text in the member {AS_TEXT!r}"
            )
            notices.append(changed(turn, "ARGUMENTS_AS_TEXT", detail, call_id=call.id, level="warning"))
    return msgspec.structs.replace(turn, source=None)


def fit_empty(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Replaces empty content beside calls, and blank text elsewhere."""
    if profile.empty_text is None and profile.empty_beside_calls == "keep":
        return turns
    return tuple(_filled(turn, profile, notices) for turn in turns)


def _filled(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if turn.calls:
        return _beside_calls(turn, profile, notices)
    if profile.empty_text is None:
        return turn
    stand_in = Text(profile.empty_text)
    blocks = tuple(_stand_in(block, stand_in) for block in turn.blocks)
    if all(isinstance(block, Reasoning) for block in blocks):
        blocks = (*blocks, stand_in)
    if blocks == turn.blocks:
        return turn
    notices.append(changed(turn, "EMPTY_TEXT_FILLED", f"blank text filled ({turn.role} message)", action="added"))
    return turn.changed(*blocks)


def _stand_in(block: Block, stand_in: Text) -> Block:
    if isinstance(block, ToolResult):
        content = tuple(stand_in if _is_blank(part) else part for part in block.content) or (stand_in,)
        return block if content == block.content else msgspec.structs.replace(block, content=content)
    return stand_in if _is_blank(block) else block


def _is_blank(block: Block) -> bool:
    """Providers that refuse empty text refuse whitespace-only text, too."""
    return isinstance(block, Text) and not block.text.strip()


def _beside_calls(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    """Drops blank text where the provider refuses it; the rest decides whether the turn only calls tools."""
    kept = [block for block in turn.blocks if not (profile.empty_text is not None and _is_blank(block))]
    if any(isinstance(block, Image | File) or (isinstance(block, Text) and block.text) for block in kept):
        return turn if len(kept) == len(turn.blocks) else _sent_as(turn, kept, "without blank text", notices)
    content = "" if profile.empty_beside_calls == "empty" else None
    if content == _content_of(turn):
        return turn
    before = [block for block in turn.blocks if isinstance(block, Reasoning)]
    text = [Text(content)] if content is not None else []
    after = [block for block in turn.blocks if not isinstance(block, Text | Reasoning)]
    return _sent_as(turn, [*before, *text, *after], f"as {content!r}", notices)


def _content_of(turn: Turn) -> Json:
    """Returns the content as sent, for a turn that only calls tools: absent is null, several texts are an array."""
    if turn.source is not None and turn.source.listed:
        return []
    texts = [block for block in turn.blocks if isinstance(block, Text)]
    return None if not texts else "" if texts == [Text("")] else []


def _sent_as(turn: Turn, blocks: Sequence[Block], how: str, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "CONTENT_BESIDE_CALLS", f"content beside tool calls sent {how}"))
    return turn.changed(*blocks)


def fit_content(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Joins a list of text parts into one text where the provider refuses lists; keeps a list with other parts."""
    return tuple(_one_text(turn, profile, notices) for turn in turns)


def _one_text(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if profile.content == "parts" and (turn.role != "tool" or profile.tool_content == "parts"):
        return turn
    blocks = _joined(turn.blocks)
    listed = turn.source is not None and turn.source.listed
    if blocks == turn.blocks and not (listed and _only_text(turn)):
        return turn
    notices.append(changed(turn, "CONTENT_JOINED", f"text parts of a {turn.role} message sent as one text"))
    return turn.changed(*blocks)


def _only_text(turn: Turn) -> bool:
    parts = [part for block in turn.blocks for part in (block.content if isinstance(block, ToolResult) else (block,))]
    return not any(isinstance(part, Image | File) for part in parts)


def _joined(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    if any(isinstance(block, Image | File) for block in blocks):
        return blocks
    texts = [block for block in blocks if isinstance(block, Text)]
    if len(texts) > 1 or any(text.extra for text in texts):
        texts = [Text("\n".join(text.text for text in texts))]
    return (*texts, *(_one_text_result(block) for block in blocks if not isinstance(block, Text)))


def _one_text_result(block: Block) -> Block:
    if not isinstance(block, ToolResult) or not all(isinstance(part, Text) for part in block.content):
        return block
    content = (Text(block.text),)
    return block if block.content == content else msgspec.structs.replace(block, content=content)


CHOICE_FIELDS: Final = frozenset({"finish_reason", "index", "logprobs"})


def fit_choice_fields(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Returns assistant turns without these fields; the `index` that stream deltas give to calls is one of them."""
    if profile.choice_fields == "keep":
        return turns
    return tuple(_without(turn, notices) if turn.role == "assistant" else turn for turn in turns)


def _without(turn: Turn, notices: list[Notice]) -> Turn:
    carried = CHOICE_FIELDS & {*turn.extra, *(() if turn.source is None else turn.source.unread)}
    if not carried:
        return turn
    names = ", ".join(sorted(carried))
    notices.append(changed(turn, "CHOICE_FIELDS_DROPPED", f"{names} of an earlier response not sent", action="dropped"))
    extra = {key: value for key, value in turn.extra.items() if key not in carried}
    return msgspec.structs.replace(turn, extra=extra, source=None)


def keep_one_form(conversation: Conversation, notices: list[Notice]) -> Conversation:
    """Rewrites the deprecated messages as soon as another turn of calls or results must be rewritten.

    A provider refuses a `tool` message that answers a `function_call`, and a `function` message that answers one of
    `tool_calls`.
    """
    turns = conversation.turns
    for turn in turns:
        if turn.source is None and (turn.calls or turn.results):
            break
    else:
        return conversation
    if not any(_is_deprecated(turn) for turn in turns):
        return conversation
    profiled: list[Turn] = []
    for turn in turns:
        if _is_deprecated(turn):
            notices.append(changed(turn, "DEPRECATED_FORM_CHANGED", "function_call sent as tool_calls"))
            turn = msgspec.structs.replace(turn, source=None)
        profiled.append(turn)
    return msgspec.structs.replace(conversation, turns=tuple(profiled))


def _is_deprecated(turn: Turn) -> bool:
    """A call or a result without an id has the deprecated form; once it is written anew, it has the derived id."""
    return turn.source is not None and any(
        isinstance(block, ToolCall | ToolResult) and block.id_derived for block in turn.blocks
    )
