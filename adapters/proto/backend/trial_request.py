"""Defines the trial request of a template: a conversation with every kind of turn, of which nothing may get lost."""

import base64
import json
from typing import Final

from msgspec.structs import replace

from adapters.proto.backend.mapping_error import mapping_error
from gateway.core.conversation import (
    Block,
    Conversation,
    Image,
    Json,
    NamedTool,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.provider_state import with_provider_state

TRIAL_TEXT: Final = Conversation(
    (Turn("system", (Text("a rule of the system"),)), Turn("user", (Text("a question of the user"),))), model="model"
)

_PARAMETER: Final = "offered_parameter"
_FORMAT_PROPERTY: Final = "property_of_the_response"


def check_texts(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops all text of a role. What is in the trial request is what counts."""
    for turn in trial.turns:
        texts = [block.text for block in turn.blocks if isinstance(block, Text | ToolResult)]
        if not all(text.encode() in request for text in texts):
            beside = " beside calls" if turn.calls else ""
            raise mapping_error("request", f"no field gets the text of the role {turn.role!r}{beside}")


def check_calls(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops calls or their arguments. `trial` has no results, which may have the names of their
    calls."""
    for turn in trial.turns:
        beside = "beside" if turn.text else "without"
        for call in turn.calls:
            if call.name.encode() not in request:
                raise mapping_error("request", f"no field gets the calls of a turn {beside} text")
            if not all(name.encode() in request for name in json.loads(call.arguments)):
                raise mapping_error("request", f"no field gets $arguments of the calls of a turn {beside} text")


def with_arguments(trial: Conversation) -> Conversation:
    """Returns the trial request with an argument of its own in each call."""
    turns = [turn.changed(*map(_with_argument, turn.blocks)) for turn in trial.turns]
    return replace(trial, turns=tuple(turns))


def _with_argument(block: Block) -> Block:
    return replace(block, arguments=f'{{"of_{block.id}": 1}}') if isinstance(block, ToolCall) else block


def check_images(request: bytes, trial: Conversation) -> None:
    """Refuses a template that has a place for images, but drops some of them."""
    for turn in trial.turns:
        for image in (block for block in turn.blocks if isinstance(block, Image)):
            written = image.url.partition(",")[2].encode()
            if written not in request and base64.b64decode(written) not in request:
                beside = "beside" if turn.text else "without"
                raise mapping_error("request", f"no field gets the images of a turn {beside} text")


def check_tools(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops tools, or the schemas of their arguments."""
    for tool in trial.tools:
        if tool.name.encode() not in request:
            described = "with" if tool.description else "without"
            raise mapping_error("request", f"no field gets $name of a tool {described} a description")
    if _PARAMETER.encode() not in request:
        raise mapping_error("request", "no field gets $parameters of the tools")


def check_schema(request: bytes) -> None:
    """Refuses a template that drops the schema of `shaped`."""
    if _FORMAT_PROPERTY.encode() not in request:
        reason = "no field gets $schema for 'json_schema', whose requests have a schema"
        raise mapping_error("request", reason)


def filled(trial: Conversation) -> Conversation:
    """Returns the trial request with all that most requests lack: names of speakers, failures, limits, an effort."""
    turns = [replace(turn.changed(*map(_failed, turn.blocks)), name="a_speaker") for turn in trial.turns]
    sampling = Sampling(max_tokens=1, temperature=0.5, top_p=0.5, stop=("a stop",), seed=1)
    return replace(trial, turns=tuple(turns), sampling=sampling, params={"reasoning_effort": "high"})


def shaped(trial: Conversation, kind: str) -> Conversation:
    """Returns the trial request with a shape of the response, of this type."""
    shape: Json = {"type": kind, "json_schema": {"name": "response", "schema": _object_with(_FORMAT_PROPERTY)}}
    return replace(trial, params={**trial.params, "response_format": shape})


def _failed(block: Block) -> Block:
    return replace(block, is_error=True) if isinstance(block, ToolResult) else block


def with_empty_result(trial: Conversation) -> Conversation:
    """Returns the trial request with one more call, of which nothing came."""
    call, result = ToolCall("call_4", "first_tool", "{}"), ToolResult("call_4", (Text(""),))
    return replace(trial, turns=(*trial.turns, Turn("assistant", (call,)), Turn("tool", (result,))))


def with_unknown_result(trial: Conversation) -> Conversation:
    """Returns the trial request with a result of no call: its call has no name."""
    return replace(trial, turns=(*trial.turns, Turn("tool", (ToolResult("call_0", (Text("a late result"),)),))))


def trial_conversation(provider: str, field: str, *, tools: bool, images: bool) -> Conversation:
    """Returns a request with every kind of turn and part, each with a text of its own; without `tools` there are no
    calls of several at once, and no results, and without `images` no turn that has only one."""
    state = with_provider_state(provider, {field: "c3RhdGU="})
    turns: tuple[Turn, ...] = (
        Turn("system", (Text("a rule of the system"),)),
        Turn("user", (Text("a question of the user"), _image("a picture beside text"))),
        Turn(
            "assistant",
            (
                Reasoning("reason", extra=state),
                Text("a plan of the assistant"),
                ToolCall("call_1", "first_tool", "{}", state),
            ),
        ),
    )
    if tools:
        turns += (
            Turn("tool", (ToolResult("call_1", (Text("a first result"),)),)),
            Turn("assistant", (ToolCall("call_2", "second_tool", "{}"), ToolCall("call_3", "third_tool", "{}"))),
            Turn("tool", (ToolResult("call_2", (Text("a second result"),)),)),
            Turn("tool", (ToolResult("call_3", (Text("a third result"),)),)),
        )
    turns += (
        Turn("assistant", (Text("an answer of the assistant"),)),
        Turn("user", (Text("another question of the user"),)),
    )
    if images:
        turns += (Turn("user", (_image("a picture alone"),)),)
    offered = (ToolSpec("offered_tool", "description", _object_with(_PARAMETER)), ToolSpec("undescribed_tool"))
    return Conversation(turns, offered, NamedTool("offered_tool"), model="model")


def _object_with(name: str) -> dict[str, Json]:
    return {"type": "object", "properties": {name: {"type": "string"}}}


def _image(content: str) -> Image:
    return Image(f"data:image/png;base64,{base64.b64encode(content.encode()).decode()}")
