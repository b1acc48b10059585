"""Turns a conversation into the values of a structured template: turns, parts, calls, results and tools."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from adapters.proto.backend.rendering import Values
from adapters.text.backend.encode import requested_schema, sampling_values
from adapters.text.backend.wire import FIELD
from gateway.core.conversation import (
    Block,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    NamedTool,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_system,
    item_of,
)
from gateway.core.data_url import is_data_url, read_image
from gateway.core.notices import Notice
from gateway.core.provider_state import provider_state


class TemplateUse(msgspec.Struct, frozen=True):
    """What a template has places for, and what it sends in place of what the client left out.

    `names` are the names that it sends, and `asked` those in its conditions. `provider` and `field` name the backend's
    opaque state in `extra_content`. `speakers` are the roles whose names are sent. `details` are the words of an
    image's detail that have a value; None: it is sent as it is, or not at all. `formats`: a schema is told from other
    shapes of the response. `system_apart`: the system turns have a place of their own. `results_in_parts`: results are
    parts of a turn, not turns. `reasoning`: reasoning is sent. `one_state`: a turn has one field for the state of its
    reasoning. `call_ids` and `result_ids`: this side has the ids that pair both. `image_bytes`: images are sent as
    their bytes, and `image_urls`, by their URLs: with both, only those of `data:` URLs have bytes.
    """

    names: frozenset[str]
    max_tokens: int | None
    max_stops: int | None
    provider: str
    field: str
    speakers: frozenset[str]
    details: frozenset[str] | None
    formats: bool
    system_apart: bool
    results_in_parts: bool
    reasoning: bool
    one_state: bool
    call_ids: bool
    result_ids: bool
    image_bytes: bool
    image_urls: bool
    asked: frozenset[str] = frozenset()

    @property
    def fields(self) -> frozenset[str]:
        """Returns the names for fields of the client, `$request.NAME`."""
        return frozenset(name for name in self.names | self.asked if name.startswith(FIELD))

    @property
    def paired_by_place(self) -> bool:
        """Returns whether only its place tells the call of a result."""
        return not (self.call_ids and self.result_ids)


def conversation_values(conversation: Conversation, use: TemplateUse) -> dict[str, Any]:
    """Returns the value of each name of a template; None: the name has no value. (Any: items are mappings.)"""
    choice = conversation.tool_choice
    kind = requested_format(conversation)
    offered = () if choice == "none" else conversation.tools
    system = [turn.text for turn in conversation.turns if is_system(turn) and turn.text]
    items = _Items(conversation, use)
    return {
        "$model": conversation.model or None,
        "$request_id": conversation.request_id,
        "$stop": [stop for stop in conversation.sampling.stop if stop][: use.max_stops],
        **sampling_values(conversation, use.max_tokens),
        **{name: conversation.params.get(name.removeprefix(FIELD)) for name in use.fields},
        "$choice": "named" if isinstance(choice, NamedTool) else choice,
        "$chosen": choice.name if isinstance(choice, NamedTool) else None,
        "$effort": conversation.params.get("reasoning_effort"),
        "$format": kind,
        "$schema": requested_schema(conversation) if not use.formats or kind == "json_schema" else None,
        "$system": "\n\n".join(system) or None,
        "$turns": [item for position, turn in enumerate(conversation.turns) for item in items.of(turn, position)],
        "$tools": [
            {
                "$name": tool.name,
                "$description": tool.description or None,
                "$parameters": dict(tool.parameters) or None,
                "$strict": tool.strict,
            }
            for tool in offered
        ],
    }


def requested_format(conversation: Conversation) -> str | None:
    """Returns the type of the shape that the client requested for the text of the response; None: any text."""
    shape = conversation.params.get("response_format")
    kind = shape.get("type") if isinstance(shape, dict) else None
    return None if kind in (None, "text") else str(kind)


def changes(conversation: Conversation, use: TemplateUse) -> list[Notice]:
    """Returns notices of what the template has no name or word for: reasoning, speakers, ids, details, descriptions."""
    turns, tools = conversation.turns, conversation.tools if "$tools" in use.names else ()
    thoughts = sum(isinstance(block, Reasoning) for turn in turns for block in turn.blocks)
    ids = sum(len(turn.calls) * (not use.call_ids) + len(turn.results) * (not use.result_ids) for turn in turns)
    described = sum(bool(tool.description) for tool in tools)
    of_messages = {
        "reasoning": 0 if use.reasoning else thoughts,
        "name": sum(turn.name is not None and _role(turn) not in use.speakers for turn in turns),
        "detail": 0 if use.details is None else _lost_details(turns, use.details),
        "call id": ids,
    }
    notices = _unsent("messages", of_messages)
    return notices + _unsent("tools", {"description": 0 if "$description" in use.names else described})


def lost_reasoning(conversation: Conversation, use: TemplateUse) -> list[Notice]:
    """Returns the notice of reasoning beside that whose state the one field of its turn has."""
    if not use.one_state:
        return []
    items = _Items(conversation, use)
    turns = [turn for turn in conversation.turns if turn.role == "assistant"]
    count = sum(len(items.told(turn)) - len(items.sent(turn)) for turn in turns)
    detail = f"{count} reasoning(s) beside another one of the turn: the backend has one field for state"
    return [Notice("encode", "dropped", "REASONING_NOT_SENT", detail, level="debug")] if count else []


def _unsent(where: str, counts: Mapping[str, int]) -> list[Notice]:
    fields = (*[name for name, count in counts.items() if count],)
    if not fields:
        return []
    words = ", ".join([f"{name} ({counts[name]})" for name in fields])
    detail = f"the backend has no field for {words} of {where}"
    return [Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=fields)]


def _role(turn: Turn) -> str:
    """Returns the variant of `$turns` that a turn is."""
    return "system" if is_system(turn) else turn.role


def _lost_details(turns: Sequence[Turn], words: frozenset[str]) -> int:
    """Returns how many images have a detail that the template has no word for."""
    details = [_detail(block) for turn in turns for block in turn.blocks if isinstance(block, Image)]
    return sum(detail not in (None, "auto", *words) for detail in details)


def _detail(image: Image) -> str | None:
    detail = image.extra.get("detail")
    return detail if isinstance(detail, str) else None


def unsent_turn(item: Values) -> Notice | None:
    """Returns the notice of an item of `$turns` that becomes no message; None: it says nothing, or only reasoning, of
    which other notices tell."""
    said = [part for part in item.get("$parts", ()) if part["$kind"] != "text" or part["$text"]]
    if item["$role"] != "tool" and all(part["$kind"] == "reasoning" for part in said):
        return None
    detail = f"no condition of the mapping holds for a turn of the role {item['$role']!r}"
    kinds = {part["$kind"] for part in said}
    lost = {
        "tool_calls": "call" in kinds or bool(item.get("$calls")),
        "tool_call_id": "result" in kinds or item["$role"] == "tool",
        "image_url": "image" in kinds,
    }
    fields = tuple([name for name, is_lost in lost.items() if is_lost])
    return Notice("encode", "dropped", "TURN_NOT_SENT", detail, level="warning", index=item["$index"], fields=fields)


class _Items:
    """Makes the items of `$turns`."""

    def __init__(self, conversation: Conversation, use: TemplateUse) -> None:
        # The names of the calls of each id. An id that occurs again means the calls of the last turn.
        self._called = {call.id: [call.name] for turn in conversation.turns for call in turn.calls}
        self._paths = conversation.paths
        self._use = use

    def of(self, turn: Turn, position: int) -> Iterator[Values]:
        """Yields the results of a turn, each as an item of its own unless they are parts, and then the turn if it says
        something else. Raises InvalidRequest for an image that holds none."""
        if is_system(turn) and self._use.system_apart:
            return
        if not self._use.results_in_parts:
            index = turn.index
            yield from ({"$role": "tool", "$index": index, **self._result(result)} for result in turn.results)
            if turn.role == "tool":
                return
        called: dict[str, list[str]] = {}
        for call in turn.calls:
            called.setdefault(call.id, []).append(call.name)
        self._called |= called
        turn = self._stated(turn)
        thoughts = self.sent(turn)
        index = position if turn.index is None else turn.index
        yield {
            "$role": "user" if turn.role == "tool" else _role(turn),
            "$index": turn.index,
            "$text": turn.text or None,
            "$speaker": turn.name,
            "$reasoning": "\n".join(thought.text for thought in thoughts if thought.text) or None,
            "$opaque": next((state for thought in thoughts if (state := self._state(thought.extra))), None),
            "$parts": [self._part(block, index, place) for place, block in enumerate(turn.blocks)],
            "$calls": [self._call(call) for call in turn.calls],
        }

    def told(self, turn: Turn) -> Sequence[Reasoning]:
        """Returns the reasoning of a turn that has a text or state."""
        thoughts = [block for block in self._stated(turn).blocks if isinstance(block, Reasoning)]
        return [thought for thought in thoughts if thought.text or self._state(thought.extra)]

    def sent(self, turn: Turn) -> Sequence[Reasoning]:
        """Returns the reasoning of a turn that is sent as one: state belongs to its own text alone."""
        thoughts = self.told(turn)
        with_state = [thought for thought in thoughts if self._state(thought.extra)]
        return with_state[:1] if with_state and self._use.one_state else thoughts

    def _part(self, block: Block, turn: int, place: int) -> Values:
        match block:
            case Text():
                return {"$kind": "text", "$text": block.text}
            case Image():
                return {
                    "$kind": "image",
                    "$url": block.url,
                    "$detail": _detail(block),
                    **self._image(block, turn, place),
                }
            case ToolCall():
                return {"$kind": "call", **self._call(block)}
            case ToolResult():
                return {"$kind": "result", **self._result(block)}
            case Reasoning():
                return {"$kind": "reasoning", "$text": block.text, "$opaque": self._state(block.extra)}
            case File():
                raise AssertionError("no mapping declares files, so that none arrives")
            case _:
                assert_never(block)

    def _image(self, image: Image, turn: int, place: int) -> Values:
        if not self._use.image_bytes or (self._use.image_urls and not is_data_url(image.url)):
            return {}
        param = self._paths.part.format(turn=turn, item=item_of(image, place), part=0)
        held = read_image(image.url, param)
        return {"$media_type": held.media_type, "$bytes": base64.b64decode(held.data)}

    def _call(self, call: ToolCall) -> Values:
        state = self._state(call.extra)
        return {"$id": call.id, "$name": call.name, "$arguments": call.arguments, "$opaque": state}

    def _result(self, result: ToolResult) -> Values:
        names = self._called.get(result.call_id, [])
        name = names.pop(0) if len(names) > 1 else next(iter(names), None)
        return {"$id": result.call_id, "$name": name, "$text": result.text, "$is_error": result.is_error or None}

    def _stated(self, turn: Turn) -> Turn:
        """Returns the turn with the state that some clients keep beside the message at the first of its reasoning."""
        thoughts = [block for block in turn.blocks if isinstance(block, Reasoning)]
        if not self._state(turn.extra) or any(self._state(thought.extra) for thought in thoughts):
            return turn
        text = thoughts[0].text if thoughts else ""
        rest = [block for block in turn.blocks if block not in thoughts[:1]]
        return turn.changed(Reasoning(text, extra=turn.extra), *rest)

    def _state(self, extra: JsonObject) -> str | None:
        state: Json = provider_state(extra, self._use.provider).get(self._use.field)
        return state if isinstance(state, str) else None
