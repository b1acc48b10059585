"""A strict client of the Gemini dialect, independent of its encoders: it writes requests and reads answers."""

import contextlib
import json
from typing import Any, Final, NamedTuple

from adapters.gemini.partial_arguments import PartialArguments, is_piece
from gateway.core.conversation import Conversation, Image, JsonObject, NamedTool, Reasoning, ToolCall, Turn
from gateway.core.provider_state import provider_state
from gateway.testing.dialect_case import ClientAnswer

CHUNK: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "dragoman"})
# Beside its own fields, one that a backend of the same API adds.
CANDIDATE: Final = frozenset({"content", "finishReason", "index", "groundingMetadata"})
PARTS: Final = (
    {"text"},
    {"text", "thought"},
    {"text", "thoughtSignature"},
    {"functionCall"},
    {"functionCall", "thoughtSignature"},
)


def write(conversation: Conversation) -> bytes:
    """Returns a request that asks for thoughts."""
    names = {call.id: call.name for turn in conversation.turns for call in turn.calls}
    config: dict[str, Any] = {"thinkingConfig": {"includeThoughts": True}}
    config |= {name: value for name, value in generation(conversation).items() if value is not None}
    body: dict[str, Any] = {
        "contents": [content(turn, names) for turn in conversation.turns if turn.role != "system"],
        "generationConfig": config,
    }
    system = [{"text": turn.text} for turn in conversation.turns if turn.role == "system"]
    if system:
        body["systemInstruction"] = {"parts": system}
    if conversation.tools:
        declared = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in conversation.tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
    if conversation.tool_choice != "auto":
        body["toolConfig"] = {"functionCallingConfig": calling(conversation)}
    return json.dumps(body).encode()


def generation(conversation: Conversation) -> dict[str, Any]:
    sampling, given = conversation.sampling, conversation.params
    fields: dict[str, Any] = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [*sampling.stop] or None,
        "seed": sampling.seed,
        "topK": given.get("top_k"),
        "presencePenalty": given.get("presence_penalty"),
        "frequencyPenalty": given.get("frequency_penalty"),
    }
    if "reasoning_effort" in given:
        fields["thinkingConfig"] = {"includeThoughts": True, "thinkingLevel": given["reasoning_effort"]}
    form: Any = given.get("response_format")
    if form is not None:
        fields |= {"responseMimeType": "application/json", "responseJsonSchema": form["json_schema"]["schema"]}
    return fields


def calling(conversation: Conversation) -> dict[str, Any]:
    chosen = conversation.tool_choice
    if isinstance(chosen, NamedTool):
        return {"mode": "ANY", "allowedFunctionNames": [chosen.name]}
    return {"mode": {"required": "ANY", "none": "NONE"}[chosen]}


def signed(extra: JsonObject) -> dict[str, Any]:
    state = provider_state(extra, "google").get("thought_signature")
    return {} if state is None else {"thoughtSignature": state}


def content(turn: Turn, names: dict[str, str]) -> dict[str, Any]:
    thoughts = [block for block in turn.blocks if isinstance(block, Reasoning)]
    parts: list[dict[str, Any]] = [{"text": one.text, "thought": True, **signed(one.extra)} for one in thoughts]
    parts += [{"text": turn.text}] if turn.text or not (turn.calls or turn.results) else []
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}, **signed(call.extra)}
        for call in turn.calls
    ]
    for result in turn.results:
        response = {"error" if result.is_error else "output": result.text}
        said = {"id": result.call_id, "name": names[result.call_id], "response": response}
        parts.append({"functionResponse": said})
    for block in turn.blocks:
        if isinstance(block, Image):
            kind, _, data = block.url.removeprefix("data:").partition(";base64,")
            parts.append({"inlineData": {"mimeType": kind, "data": data}})
    return {"role": "model" if turn.role == "assistant" else "user", "parts": parts}


def events_target(conversation: Conversation) -> str:
    """Returns the path of a request; a stream is one of events."""
    verb = "streamGenerateContent" if conversation.stream else "generateContent"
    return f"/v1beta/models/{conversation.model}:{verb}?alt=sse"


def array_target(conversation: Conversation) -> str:
    """Returns the path of a request; a stream is an array."""
    return events_target(conversation).removesuffix("?alt=sse")


def read_events(data: bytes) -> ClientAnswer:
    """Reads events as the SDKs do: a blank line ends one, and any other line is the JSON of an error."""
    chunks: list[dict[str, Any]] = []
    error: str | None = None
    whole, _, rest = data.rpartition(b"\n")
    for line in whole.split(b"\n"):
        assert error is None, "something follows the error"
        if not line:
            continue
        assert line.startswith(b"data: "), "an SDK would read this line as an error"
        assert len(line.decode().splitlines()) == 1
        chunks.append(json.loads(line.removeprefix(b"data: ")))
    if rest.startswith(b"{"):
        with contextlib.suppress(ValueError):
            error = failure(json.loads(rest))
    return answer(chunks, error)


def read_array(data: bytes) -> ClientAnswer:
    """Reads the elements that are complete; the answer is complete only with the array."""
    decoder = json.JSONDecoder()
    text = data.decode(errors="ignore").lstrip()
    if not text:
        return ClientAnswer()
    assert text.startswith("[")
    text = text[1:].lstrip()
    chunks: list[dict[str, Any]] = []
    error: str | None = None
    complete = False
    while text:
        if text.startswith("]"):
            assert not text[1:].strip(), "something follows the array"
            complete = True
            break
        if chunks or error:
            assert text.startswith(",")
            text = text[1:].lstrip()
        try:
            element, end = decoder.raw_decode(text)
        except ValueError:
            break
        text = text[end:].lstrip()
        if "error" in element:
            error = failure(element)
        else:
            assert error is None
            chunks.append(element)
    read = answer(chunks, error)
    return read if complete else ClientAnswer(read.text, read.reasoning, read.calls, None, None, (), read.error)


def read_whole(body: bytes) -> ClientAnswer:
    return answer([json.loads(body)], None)


def read_error(body: bytes) -> str:
    return failure(json.loads(body))


def failure(body: dict[str, Any]) -> str:
    error = body["error"]
    assert isinstance(error["code"], int) and error["status"].isupper()
    assert all(detail["@type"].startswith("type.googleapis.com/google.rpc.") for detail in error["details"])
    return str(error["message"])


def read_models(body: bytes) -> list[str]:
    models = json.loads(body)["models"]
    assert all({"generateContent", "countTokens"} <= {*model["supportedGenerationMethods"]} for model in models)
    assert all(model["name"].startswith("models/") for model in models)
    return [model["name"].removeprefix("models/") for model in models]


def answer(chunks: list[dict[str, Any]], error: str | None) -> ClientAnswer:
    """Puts the chunks together; only the last one may have a finish reason."""
    text, reasoning, finish = "", "", None
    calls: list[ToolCall] = []
    usage: tuple[int, int] | None = None
    notices: tuple[str, ...] = ()
    in_pieces = False
    growing: Growing | None = None
    for chunk in chunks:
        assert finish is None, "a chunk after the finish reason"
        assert chunk.keys() - {"promptFeedback"} <= CHUNK and chunk["responseId"] and chunk["modelVersion"]
        if "promptFeedback" in chunk:
            # A prompt that was blocked has no candidate.
            assert "candidates" not in chunk
            finish = chunk["promptFeedback"]["blockReason"]
            continue
        (candidate,) = chunk["candidates"]
        assert candidate.keys() <= CANDIDATE and candidate["index"] == 0
        said = candidate["content"]
        # The API itself ends an answer with calls in pieces so; any other answer has parts.
        ends_pieces = in_pieces and "finishReason" in candidate
        assert said["role"] == "model" and (said["parts"] or ends_pieces), "chat helpers drop a chunk without parts"
        for part in said["parts"]:
            assert part.keys() in PARTS
            if "functionCall" in part:
                call = part["functionCall"]
                if growing is not None or is_piece(call):
                    in_pieces, growing = True, grown(growing, call, calls)
                    continue
                # Of a backend of the same API a call may have no id.
                assert {"name", "args"} <= call.keys() <= {"id", "name", "args"} and isinstance(call["args"], dict)
                calls.append(ToolCall(call.get("id", ""), call["name"], json.dumps(call["args"])))
            elif part.get("thought"):
                reasoning += part["text"]
            else:
                text += part["text"]
        finish = candidate.get("finishReason")
        if counts := chunk.get("usageMetadata"):
            usage = (counts["promptTokenCount"], counts["candidatesTokenCount"] + counts.get("thoughtsTokenCount", 0))
        notices += tuple(notice["rule"] for notice in chunk.get("dragoman", {}).get("diagnostics", ()))
    assert growing is None or finish is None, "the answer ends inside a call"
    return ClientAnswer(text, reasoning, tuple(calls), finish, usage, notices, error)


class Growing(NamedTuple):
    """A call of which more pieces follow."""

    id: str
    name: str
    arguments: PartialArguments


def grown(growing: Growing | None, call: dict[str, Any], calls: list[ToolCall]) -> Growing | None:
    """Adds a piece of a call of a backend of the same API; returns the call while it is open."""
    if growing is None:
        growing = Growing(call.get("id", ""), call["name"], PartialArguments())
    growing.arguments.add(call)
    if growing.arguments.open:
        return growing
    calls.append(ToolCall(growing.id, growing.name, json.dumps(growing.arguments.arguments)))
    return None
