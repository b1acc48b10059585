"""Encodes turns as items of `input`: the client's own where no pass changed them, else items made from the blocks."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from adapters.openai_responses import DIALECT, PROVIDER
from adapters.openai_responses.call_items import call_item, output_item
from adapters.openai_responses.function_names import ToolKind, ToolNames
from gateway.core.conversation import EMPTY, File, Image, Json, JsonObject, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.data_url import is_data_url
from gateway.core.provider_state import STATE_FIELD, provider_state

Part = Text | Image | File

# Where the items of a turn, or the text of the system turn in front, stand in its source.
ITEMS: Final = "input"
INSTRUCTIONS: Final = "instructions"
# The field that names the stored response which a request continues.
PREVIOUS: Final = "previous_response_id"
PHASE: Final = "phase"
# The field of a part that ends a prefix of the prompt for the cache.
BREAKPOINT: Final = "prompt_cache_breakpoint"
# The type of an item that stands for a stored one.
REFERENCE: Final = "item_reference"

Item = dict[str, Json]


def type_of(item: JsonObject) -> str:
    """Returns the type of an item of the input, also of one that does not name it: with an id alone it is a reference,
    else a message."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if kind is None and "role" not in item and "content" not in item and "id" in item:
        return REFERENCE
    return "message"


def encode_turn(turn: Turn) -> list[JsonObject]:
    """Returns the items of a single turn, whose calls are all of functions."""
    return ItemEncoder(ToolNames()).encode(turn)


class ItemEncoder:
    """Encodes the turns of one conversation, in their order: an output has the form of the call that it answers.

    `names` gives the calls the client's kinds and names; without it every call is one of a function. `own`: the client
    spoke this dialect, so that what the gateway does not know of a message, a part or a call is a field of this API.
    """

    def __init__(self, names: ToolNames, *, own: bool = False) -> None:
        self._names = names
        self._own = own
        self._kinds: dict[str, ToolKind] = {}

    def encode(self, turn: Turn) -> list[JsonObject]:
        """Returns the items of the next turn."""
        self._kinds |= {call.id: self._names.tool(call.name).kind for call in turn.calls}
        source = None if turn.source is None else turn.source.in_dialect(DIALECT)
        if source is not None and isinstance(items := source.get(ITEMS), list):
            return [item for item in items if isinstance(item, dict)]
        return list(self._made(turn))

    def _made(self, turn: Turn) -> Iterator[JsonObject]:
        parts: list[Part] = []
        for block in turn.blocks:
            match block:
                case Text() | Image() | File():
                    parts.append(block)
                case Reasoning() | ToolCall() | ToolResult():
                    yield from self._message(turn, parts)
                    parts = []
                    yield self._item(block)
                case _:
                    assert_never(block)
        yield from self._message(turn, parts)

    def _item(self, block: Reasoning | ToolCall | ToolResult) -> JsonObject:
        match block:
            case Reasoning():
                return _reasoning(block)
            case ToolCall():
                made = call_item(self._names.tool(block.name), block.id, block.arguments)
                return {**_unknown(block.extra), **made} if self._own else made
            case ToolResult():
                kind = self._kinds.get(block.call_id, "function")
                plain = kind not in ("function", "custom")
                output = block.text if plain else self._content(block.content, "input_text")
                return output_item(kind, block.call_id, output, failed=block.is_error)
            case _:
                assert_never(block)

    def _message(self, turn: Turn, parts: list[Part]) -> Iterator[JsonObject]:
        if not parts:
            return
        role = "user" if turn.role == "tool" else turn.role
        content: Json
        if turn.role == "assistant":
            content = list(self._parts(parts, "output_text"))
        else:
            content = self._content(parts, "input_text")
        fields = _unknown(turn.extra) if self._own else _phase(turn)
        yield {"type": "message", "role": role, "content": content, **fields}

    def _content(self, parts: Iterable[Part], text_type: str) -> Json:
        """Returns a string for a single text, else an array of parts."""
        match tuple(parts):
            case ():
                return ""
            case (Text(text=text, extra=extra),) if not (extra and (self._own or BREAKPOINT in extra)):
                return text
            case several:
                return list(self._parts(several, text_type))

    def _parts(self, parts: Iterable[Part], text_type: str) -> Iterator[Json]:
        for part in parts:
            if isinstance(part, File) or not part.extra:
                more = EMPTY
            elif self._own:
                more = _unknown(part.extra)
            else:
                more = {BREAKPOINT: part.extra[BREAKPOINT]} if BREAKPOINT in part.extra else EMPTY
            yield {**more, **_part(part, text_type)}


def _unknown(extra: JsonObject) -> JsonObject:
    """Returns the fields that the client wrote, without the state of other providers, which no item of this API has."""
    return {name: value for name, value in extra.items() if name != STATE_FIELD} if STATE_FIELD in extra else extra


def _phase(turn: Turn) -> JsonObject:
    """Returns the field by which the maker of an assistant's message distinguishes a comment from the answer."""
    return {PHASE: turn.extra[PHASE]} if PHASE in turn.extra and turn.role == "assistant" else EMPTY


def _part(part: Part, text_type: str) -> Item:
    match part:
        case Text() if part.extra.get("type") == "refusal" and text_type == "output_text":
            return {"type": "refusal", "refusal": part.text}
        case Text() if text_type == "output_text":
            return {"type": "output_text", "text": part.text, "annotations": []}
        case Text():
            return {"type": text_type, "text": part.text}
        case Image():
            return {"type": "input_image", "image_url": part.url, "detail": part.extra.get("detail") or "auto"}
        case File():
            return dict(part.part) or _file(part)
        case _:
            assert_never(part)


def _file(block: File) -> Item:
    if is_data_url(block.url):
        # The API wants a name beside the bytes of a file.
        return {"type": "input_file", "filename": block.name or "document.pdf", "file_data": block.url}
    return {"type": "input_file", "file_url": block.url}


def _reasoning(block: Reasoning) -> JsonObject:
    """Reasoning that came from its maker goes back with its id and its encrypted text; its readable text is then a
    summary, as the maker wrote it."""
    state = provider_state(block.extra, PROVIDER)
    if state:
        summary: list[Json] = [{"type": "summary_text", "text": block.text}] if block.text else []
        return {"type": "reasoning", **state, "summary": summary}
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": block.text}]}
