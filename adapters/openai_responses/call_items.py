"""Reads and makes the items of tool calls and of their outputs, one form for each kind of tool.

As a function every tool takes JSON arguments: a custom tool its free text as `{"input": TEXT}`, a built-in one the
object that its item holds (`action`, `operation`).
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from adapters.openai_responses.function_names import ClientTool, ToolKind, ToolNames
from gateway.core.call_arguments import INPUT, as_object
from gateway.core.conversation import Json, JsonObject
from gateway.dialects.custom_input import custom_input


class CallForm(msgspec.Struct, frozen=True):
    """How one kind of call and its output stand among the items.

    `call` and `output` are the types of the items, `prefix` that of the call's own id. `field` holds what the model
    wrote: text, or an object where `is_object`.
    """

    call: str
    output: str
    prefix: str
    field: str
    is_object: bool = True


FORMS: Final[Mapping[ToolKind, CallForm]] = {
    "function": CallForm("function_call", "function_call_output", "fc", "arguments", is_object=False),
    "custom": CallForm("custom_tool_call", "custom_tool_call_output", "ctc", INPUT, is_object=False),
    "tool_search": CallForm("tool_search_call", "tool_search_output", "tsc", "arguments"),
    "local_shell": CallForm("local_shell_call", "local_shell_call_output", "lsh", "action"),
    "shell": CallForm("shell_call", "shell_call_output", "sh", "action"),
    "apply_patch": CallForm("apply_patch_call", "apply_patch_call_output", "apc", "operation"),
}
CALL_KINDS: Final[Mapping[str, ToolKind]] = {form.call: kind for kind, form in FORMS.items()}
OUTPUT_KINDS: Final[Mapping[str, ToolKind]] = {form.output: kind for kind, form in FORMS.items()}


def is_hosted(item: JsonObject, names: Callable[[], ToolNames]) -> bool:
    """Returns whether the backend runs a call of a type in `CALL_KINDS`, or ran the one with this output. `names`
    returns those of the tools that the request offers.

    Source: OpenAI, API reference of Responses: `execution` of the items of `tool_search`, and `environment` of a
    `shell_call`, which is optional. xAI writes the calls of its own search as those of a custom tool.
    """
    match item.get("type"):
        case "tool_search_call" | "tool_search_output":
            return item.get("execution") == "server"
        case "shell_call":
            environment = item.get("environment")
            if isinstance(environment, dict):
                return environment.get("type") != "local"
            return "shell" in names().hosted
        case "custom_tool_call":
            tool = called_tool(item)
            return tool is not None and not names().knows(tool)
        case _:
            return False


def called_tool(item: JsonObject) -> ClientTool | None:
    """Returns the tool that an item is a call of; None where it is no call of a client's tool, or has no name."""
    said, namespace = item.get("type"), item.get("namespace")
    kind = CALL_KINDS.get(said) if isinstance(said, str) else None
    if kind is None:
        return None
    name = item.get("name") if kind in ("function", "custom") else kind
    if not isinstance(name, str) or not name:
        return None
    return ClientTool(kind, name, namespace if isinstance(namespace, str) else None)


def call_item(tool: ClientTool, call_id: str, arguments: str) -> dict[str, Json]:
    """Returns the item of a call, without an id and a status of its own. `arguments` are those of the function."""
    form = FORMS[tool.kind]
    item: dict[str, Json] = {"type": form.call, "call_id": call_id}
    if tool.kind in ("function", "custom"):
        item["name"] = tool.name
        if tool.namespace is not None:
            item["namespace"] = tool.namespace
        item[form.field] = arguments if tool.kind == "function" else custom_input(arguments)
        return item
    written = as_object(arguments)
    if tool.kind == "tool_search":
        item["execution"] = "client"
    elif tool.kind == "local_shell":
        written = {"type": "exec", "env": {}, **written}
    item[form.field] = written
    return item


def output_item(kind: ToolKind, call_id: str, output: Json, *, failed: bool = False) -> dict[str, Json]:
    """Returns the item of a call's output. `output` is text, or an array of parts."""
    item: dict[str, Json] = {"type": FORMS[kind].output, "call_id": call_id, "output": output}
    match kind:
        case "local_shell":
            # Of this item alone the reference names no `call_id`: its `id` is that of the call.
            item["id"] = call_id
        case "shell":
            outcome: Json = {"type": "exit", "exit_code": int(failed)}
            item["output"] = [{"stdout": output, "stderr": "", "outcome": outcome}]
        case "apply_patch":
            item["status"] = "failed" if failed else "completed"
        case "tool_search":
            del item["output"]
            item |= {"execution": "client", "tools": []}
        case _:
            pass
    return item


def output_text(kind: ToolKind, item: JsonObject) -> Json:
    """Returns what an output item says: text, an array of parts, or None where it has no output."""
    return _OUTPUTS.get(kind, _plain_output)(item)


def output_failed(item: JsonObject) -> bool:
    """Returns whether an output item says that the call failed."""
    return item.get("status") == "failed"


def _plain_output(item: JsonObject) -> Json:
    return item.get("output")


def _shell_output(item: JsonObject) -> Json:
    output = item.get("output")
    return msgspec.json.encode(output).decode() if isinstance(output, list) else output


def _patch_output(item: JsonObject) -> Json:
    """The output is optional beside the status."""
    return item.get("output") or item.get("status")


def _found_tools(item: JsonObject) -> Json:
    """The tools themselves join those of the request; the model reads their names."""
    tools = item.get("tools")
    named = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return msgspec.json.encode({"tools": [name for name in named if isinstance(name, str)]}).decode()


_OUTPUTS: Final[Mapping[ToolKind, Callable[[JsonObject], Json]]] = {
    "shell": _shell_output,
    "apply_patch": _patch_output,
    "tool_search": _found_tools,
}
