"""Reads what the script needs from a Responses body, and rejects a body that breaks the protocol or has encrypted
content of another backend."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.endpoint import Refused
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder
from gateway.demo.strict_models import is_strict

# Fields that would change the response, and the values of each that have no effect.
_HARMLESS: Final[Mapping[str, tuple[Json, ...]]] = {
    "background": (None, False),
    "conversation": (None,),
    "prompt": (None,),
    "top_logprobs": (None, 0),
}
_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_QUESTIONS: Final = frozenset({"message"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_ENCRYPTED: Final = "reasoning.encrypted_content"
# The only parameter of a custom tool.
_INPUT: Final[JsonObject] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class ResponsesRequest(msgspec.Struct, frozen=True):
    """A decoded body. `asked` holds the user's newest words with their markers, `dialogue` without them. `custom` are
    the names of the custom tools."""

    dialogue: Dialogue
    asked: str
    model: str
    stream: bool
    max_tokens: int | None
    text_format: JsonObject
    prompt: str
    summarises: bool
    encrypts: bool
    custom: frozenset[str]


def read_request(body: JsonObject) -> ResponsesRequest:
    """Decodes the body. Raises Refused as the real endpoint does: with the path of the invalid field."""
    if body.get("previous_response_id") is not None:
        message = f"Previous response with id '{body['previous_response_id']}' not found."
        raise Refused(message, "previous_response_id", "previous_response_not_found")
    for name, harmless in _HARMLESS.items():
        if not any(body.get(name) is value for value in harmless):
            raise Refused(f"{name} is not supported by the demo model", name)
    items = _items(body.get("input"))
    _check_calls(items)
    _check_reasoning(items)
    model = str(body.get("model") or "demo-responses")
    if is_strict(model):
        _check_pairs(items)
    newest, asked = _question(items)
    prompt = "\n".join([text_of(body.get("instructions")), *(_words(item) for item in items)])
    reasoning = _object(body.get("reasoning"))
    limit = body.get("max_output_tokens")
    include = body.get("include")
    tools = _tools(body.get("tools"))
    return ResponsesRequest(
        dialogue=_dialogue(body, items, newest, without_markers(asked), working_folder(prompt)),
        asked=asked,
        model=model,
        stream=body.get("stream") is True,
        max_tokens=limit if isinstance(limit, int) else None,
        text_format=_object(_object(body.get("text")).get("format")),
        prompt=prompt,
        summarises=reasoning.get("summary") is not None,
        encrypts=isinstance(include, list) and _ENCRYPTED in include,
        custom=frozenset(str(tool.get("name")) for tool in tools if tool.get("type") == "custom"),
    )


def text_of(content: Json) -> str:
    """Returns content as text: a string, or the text of the parts of a list."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _items(given: Json) -> list[JsonObject]:
    """Returns the items of the input; one of a message may lack its type."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise Refused("input must be a text or a non-empty array", "input")
    return [_item(item, at) for at, item in enumerate(given)]


def _item(item: Json, at: int) -> JsonObject:
    if not isinstance(item, dict):
        raise Refused(f"input[{at}] must be an object", f"input[{at}]")
    kind = item.get("type") or ("message" if "role" in item else None)
    if not isinstance(kind, str) or (kind == "message" and item.get("role") not in _ROLES):
        raise Refused(f"input[{at}] must be an item of a known type or role", f"input[{at}]")
    if kind == "item_reference":
        raise Refused(f"Item with id '{item.get('id')}' not found.", "input", status=404)
    return {**item, "type": kind}


def _check_calls(items: Sequence[JsonObject]) -> None:
    """Raises Refused unless every call has its output, and every output a call before it."""
    waiting: dict[str, None] = {}
    for item in items:
        call_id = str(item.get("call_id"))
        if item["type"] in _CALLS:
            waiting[call_id] = None
        elif item["type"] in _OUTPUTS:
            if call_id not in waiting:
                raise Refused(f"No tool call found for function call output with call_id {call_id}.", "input")
            del waiting[call_id]
    for call_id in waiting:
        raise Refused(f"No tool output found for function call {call_id}.", "input")


def _check_reasoning(items: Sequence[JsonObject]) -> None:
    """Raises Refused for reasoning without its text that this backend did not write: it stores none."""
    for item in items:
        if item["type"] != "reasoning":
            continue
        content, item_id = item.get("encrypted_content"), item.get("id")
        if content is None and item.get("content"):
            continue
        if content is None:
            message = f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false."
            raise Refused(message, "input", status=404)
        if not isinstance(item_id, str) or content != encrypted_content(item_id):
            raise Refused("The encrypted content could not be verified.", None, "invalid_encrypted_content")


def _check_pairs(items: Sequence[JsonObject]) -> None:
    """Raises Refused unless reasoning stands before the first call of each round and has an item behind it."""
    said = _QUESTIONS | _OUTPUTS
    reasoned = called = False
    for item, after in pairwise((*items, {"type": ""})):
        kind = str(item["type"])
        if kind == "reasoning":
            reasoned = True
            if after["type"] not in {*_CALLS, "message", "reasoning"} or after.get("role") in _ROLES - {"assistant"}:
                message = (
                    f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
                )
                raise Refused(message, "input")
        elif kind in _CALLS and not (reasoned or called):
            message = f"Item '{item.get('id')}' of type '{kind}' was provided without its required 'reasoning' item."
            raise Refused(message, "input")
        called = kind in _CALLS
        if kind in said and item.get("role") != "assistant":
            reasoned = False


def _question(items: Sequence[JsonObject]) -> tuple[int, str]:
    """Returns the index and the text of the newest item that has text of the user."""
    for at in range(len(items) - 1, -1, -1):
        if items[at].get("role") == "user" and (said := own_words(text_of(items[at].get("content")))):
            return at, said
    return -1, ""


def _words(item: JsonObject) -> str:
    return text_of(item.get("content")) or text_of(item.get("output"))


def _dialogue(body: JsonObject, items: Sequence[JsonObject], newest: int, question: str, folder: str) -> Dialogue:
    effort = _object(body.get("reasoning")).get("effort")
    forced, choice = _choice(body.get("tool_choice"))
    return Dialogue(
        question=question,
        tools=tuple(_offered(tool) for tool in _tools(body.get("tools"))),
        rounds=_rounds(items[newest + 1 :]),
        turn=max(newest, 0),
        choice=choice,
        forced=forced,
        parallel=body.get("parallel_tool_calls") is not False,
        reasoning=is_strict(str(body.get("model"))) or (effort is not None and effort not in ("none", "minimal")),
        folder=folder,
    )


def _rounds(items: Sequence[JsonObject]) -> tuple[tuple[Result, ...], ...]:
    """Returns the results of each round: calls that follow each other are one."""
    outputs = {item.get("call_id"): text_of(item.get("output")) for item in items if item["type"] in _OUTPUTS}
    rounds: list[tuple[Result, ...]] = []
    called = False
    for item in items:
        calls = item["type"] in _CALLS
        if calls:
            result = Result(str(item.get("name")), outputs.get(item.get("call_id"), ""))
            rounds = [*rounds[:-1], (*rounds[-1], result)] if called else [*rounds, (result,)]
        called = calls
    return tuple(rounds)


def _tools(tools: Json) -> list[JsonObject]:
    """Returns the tools that can be called: functions and custom tools with a name."""
    listed = tools if isinstance(tools, list) else ()
    return [
        tool
        for tool in listed
        if isinstance(tool, dict) and tool.get("type") in ("function", "custom") and tool.get("name")
    ]


def _offered(tool: JsonObject) -> OfferedTool:
    schema = _INPUT if tool.get("type") == "custom" else _object(tool.get("parameters"))
    return OfferedTool(str(tool["name"]), str(tool.get("description") or ""), schema)


def _choice(choice: Json) -> tuple[str | None, Literal["auto", "none", "required"]]:
    match choice:
        case {"name": str(name)}:
            return name, "required"
        case "none" | "required":
            return None, choice
        case _:
            return None, "auto"


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def encrypted_content(item_id: str) -> str:
    """Returns the content for the item with this id; no other backend and no other item has it."""
    return "demo-" + hashlib.sha256(item_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
