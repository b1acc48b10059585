"""A made-up dialect: requests are one JSON object, and answers are lines of JSON, streamed unless a client declines.

POST /lines/chat {"model", "lines": [{"from", "text", "calls", "answers"}], "tools", "settings", "stream"}
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from gateway.core.answer import merge_usage, read_answer
from gateway.core.call_arguments import as_object
from gateway.core.conversation import (
    Block,
    Conversation,
    Json,
    JsonObject,
    Role,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import GatewayError
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.dialect import (
    AnswerHead,
    ClientRequest,
    ErrorAnswer,
    KeyPlace,
    ListedModels,
    ModelInfo,
    RequestHead,
    Route,
)
from gateway.dialects.document import Document
from gateway.dialects.field_types import read_fields
from gateway.dialects.openapi import JSON, Operation, reference
from gateway.dialects.usage import token_counts

LINES: Final = "application/x-ndjson"
ENDS: Final[Mapping[Reason, str]] = {
    "stop": "done",
    "length": "full",
    "tool_calls": "call",
    "content_filter": "blocked",
}
ROLES: Final[Mapping[str, Role]] = {"human": "user", "model": "assistant", "system": "system", "tool": "tool"}
SENDERS: Final[Mapping[Role, str]] = {**{role: sender for sender, role in ROLES.items()}, "developer": "system"}
PATHS: Final = FieldPaths(
    turn="lines[{turn}]",
    role="lines[{turn}].from",
    part="lines[{turn}].text",
    calls="lines[{turn}].calls",
    call_id="lines[{turn}].calls[{item}].id",
    result="lines[{turn}].from",
    result_call_id="lines[{turn}].answers",
    result_name="lines[{turn}].answers",
    result_part="lines[{turn}].text",
    tool_schema="tools[{tool}].schema",
    params={
        "messages": "lines",
        "temperature": "settings.temperature",
        "max_tokens": "settings.most",
        "stop": "settings.stop",
    },
    calls_term="calls",
    result_term="tool line",
    call_id_term="answers",
    unnamed_call_term="call without an id",
)

Speaker = Literal["human", "model", "system", "tool"]


class LinesCall(msgspec.Struct, frozen=True):
    """A call that the model made; its input is an object."""

    id: str
    name: str
    input: dict[str, Any]


class Line(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """One message. `answers` is the id of the call whose result it is."""

    sender: Speaker
    text: str = ""
    calls: list[LinesCall] = []
    answers: str | None = None


class LinesTool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}


class LinesSettings(msgspec.Struct, frozen=True):
    """How the model answers; `most` is the number of tokens."""

    temperature: float | None = None
    most: int | None = None
    stop: list[str] = []


class LinesRequest(msgspec.Struct, frozen=True):
    """A request."""

    model: str
    lines: list[Line]
    tools: list[LinesTool] = []
    settings: LinesSettings = LinesSettings()
    stream: bool = True


class LinesAnswer(msgspec.Struct, frozen=True):
    """A whole answer, or the line at the end of a stream, which has no text, thought and calls."""

    end: str
    id: str
    model: str
    text: str = ""
    thought: str = ""
    calls: list[LinesCall] = []
    tokens: list[int] | None = None
    notices: list[str] = []


class LinesFailure(msgspec.Struct, frozen=True):
    """What went wrong. `field` is the place in the request."""

    message: str
    code: str | None
    field: str | None


class LinesError(msgspec.Struct, frozen=True):
    """An error, as a body or as the last line of a stream."""

    failed: LinesFailure


class LinesModels(msgspec.Struct, frozen=True):
    """The names of the models."""

    models: list[str]


class JsonLinesEncoder:
    """One answer as lines. A call is one line, written when its input is complete."""

    headers: ClassVar[tuple[tuple[bytes, bytes], ...]] = ((b"content-type", LINES.encode()),)

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._begun = False
        self._calls: dict[int, tuple[ToolCallStart, list[str]]] = {}
        self._end = "done"
        self._usage: UsageReport | None = None
        self._notices: list[str] = []

    def feed(self, events: Iterable[Event]) -> bytes:
        return b"".join([self._line(event) for event in events])

    def quiet(self) -> bytes:
        return self._opening() + _encoded({"waiting": True})

    def fail(self, error: GatewayError) -> bytes:
        return _encoded({"failed": msgspec.to_builtins(_failure(error, in_stream=True))})

    def close(self) -> bytes:
        last: dict[str, Json] = {"end": self._end, "tokens": [*token_counts(self._usage)[:2]] if self._usage else None}
        if self._head.diagnostics:
            last["notices"] = [*self._notices]
        return self._opening() + _encoded(last)

    def _opening(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return _encoded({"id": f"lines-{self._head.unique}", "model": self._head.model})

    def _line(self, event: Event) -> bytes:
        match event:
            case TextDelta():
                return self._opening() + _encoded({"text": event.text})
            case ReasoningDelta():
                return self._opening() + _encoded({"thought": event.text})
            case ToolCallStart():
                self._calls[event.index] = (event, [])
            case ToolCallDelta():
                self._calls[event.index][1].append(event.arguments)
            case ToolCallEnd():
                start, pieces = self._calls[event.index]
                call: Json = {"id": start.id, "name": start.name, "input": as_object("".join(pieces))}
                return self._opening() + _encoded({"call": call})
            case UsageReport():
                self._usage = merge_usage(self._usage, event)
            case Finish():
                self._end = ENDS[event.reason]
                return self._opening()
            case Notice():
                self._notices.append(event.rule)
            case _:
                pass
        return b""


class JsonLinesDialect:
    """The dialect. `GET /lines/models` lists the models."""

    name: ClassVar[str] = "json_lines"
    routes: ClassVar[tuple[Route, ...]] = (
        Route(
            "POST",
            "/lines/chat",
            "generate",
            Operation(
                name="answer_in_lines",
                description="An answer, as lines of JSON or (`stream: false`) whole.",
                tag="lines",
                answers={JSON: reference(LinesAnswer), LINES: {"type": "string"}},
                request=LinesRequest,
                types=(LinesAnswer,),
            ),
        ),
        Route(
            "GET",
            "/lines/models",
            "models",
            Operation(
                name="list_models_in_lines",
                description="The models.",
                tag="lines",
                answers={JSON: reference(LinesModels)},
                types=(LinesModels,),
            ),
        ),
    )
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"x-lines-key"),)
    paths: ClassVar[FieldPaths] = PATHS
    signs: ClassVar[frozenset[str]] = frozenset()
    request_id_headers: ClassVar[tuple[bytes, ...]] = ()
    error_type: ClassVar[type[msgspec.Struct]] = LinesError
    explain_type: ClassVar[type[msgspec.Struct]] = LinesRequest

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        request = read_fields(document.fields, LinesRequest)
        settings = request.settings
        params: dict[str, Json] = {
            "temperature": settings.temperature,
            "max_tokens": settings.most,
            "stop": [*settings.stop] or None,
        }
        return ClientRequest(
            Conversation(
                tuple([_turn(line, index) for index, line in enumerate(request.lines)]),
                tuple([ToolSpec(tool.name, tool.description, tool.schema) for tool in request.tools]),
                model=request.model,
                sampling=Sampling(settings.temperature, None, settings.most, tuple(settings.stop)),
                stream=request.stream,
                include_usage=True,
                params={name: value for name, value in params.items() if value is not None},
                dialect=self.name,
                paths=self.paths,
            )
        )

    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        results: list[JsonObject] = [
            {"from": "tool", "text": result.text, "answers": result.call_id} for result in turn.results
        ]
        calls: list[Json] = [
            {"id": call.id, "name": call.name, "input": as_object(call.arguments)} for call in turn.calls
        ]
        return results or [{"from": SENDERS[turn.role], "text": turn.text, "calls": calls}]

    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        answer = read_answer(events)
        return msgspec.json.encode(
            LinesAnswer(
                "done" if answer.finish is None else ENDS[answer.finish.reason],
                f"lines-{head.unique}",
                head.model,
                answer.text,
                answer.reasoning,
                [LinesCall(call.start.id, call.start.name, as_object(call.arguments)) for _, call in answer.ends],
                None if answer.usage is None else [*token_counts(answer.usage)[:2]],
                [notice.rule for notice in answer.notices] if head.diagnostics else [],
            )
        )

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> JsonLinesEncoder:
        return JsonLinesEncoder(head)

    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return ErrorAnswer(error.status, error.headers, msgspec.json.encode(LinesError(_failure(error))))

    def encode_models(self, models: ListedModels) -> bytes:
        return msgspec.json.encode(LinesModels([*[model.name for model in models.models]]))

    def encode_model(self, model: ModelInfo) -> bytes:
        return msgspec.json.encode({"model": model.name})

    def example(self, model: str) -> JsonObject:
        return {"model": model, "lines": [{"from": "human", "text": "Hello"}]}


def _turn(line: Line, index: int) -> Turn:
    calls = [ToolCall(call.id, call.name, msgspec.json.encode(call.input).decode()) for call in line.calls]
    if line.answers is not None:
        return Turn("tool", (ToolResult(line.answers, (Text(line.text),)),), index=index)
    said: tuple[Block, ...] = (Text(line.text),) if line.text else ()
    return Turn(ROLES[line.sender], (*said, *calls), index=index)


def _failure(error: GatewayError, *, in_stream: bool = False) -> LinesFailure:
    return LinesFailure(*error.text(in_stream=in_stream))


def _encoded(line: JsonObject) -> bytes:
    return msgspec.json.encode(line) + b"\n"
