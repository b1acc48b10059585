"""Reads what the script needs from an agent request, whether its history is text or tasks."""

from collections.abc import Iterable, Sequence

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from adapters.text.demo.transcript import TextTurn, read_transcript
from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import Marker, find_marker, without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder


class AgentRequest(msgspec.Struct, frozen=True):
    """A decoded request. `marked_question` is the newest question with its markers, `dialogue` is without them;
    `scenario` is its marker of that kind, and `query` the whole text that it came with. `task_id` is that of the
    history, or empty without one."""

    dialogue: Dialogue
    scenario: Marker | None
    conversation_id: str
    task_id: str
    model: str
    marked_question: str
    query: str
    shows_reasoning: bool


class _DialogueReader(msgspec.Struct):
    """The state of reading a conversation; it keeps what arrived since the newest question."""

    query: str = ""
    question: str = ""
    turn: int = 0
    turns: int = 0
    folder: str = ""
    rounds: list[list[tuple[str, str]]] = []
    results: dict[str, Result] = {}
    unnamed: list[Result] = []

    def add_question(self, message: str) -> None:
        """Reads a user's message. Text that the client added to it is not a new question."""
        if question := own_words(message):
            self.question, self.turn = question, self.turns
            self.rounds, self.results, self.unnamed = [], {}, []

    def add_calls(self, calls: Sequence[tuple[str, str]], *, new_round: bool) -> None:
        if new_round or not self.rounds:
            self.rounds.append([])
        self.rounds[-1].extend(calls)


def read_agent(request: pb.Request) -> AgentRequest:
    """Reads the tasks' logs, then the inputs, in order."""
    reader = _DialogueReader()
    last = ""
    for task in request.task_context.tasks:
        for message in task.messages:
            last = _read_logged(message, reader, last)
    for given in request.input.user_inputs.inputs:
        _read_input(given, reader)
    return AgentRequest(
        dialogue=Dialogue(
            question=without_markers(reader.question),
            tools=tuple(_tools(request)) if _may_call(request) else (),
            rounds=_rounds(reader),
            turn=reader.turn,
            parallel=request.settings.supports_parallel_tool_calls,
            folder=reader.folder,
        ),
        scenario=find_marker(reader.question, "scenario"),
        conversation_id=request.metadata.conversation_id,
        task_id=request.task_context.tasks[0].id if request.task_context.tasks else "",
        model=request.settings.model_config.base or "auto",
        marked_question=reader.question,
        query=reader.query or reader.question,
        shows_reasoning=request.settings.supports_reasoning_message,
    )


def _read_logged(message: pb.Message, reader: _DialogueReader, last: str) -> str:
    """Reads one message of a task's log and returns its kind. Consecutive calls belong to one round."""
    kind = message.WhichOneof("message") or ""
    reader.turns += 1
    match kind:
        case "user_query":
            reader.folder = reader.folder or working_folder(message.user_query.query)
            reader.add_question(message.user_query.query)
        case "tool_call" if message.tool_call.WhichOneof("tool") == "call_mcp_tool":
            call = message.tool_call
            reader.add_calls([(call.tool_call_id, call.call_mcp_tool.name)], new_round=last != "tool_call")
        case "tool_call_result" if message.tool_call_result.HasField("call_mcp_tool"):
            result = message.tool_call_result
            reader.results[result.tool_call_id] = _result(result.call_mcp_tool)
        case "server_event" | "tool_call" | "tool_call_result":
            return last
        case _:
            pass
    return kind


def _read_input(given: pb.Input.UserInput, reader: _DialogueReader) -> None:
    if given.HasField("tool_call_result"):
        result = given.tool_call_result
        reader.results[result.tool_call_id] = _result(result.call_mcp_tool)
    elif given.HasField("user_query"):
        reader.query = given.user_query.query
        reader.folder = reader.folder or working_folder(reader.query)
        turns = read_transcript(given.user_query.query)
        for at, turn in enumerate(turns):
            reader.turns += 1
            _read_turn(turn, reader, after_result=at > 0 and turns[at - 1].speaker == "result")


def _read_turn(turn: TextTurn, reader: _DialogueReader, *, after_result: bool) -> None:
    match turn.speaker:
        case "user" if not (after_result and "tool result" in turn.text.lower()):
            reader.add_question(turn.text)
        case "assistant" if turn.called:
            reader.add_calls([("", name) for name in turn.called], new_round=True)
        case "result":
            reader.unnamed.append(Result("", turn.text))
        case _:
            pass


def _rounds(reader: _DialogueReader) -> tuple[tuple[Result, ...], ...]:
    """Returns each round's results: matched by id where the wire has ids on both sides, else in the order of the
    calls."""
    unnamed = iter(reader.unnamed)
    rounds: list[tuple[Result, ...]] = []
    for calls in reader.rounds:
        found = (reader.results.get(call_id) or next(unnamed, Result("", "")) for call_id, _ in calls)
        rounds.append(
            tuple(msgspec.structs.replace(result, name=name) for result, (_, name) in zip(found, calls, strict=True))
        )
    orphans = tuple(msgspec.structs.replace(result, name="A tool") for result in unnamed)
    return (*rounds, orphans) if orphans else tuple(rounds)


def _result(result: pb.CallMCPToolResult) -> Result:
    if result.HasField("error"):
        return Result("", result.error.message, is_error=True)
    return Result("", "\n".join(map(_shown, result.success.results)))


def _shown(part: pb.CallMCPToolResult.Result) -> str:
    """Returns a part of a result as the model reads it."""
    match part.WhichOneof("result"):
        case "image":
            return f"[image {part.image.mime_type}]"
        case "resource" if part.resource.HasField("text"):
            return part.resource.text.content
        case "resource":
            return f"[resource {part.resource.binary.mime_type}]"
        case _:
            return part.text.text


def _may_call(request: pb.Request) -> bool:
    """Returns whether calls are allowed: only listed tools may be called, and an empty list allows every tool."""
    supported = request.settings.supported_tools
    return not supported or pb.TOOL_CALL_MCP_TOOL in supported


def _tools(request: pb.Request) -> Iterable[OfferedTool]:
    servers = request.mcp_context.servers
    for tool in (*request.mcp_context.tools, *(tool for server in servers for tool in server.tools)):
        schema: dict[str, Json] = MessageToDict(tool.input_schema)
        yield OfferedTool(tool.name, tool.description, {name: _plain(schema[name]) for name in sorted(schema)})


def _plain(value: Json) -> Json:
    """Sorts the keys of a value, because a Struct has no order, and converts its whole numbers to
    integers: they arrive as doubles, and no schema has a double there."""
    match value:
        case dict():
            return {name: _plain(value[name]) for name in sorted(value)}
        case list():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def broken_rule(request: pb.Request) -> str | None:
    """Returns a sentence about what breaks the wire's rules, or None for a valid request."""
    inputs = request.input.user_inputs.inputs
    if request.input.WhichOneof("type") is None:
        return "input has no type"
    if request.input.HasField("user_inputs") and not inputs:
        return "user_inputs is empty"
    known = {
        message.tool_call.tool_call_id
        for task in request.task_context.tasks
        for message in task.messages
        if message.HasField("tool_call")
    }
    answered = [given.tool_call_result.tool_call_id for given in inputs if given.HasField("tool_call_result")]
    unknown = [call_id for call_id in answered if known and call_id not in known]
    return f"no call of the tasks has the id {unknown[0]!r}" if unknown else None


def summarize(body: bytes) -> Json:
    """Returns a whole request as JSON with the schema's field names, or None when it is not a request."""
    try:
        summary: Json = MessageToDict(pb.Request.FromString(body), preserving_proto_field_name=True)
    except DecodeError:
        return None
    return summary
