"""Reads the content of a message as blocks. What only Anthropic's own servers know is reported and left out."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from adapters.anthropic_messages import PROVIDER
from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.paths import PATHS
from gateway.core.conversation import EMPTY, Block, File, Image, Json, JsonObject, Reasoning, Text, ToolCall, ToolResult
from gateway.core.data_url import data_url
from gateway.core.errors import InvalidRequest
from gateway.core.provider_state import with_provider_state
from gateway.core.sealed_compaction import sealed_text_in, unreadable_compaction
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

Part: TypeAlias = Text | Image | File

UNNAMED: Final = "unknown"
# The API has no other type for the bytes of a document.
PDF: Final = "application/pdf"
# Blocks that change which tools are offered.
TOOL_ADDITION: Final = "tool_addition"
TOOL_REMOVAL: Final = "tool_removal"
TOOL_CHANGES: Final = frozenset({TOOL_ADDITION, TOOL_REMOVAL})


class ToolChange(msgspec.Struct, frozen=True):
    """A block that changes which tools are offered, and its place: the index of its message and its whole path.

    `of_provider`: the provider wrote it, into the block of a compaction.
    """

    block: JsonObject
    index: int
    param: str
    of_provider: bool = False


class ContentReader(msgspec.Struct):
    """Reads the blocks of all messages. `faults` collects the violations, `changes` what is left out, `compactions` the
    positions of messages in which a compaction stands, `tool_changes` the blocks that change which
    tools are offered, and `directing` the messages with fields that are directives, by their index.

    Every method names a place by the message's position and by the rest of its path.
    """

    faults: Faults
    changes: Changes
    compactions: set[int] = msgspec.field(default_factory=set)
    tool_changes: list[ToolChange] = []
    directing: list[tuple[int, JsonObject]] = []

    def read(self, content: Json, index: int, place: str, known: frozenset[str]) -> list[tuple[int, Block]]:
        """Returns the blocks with their positions, of a content of text one at 0. `known` are the permitted types.

        Faults: CONTENT_MISSING, CONTENT_TYPE, CONTENT_EMPTY_ARRAY, PART_TYPE and those of the blocks. Raises
        InvalidRequest for a change of tools outside a message of the system.
        """
        if isinstance(content, str):
            return [(0, Text(content))]
        if content is None:
            self.faults.add("CONTENT_MISSING", index, place)
            return []
        if isinstance(content, list):
            if not content:
                self.faults.add("CONTENT_EMPTY_ARRAY", index, place)
            return self._blocks(content, index, place, known)
        said = f"content is {kind_of(content)}, not text or an array of blocks"
        self.faults.add("CONTENT_TYPE", index, place, said)
        return self._blocks([content], index, place, known) if isinstance(content, dict) else [(0, _repaired(content))]

    def _blocks(self, content: list[Json], index: int, place: str, known: frozenset[str]) -> list[tuple[int, Block]]:
        found: list[tuple[int, Block]] = []
        broken: list[tuple[int, str]] = []
        for position, value in enumerate(content):
            blocks = self._block(value, index, f"{place}[{position}]", position, known)
            if isinstance(blocks, str):
                broken.append((position, blocks))
                blocks = (_repaired(value),)
            found += [(position, block) for block in blocks]
        if broken:
            self.faults.add_each(
                "PART_TYPE",
                len(broken),
                lambda n: (index, f"{place}[{broken[n][0]}]", broken[n][1]),
                "content blocks are malformed",
            )
        return found

    def _block(
        self, value: Json, index: int, place: str, position: int, known: frozenset[str]
    ) -> tuple[Block, ...] | str:
        """Returns the blocks that a value is read as, or what is wrong with it."""
        if not isinstance(value, dict):
            return f"a content block is {kind_of(value)}, not an object"
        kind = value.get("type")
        if not isinstance(kind, str) or not kind:
            return "a content block has no type"
        if kind == "compaction" and sealed_text_in(value) is not None:
            return self._sealed(value, index, position, known)
        reader = _READERS.get(kind)
        if reader is None and "image" in known:
            return (File(kind, value, position),)
        if reader is None:
            self.changes.drop_block(kind, index)
            return ()
        if kind not in known:
            if kind in TOOL_CHANGES:
                raise _misplaced(kind, _param(index, place))
            return f"a block of type {kind!r} does not belong here"
        blocks = reader(self, value, index, place, position)
        return f"a block of type {kind!r} lacks the field that its type requires" if blocks is None else blocks

    def _text(self, block: JsonObject, *_: object) -> tuple[Block, ...] | None:
        text = block.get("text")
        if not isinstance(text, str):
            return None
        # Empty text says nothing, and backends refuse it.
        return (Text(text, _rest(block, "text")),) if text else ()

    def _image(self, block: JsonObject, index: int, place: str, position: int) -> tuple[Block, ...] | None:
        match block.get("source"):
            case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
                return (Image(data_url(media_type, data), _rest(block, "source"), position),)
            case {"type": "url", "url": str(url)}:
                return (Image(url, _rest(block, "source"), position),)
            case {"type": "file"}:
                return (File("file", block, position),)
            case _:
                return None

    def _document(self, block: JsonObject, index: int, place: str, position: int) -> tuple[Block, ...] | None:
        match block.get("source"):
            case {"type": "base64", "data": str(data), **others}:
                media_type = others.get("media_type")
                held = data_url(media_type if isinstance(media_type, str) else PDF, data)
                return (File("document", block, position, held, _title(block)),)
            case {"type": "url", "url": str(url)}:
                return (File("document", block, position, url, _title(block)),)
            case {"type": "text", "data": str(data)}:
                return (_titled(block, data),)
            case {"type": "content", "content": str(data)}:
                return (_titled(block, data),)
            case {"type": "content", "content": [*parts]}:
                inner = self._blocks(list(parts), index, f"{place}.source.content", _IN_DOCUMENT)
                title = (_titled(block, ""),) if block.get("title") else ()
                return (*title, *[_placed(part, position) for _, part in inner])
            case {"type": "file"}:
                return (File("file", block, position),)
            case _:
                return None

    def _search_result(self, block: JsonObject, index: int, place: str, position: int) -> tuple[Block, ...] | None:
        content = block.get("content")
        if not isinstance(content, list):
            return None
        parts = [part for _, part in self._blocks(content, index, f"{place}.content", _IN_SEARCH_RESULT)]
        texts = [part.text for part in parts if type(part) is Text]
        head = [text for name in ("title", "source") if isinstance(text := block.get(name), str)]
        return (Text("\n".join([*head, *texts]), _rest(block, "title", "source", "content")),)

    def _thinking(self, block: JsonObject, *_: object) -> tuple[Block, ...] | None:
        thought, signature = block.get("thinking"), block.get("signature")
        if not isinstance(thought, str):
            return None
        signed = with_provider_state(PROVIDER, {"signature": signature}) if signature else EMPTY
        return (Reasoning(thought, extra=signed),) if thought or signed else ()

    def _redacted_thinking(self, block: JsonObject, *_: object) -> tuple[Block, ...] | None:
        data = block.get("data")
        return (Reasoning("", extra=with_provider_state(PROVIDER, {"data": data})),) if isinstance(data, str) else None

    def _tool_use(self, block: JsonObject, index: int, place: str, position: int) -> tuple[Block, ...]:
        identity = block.get("id")
        if not isinstance(identity, str) or not identity.strip():
            self.faults.add("CALL_ID_MISSING", index, f"{place}.id")
            identity = ""
        name = block.get("name")
        if not isinstance(name, str) or not name.strip():
            self.faults.add("CALL_NAME", index, f"{place}.name", "a tool_use block has no name", identity)
            name = UNNAMED
        given = block.get("input")
        if not isinstance(given, dict):
            detail = f"input is {kind_of(given)}, not an object"
            self.faults.add("CALL_ARGS_TYPE", index, f"{place}.input", detail, identity)
        # Text in the place of an object is most likely its JSON text.
        arguments = given if isinstance(given, str) else "{}" if given is None else encode_json(given)
        return (ToolCall(identity, name, arguments, _rest(block, "id", "name", "input"), item=position),)

    def _tool_result(self, block: JsonObject, index: int, place: str, position: int) -> tuple[Block, ...]:
        call_id = block.get("tool_use_id")
        if not isinstance(call_id, str) or not call_id.strip():
            self.faults.add("TOOL_ID_MISSING", index, f"{place}.tool_use_id")
            call_id = ""
        content = block.get("content")
        parts: list[Part] = []
        # A tool that returns nothing has a result without content.
        if content is not None and content != []:
            found = self.read(content, index, f"{place}.content", _IN_RESULT)
            parts = [part for _, part in found if isinstance(part, Text | Image | File)]
        return (ToolResult(call_id, tuple(parts), block.get("is_error") is True, item=position),)

    def _tool_reference(self, block: JsonObject, *_: object) -> tuple[Block, ...] | None:
        name = block.get("tool_name")
        return (Text(name),) if isinstance(name, str) else None

    def _tool_change(self, block: JsonObject, index: int, place: str, *_: object) -> tuple[Block, ...]:
        self.tool_changes.append(ToolChange(block, index, _param(index, place)))
        return ()

    def _compaction(self, block: JsonObject, index: int, place: str, *_: object) -> tuple[Block, ...]:
        content, state = block.get("content"), block.get("encrypted_content")
        changes = block.get("tool_changes")
        for at, change in enumerate(changes if isinstance(changes, list) else ()):
            if isinstance(change, dict) and change.get("type") in TOOL_CHANGES:
                self.tool_changes.append(ToolChange(change, index, _param(index, f"{place}.tool_changes[{at}]"), True))
        kept = EMPTY
        if isinstance(state, str) and state:
            kept = with_provider_state(PROVIDER, {"encrypted_content": state})
        if not isinstance(content, str) or not content:
            # A compaction that failed has neither text nor state.
            return (Reasoning("", extra=kept),) if kept else ()
        self.compactions.add(index)
        return (Text(content, {**_rest(block, "content", "encrypted_content"), **kept}),)

    def _sealed(self, block: JsonObject, index: int, position: int, known: frozenset[str]) -> tuple[Block, ...]:
        """Returns a compaction of the gateway, which is opened later. Raises InvalidRequest for one in another place
        than an answer: what the model reads in its place is no words of a user and no result."""
        if "compaction" not in known:
            raise unreadable_compaction("system" if index < 0 else self.faults.paths.turn.format(turn=index))
        self.compactions.add(index)
        self.changes.compacted = True
        return (File("compaction", block, position),)


_Reader: TypeAlias = Callable[[ContentReader, JsonObject, int, str, int], tuple[Block, ...] | None]

_READERS: Final[Mapping[str, _Reader]] = {
    "text": ContentReader._text,
    "image": ContentReader._image,
    "document": ContentReader._document,
    "search_result": ContentReader._search_result,
    "thinking": ContentReader._thinking,
    "redacted_thinking": ContentReader._redacted_thinking,
    "tool_use": ContentReader._tool_use,
    "tool_result": ContentReader._tool_result,
    "tool_reference": ContentReader._tool_reference,
    "compaction": ContentReader._compaction,
    TOOL_ADDITION: ContentReader._tool_change,
    TOOL_REMOVAL: ContentReader._tool_change,
}

# Every type of block that is read.
BLOCK_TYPES: Final = frozenset(_READERS)
# Of the system prompt, and of messages of the role system.
IN_SYSTEM: Final = frozenset({"text"})
IN_SYSTEM_MESSAGE: Final = IN_SYSTEM | TOOL_CHANGES
IN_USER: Final = frozenset({"text", "image", "document", "search_result", "tool_result"})
IN_ASSISTANT: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "compaction"})
_IN_RESULT: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_IN_DOCUMENT: Final = frozenset({"text", "image"})
_IN_SEARCH_RESULT: Final = frozenset({"text"})


def _param(index: int, place: str) -> str:
    return place if index < 0 else f"{PATHS.turn.format(turn=index)}{place}"


def _misplaced(kind: str, param: str) -> InvalidRequest:
    return InvalidRequest(f"{param} must stand in a message of the role system: it is a {kind}.", param=param)


def _title(block: JsonObject) -> str:
    title = block.get("title")
    return title if isinstance(title, str) else ""


def _titled(block: JsonObject, data: str) -> Text:
    """Returns a document of text below its title and its context."""
    head = [text for name in ("title", "context") if isinstance(text := block.get(name), str) and text]
    return Text("\n".join([*head, data] if data else head), _rest(block, "source", "title", "context"))


def _placed(part: Block, position: int) -> Block:
    return msgspec.structs.replace(part, item=position) if isinstance(part, Image | File) else part


def _repaired(value: Json) -> Text:
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, dict) and isinstance(text := value.get("text"), str):
        return Text(text)
    return Text(encode_json(value))


def _rest(block: JsonObject, *read: str) -> JsonObject:
    """Returns the fields of a block that its value does not hold itself."""
    if block.keys() <= {"type", *read}:
        return EMPTY
    rest = {name: value for name, value in block.items() if name != "type" and name not in read and value is not None}
    return rest or EMPTY
