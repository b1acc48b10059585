"""Reads each message of a chat as one Turn, and writes a Turn as messages; every repaired fault names its rule."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from adapters.ollama.client.calls import call_object, read_calls
from adapters.ollama.client.images import image_text, read_images
from gateway.core.conversation import EMPTY, Block, Image, Json, JsonObject, Reasoning, Role, Text, ToolResult, Turn
from gateway.dialects.derived_ids import derive_ids
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

Message = dict[str, Json]

_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_READ: Final[Mapping[Role, frozenset[str]]] = {
    "system": frozenset({"role", "content", "images"}),
    "developer": frozenset({"role", "content", "images"}),
    "user": frozenset({"role", "content", "images"}),
    "assistant": frozenset({"role", "content", "images", "thinking", "tool_calls"}),
    "tool": frozenset({"role", "content", "images", "tool_name", "tool_call_id"}),
}


def read_turns(messages: Sequence[Json], faults: Faults) -> tuple[Turn, ...]:
    """Returns a turn for every message that is an object. `faults` collects the violations.

    Calls and results without an id are matched by the function's name (`gateway.dialects.derived_ids`); a result
    without that, too, is matched by its position later. Raises InvalidRequest for an image that cannot be read.
    """
    turns: list[Turn] = []
    odd: list[int] = []
    for index, message in enumerate(messages):
        if isinstance(message, dict):
            turns.append(_turn(message, index, faults))
        else:
            odd.append(index)
    if odd:
        faults.add_each(
            "NOT_OBJECT",
            len(odd),
            lambda n: (odd[n], "", f"the message is {kind_of(messages[odd[n]])}, not an object"),
            "messages are not objects",
        )
    return derive_ids(turns).turns


def _turn(message: Message, index: int, faults: Faults) -> Turn:
    role = _role(message, index, faults)
    images = read_images(message.get("images"), f"messages[{index}].images")
    extra = _other_fields(message, _READ[role])
    if role == "tool":
        name, result = _result(message, images, index, faults)
        return Turn(role, (result,), name=name, index=index, extra=extra)
    blocks: list[Block] = []
    calls = read_calls(message.get("tool_calls"), index, faults) if role == "assistant" else ()
    thinking = message.get("thinking") if role == "assistant" else None
    if isinstance(thinking, str) and thinking:
        blocks.append(Reasoning(thinking))
    elif thinking not in (None, ""):
        extra = {**extra, "thinking": thinking}
    blocks += _text(message, index, faults, required=not (images or calls or blocks))
    return Turn(role, (*blocks, *images, *calls), index=index, extra=extra)


def _role(message: Message, index: int, faults: Faults) -> Role:
    """Returns the role, which Ollama reads in any case.

    A field that only one role may hold decides the role of a message with an unknown one; without one it is `user`. A
    message whose role is no text is refused; the rest of it is still read, so that every other fault is found.
    """
    written = message.get("role")
    if isinstance(written, str) and (role := _ROLES.get(written.lower())) is not None:
        return role
    read: Role = "user"
    if isinstance(message.get("tool_calls"), list):
        read = "assistant"
    elif isinstance(message.get("tool_name"), str) or isinstance(message.get("tool_call_id"), str):
        read = "tool"
    if isinstance(written, str):
        faults.add("ROLE_UNKNOWN", index, ".role", f"the role {written[:40]!r} is unknown; read as {read}")
    else:
        said = f"the role is {kind_of(written)}, not text" if "role" in message else "the message has no role"
        faults.add("ROLE_TYPE", index, ".role", said)
    return read


def _result(message: Message, images: tuple[Image, ...], index: int, faults: Faults) -> tuple[str | None, ToolResult]:
    """Returns the name of the function, and its result. The images stand first: their places are those in `images`."""
    name = message.get("tool_name")
    function = name if isinstance(name, str) and name.strip() else None
    call_id = message.get("tool_call_id")
    identity = call_id if isinstance(call_id, str) and call_id.strip() else ""
    if not identity and function is None:
        faults.add("TOOL_ID_MISSING", index, ".tool_name", "a tool message names neither a function nor a call")
    content: tuple[Image | Text, ...] = (*images, *_text(message, index, faults, required=not images))
    return function, ToolResult(identity, content, id_derived=not identity and function is not None)


def _text(message: Message, index: int, faults: Faults, *, required: bool) -> tuple[Text, ...]:
    content = message.get("content")
    if isinstance(content, str):
        return (Text(content),) if content or required else ()
    if content is None:
        if required:
            faults.add("CONTENT_MISSING", index, ".content")
        return ()
    faults.add("CONTENT_TYPE", index, ".content", f"content is {kind_of(content)}, not text")
    return (Text(msgspec.json.encode(content).decode()),)


def _other_fields(message: Message, read: frozenset[str]) -> JsonObject:
    """Returns the fields that no block holds, without null fields."""
    if message.keys() <= read:
        return EMPTY
    return {name: value for name, value in message.items() if name not in read and value is not None}


def encode_turn(turn: Turn) -> list[JsonObject]:
    """Returns the messages. No request of Ollama has other parts than text and images."""
    messages = [_result_message(turn, result) for result in turn.results]
    if not messages or len(turn.blocks) > len(messages):
        messages.append(_message(turn))
    return messages


def _result_message(turn: Turn, result: ToolResult) -> JsonObject:
    name: dict[str, Json] = {} if turn.name is None else {"tool_name": turn.name}
    images: list[Json] = [image_text(part) for part in result.content if isinstance(part, Image)]
    shown: dict[str, Json] = {"images": images} if images else {}
    return {"role": "tool", "content": result.text, "tool_call_id": result.call_id, **name, **shown}


def _message(turn: Turn) -> JsonObject:
    message: dict[str, Json] = {"role": _encoded_role(turn), "content": turn.text}
    if thinking := "".join([block.text for block in turn.blocks if isinstance(block, Reasoning)]):
        message["thinking"] = thinking
    if images := [image_text(block) for block in turn.blocks if isinstance(block, Image)]:
        message["images"] = [*images]
    if calls := turn.calls:
        message["tool_calls"] = [
            call_object(call.id, call.name, call.arguments, position) for position, call in enumerate(calls)
        ]
    return message


def _encoded_role(turn: Turn) -> str:
    """Returns a role that Ollama knows."""
    return {"developer": "system", "tool": "user"}.get(turn.role, turn.role)
