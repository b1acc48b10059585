"""A strict client of the Interactions dialect, independent of its encoders: it writes requests and reads answers."""

import json
from typing import Any, Final

from gateway.core.conversation import Conversation, File, Image, JsonObject, NamedTool, Reasoning, Text, ToolCall, Turn
from gateway.core.provider_state import provider_state
from gateway.testing.dialect_case import ClientAnswer

INTERACTION: Final = frozenset({"id", "object", "status", "model", "created", "updated", "store"})
OPTIONAL: Final = frozenset({"previous_interaction_id", "usage", "errors", "dragoman"})
EVENTS: Final = {
    "interaction.created": {"interaction"},
    "interaction.status_update": {"interaction_id", "status"},
    "step.start": {"index", "step"},
    "step.delta": {"index", "delta"},
    "step.stop": {"index"},
    "interaction.completed": {"interaction"},
    "error": {"error"},
}
# The fields of a step where it begins, and those of each of its pieces.
STARTS: Final = {"thought": {"type"}, "model_output": {"type"}, "function_call": {"type", "id", "name", "arguments"}}
DELTAS: Final = {
    "model_output": {"text": {"type", "text"}},
    "thought": {"thought_summary": {"type", "content"}, "thought_signature": {"type", "signature"}},
    "function_call": {"arguments_delta": {"type", "arguments"}, "thought_signature": {"type", "signature"}},
}


def write(conversation: Conversation) -> bytes:
    """Returns a request that asks for summaries of thoughts."""
    body: dict[str, Any] = {
        "model": conversation.model,
        "input": [step for turn in conversation.turns if turn.role != "system" for step in steps(turn)],
        "stream": conversation.stream,
        "generation_config": {name: value for name, value in config(conversation).items() if value is not None},
    }
    if system := [turn.text for turn in conversation.turns if turn.role == "system"]:
        body["system_instruction"] = system[0]
    if conversation.tools:
        body["tools"] = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in conversation.tools
        ]
    given: Any = conversation.params
    if form := given.get("response_format"):
        schema = form["json_schema"]["schema"]
        body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
    if "service_tier" in given:
        body["service_tier"] = {"default": "standard"}.get(given["service_tier"], given["service_tier"])
    return json.dumps(body).encode()


def config(conversation: Conversation) -> dict[str, Any]:
    sampling = conversation.sampling
    return {
        "thinking_summaries": "auto",
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop_sequences": [*sampling.stop] or None,
        "seed": sampling.seed,
        "thinking_level": conversation.params.get("reasoning_effort"),
        "tool_choice": choice(conversation),
    }


def choice(conversation: Conversation) -> Any:
    chosen = conversation.tool_choice
    if isinstance(chosen, NamedTool):
        return {"allowed_tools": {"mode": "any", "tools": [chosen.name]}}
    return {"auto": None, "required": "any", "none": "none"}[chosen]


def signed(extra: JsonObject) -> dict[str, Any]:
    state = provider_state(extra, "google").get("thought_signature")
    return {} if state is None else {"signature": state}


def steps(turn: Turn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"type": "thought", "summary": [{"type": "text", "text": block.text}], **signed(block.extra)}
        for block in turn.blocks
        if isinstance(block, Reasoning)
    ]
    contents = [content(block) for block in turn.blocks if isinstance(block, Text | Image)]
    if contents or not turn.blocks:
        made.append({"type": "model_output" if turn.role == "assistant" else "user_input", "content": contents})
    for call in turn.calls:
        arguments = json.loads(call.arguments)
        made.append(
            {"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments, **signed(call.extra)}
        )
    for result in turn.results:
        failed = {"is_error": True} if result.is_error else {}
        made.append({"type": "function_result", "call_id": result.call_id, "result": result.text, **failed})
    return made


def content(block: Text | Image | File) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    assert isinstance(block, Image)
    kind, _, data = block.url.removeprefix("data:").partition(";base64,")
    return {"type": "image", "mime_type": kind, "data": data}


def read_stream(data: bytes) -> ClientAnswer:
    """Reads events as the SDKs do; one that has not arrived whole is not read."""
    state = StreamReader()
    for frame in data.split(b"\n\n")[:-1]:
        if not frame.startswith(b":"):
            state.read(frame)
    return state.answer()


class StreamReader:
    """The steps so far. The interaction is complete with its last event, and the stream behind it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.steps: list[dict[str, Any]] = []
        self.open = False
        self.last: dict[str, Any] | None = None
        self.error: str | None = None
        self.done = False

    def read(self, frame: bytes) -> None:
        assert not self.done, "something follows the end"
        (name, data) = frame.split(b"\n")
        assert len(data.decode().splitlines()) == 1
        kind, text = name.removeprefix(b"event: ").decode(), data.removeprefix(b"data: ")
        if kind == "done":
            assert text == b"[DONE]" and self.last
            self.done = True
            return
        assert self.last is None and self.error is None, "an event follows the last one"
        event = json.loads(text)
        assert event.pop("event_type") == kind and event.keys() == EVENTS[kind]
        before = self.events[-1] if self.events else None
        self.events.append(kind)
        if kind == "interaction.created":
            assert before is None and event["interaction"]["status"] == "in_progress"
            check_interaction(event["interaction"])
            self.id = event["interaction"]["id"]
        elif kind == "interaction.status_update":
            assert before == "interaction.created" and event["interaction_id"] == self.id
        elif kind == "error":
            assert event["error"].keys() == {"code", "message"} and isinstance(event["error"]["code"], str)
            self.error = event["error"]["message"]
        elif kind == "interaction.completed":
            assert not self.open and event["interaction"]["id"] == self.id
            check_interaction(event["interaction"])
            self.last = event["interaction"]
            cut = [step for step in self.steps if step["type"] == "function_call" and is_cut(step["text"] or "{}")]
            assert not cut or self.last["status"] == "incomplete", "the arguments of a call are no object"
        else:
            self.step(kind, event)

    def step(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "step.start":
            assert not self.open and event["index"] == len(self.steps)
            step = event["step"]
            assert step.keys() - {"signature"} == STARTS[step["type"]]
            assert step.get("arguments", {}) == {}
            self.steps.append({**step, "text": ""})
            self.open = True
            return
        assert self.open and event["index"] == len(self.steps) - 1
        if kind == "step.stop":
            self.open = False
            return
        step, delta = self.steps[-1], event["delta"]
        assert delta.keys() == DELTAS[step["type"]][delta["type"]]
        if delta["type"] == "thought_signature":
            step["signature"] = delta["signature"]
        elif delta["type"] == "thought_summary":
            assert delta["content"].keys() == {"type", "text"} and delta["content"]["type"] == "text"
            step["text"] += delta["content"]["text"]
        else:
            step["text"] += delta.get("text", "") + delta.get("arguments", "")

    def answer(self) -> ClientAnswer:
        calls = [
            ToolCall(step["id"], step["name"], step["text"] or "{}")
            for step in self.steps
            if step["type"] == "function_call" and (step is not self.steps[-1] or not self.open)
        ]
        text = "".join(step["text"] for step in self.steps if step["type"] == "model_output")
        thoughts = "".join(step["text"] for step in self.steps if step["type"] == "thought")
        last = self.last if self.done and self.last is not None else {}
        return ClientAnswer(text, thoughts, tuple(calls), finish(last), usage(last), notices(last), self.error)


def read_whole(body: bytes) -> ClientAnswer:
    interaction = json.loads(body)
    made = interaction.pop("steps")
    check_interaction(interaction)
    text = thoughts = ""
    calls: list[ToolCall] = []
    for step in made:
        match step["type"]:
            case "model_output":
                (said,) = step["content"]
                assert step.keys() == {"type", "content"} and said.keys() == {"type", "text"}
                text += said["text"]
            case "thought":
                assert {"type"} < step.keys() <= {"type", "summary", "signature"}
                thoughts += "".join(piece["text"] for piece in step.get("summary", []))
            case "function_call":
                assert step.keys() - {"signature"} == STARTS["function_call"] and isinstance(step["arguments"], dict)
                calls.append(ToolCall(step["id"], step["name"], arguments(step["arguments"])))
            case other:
                raise AssertionError(other)
    return ClientAnswer(text, thoughts, tuple(calls), finish(interaction), usage(interaction), notices(interaction))


def arguments(value: dict[str, Any]) -> str:
    """Returns the arguments of a call as text. Those that a limit cut off stand in an object."""
    match value:
        case {"arguments": str(text), **others} if not others and is_cut(text):
            return text
        case _:
            return json.dumps(value)


def is_cut(text: str) -> bool:
    try:
        return not isinstance(json.loads(text), dict)
    except ValueError:
        return True


def check_interaction(interaction: dict[str, Any]) -> None:
    assert interaction.keys() >= INTERACTION and interaction.keys() - INTERACTION <= OPTIONAL
    assert interaction["object"] == "interaction" and interaction["id"] and isinstance(interaction["store"], bool)
    assert all(interaction[name].endswith("Z") for name in ("created", "updated"))


def finish(interaction: dict[str, Any]) -> str | None:
    """Returns the status, with the code of what ended the answer before its time."""
    if not interaction:
        return None
    return ": ".join([interaction["status"], *[error["code"] for error in interaction.get("errors", [])]])


def usage(interaction: dict[str, Any]) -> tuple[int, int] | None:
    counts = interaction.get("usage")
    if counts is None:
        return None
    return counts["total_input_tokens"], counts["total_output_tokens"] + counts.get("total_thought_tokens", 0)


def notices(interaction: dict[str, Any]) -> tuple[str, ...]:
    return tuple(notice["rule"] for notice in interaction.get("dragoman", {}).get("diagnostics", ()))


def read_error(body: bytes) -> str:
    error = json.loads(body)["error"]
    assert isinstance(error["code"], str) and error["status"].isupper()
    assert all(detail["@type"].startswith("type.googleapis.com/google.rpc.") for detail in error["details"])
    return str(error["message"])


def read_models(body: bytes) -> list[str]:
    return [model["name"].removeprefix("models/") for model in json.loads(body)["models"]]
