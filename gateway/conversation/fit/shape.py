"""The shape of a message: how content, empty text, arguments and the name of a tool message are written."""

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.profiles import Profile
from gateway.types import Block, File, Image, Reasoning, Text, ToolResult, Turn


def fit_tool_name(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """A tool message's name: dropped, or derived from the call it answers, never trusted."""
    if profile.tool_name == "keep":
        return turns
    names: dict[str, str] = {}
    fitted: list[Turn] = []
    for turn in turns:
        for call in turn.calls:
            names[call.id] = call.name
        if turn.role == "tool":
            turn = _named(turn, names, profile, notices)
        fitted.append(turn)
    return tuple(fitted)


def _named(turn: Turn, names: dict[str, str], profile: Profile, notices: list[Notice]) -> Turn:
    if profile.tool_name == "drop":
        if turn.name is None:
            return turn
        notices.append(changed(turn, "TOOL_NAME_DROPPED", "name of a tool message not sent", action="dropped"))
        return msgspec.structs.replace(turn, name=None, source=None)
    name = next((names[result.call_id] for result in turn.results if result.call_id in names), None)
    present = turn.name if profile.tool_name_field == "name" else turn.extra.get(profile.tool_name_field)
    if name is None or name == present:
        return turn
    notices.append(changed(turn, "TOOL_NAME_DERIVED", f"tool message named {name!r} after its call"))
    if profile.tool_name_field == "name":
        return msgspec.structs.replace(turn, name=name, source=None)
    return msgspec.structs.replace(turn, name=None, extra={**turn.extra, profile.tool_name_field: name}, source=None)


def fit_arguments(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Turns with calls lose their source where arguments are objects; the adapter writes them from the text."""
    if profile.arguments == "string":
        return turns
    return tuple(_with_objects(turn, notices) if turn.source and turn.calls else turn for turn in turns)


def _with_objects(turn: Turn, notices: list[Notice]) -> Turn:
    notices.append(changed(turn, "ARGUMENTS_AS_OBJECT", "arguments of calls sent as objects"))
    return msgspec.structs.replace(turn, source=None)


def fit_empty(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Empty content beside calls, and blank text elsewhere."""
    return tuple(_filled(turn, profile, notices) for turn in turns)


def _filled(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if turn.calls:
        return _beside_calls(turn, profile, notices)
    if profile.empty_text is None:
        return turn
    stand_in = Text(profile.empty_text)
    blocks = tuple(_stand_in(block, stand_in) for block in turn.blocks) or (stand_in,)
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
    """Providers that refuse empty text refuse text of nothing but blanks, too."""
    return isinstance(block, Text) and not block.text.strip()


def _beside_calls(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if profile.empty_beside_calls == "keep" or turn.text:
        return turn
    content = "" if profile.empty_beside_calls == "empty" else None
    if turn.source is not None and "content" in turn.source and turn.source["content"] == content:
        return turn
    if turn.source is None and any(isinstance(block, Text) for block in turn.blocks) == (content is not None):
        return turn
    before = [block for block in turn.blocks if isinstance(block, Reasoning)]
    text = [Text(content)] if content is not None else []
    after = [block for block in turn.blocks if not isinstance(block, Text | Reasoning)]
    notices.append(changed(turn, "CONTENT_BESIDE_CALLS", f"content beside tool calls sent as {content!r}"))
    return turn.changed(*before, *text, *after)


def fit_content(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Lists of text parts become one text where a list is refused. A list with other parts stays a list."""
    return tuple(_one_text(turn, profile, notices) for turn in turns)


def _one_text(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    rule = profile.tool_content if turn.role == "tool" else profile.content
    if rule == "parts":
        return turn
    blocks = _joined(turn.blocks)
    listed = turn.source is not None and isinstance(turn.source.get("content"), list)
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
