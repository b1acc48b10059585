"""Reads what the script needs from a GenerateRequest and rejects a request that breaks the service's rules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec
from google.protobuf.json_format import MessageToDict

from adapters.proto.demo import generation_pb2 as pb
from gateway.core.conversation import JsonObject
from gateway.demo.player.endpoint import Refused
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder

_CHOICES: Final[Mapping[int, Literal["none", "required"]]] = {
    pb.ToolChoice.MODE_NONE: "none",
    pb.ToolChoice.MODE_REQUIRED: "required",
}
_NO_REASONING: Final = ("", "none", "minimal")
# The only role whose turns may have such a part.
_OWNERS: Final = {"call": pb.ROLE_ASSISTANT, "result": pb.ROLE_TOOL}


class GrpcRequest(msgspec.Struct, frozen=True):
    """A decoded request. `marked_question` is the newest question with its markers, `dialogue` is without them."""

    dialogue: Dialogue
    marked_question: str
    model: str
    max_tokens: int | None
    stop: tuple[str, ...]
    prompt: str


def read_grpc(request: pb.GenerateRequest) -> GrpcRequest:
    """Reads the request. Raises Refused with the path of the invalid field."""
    turns = list(request.turns)
    if not turns:
        raise Refused("turns: must not be empty")
    for at, turn in enumerate(turns):
        _check_turn(turn, f"turns[{at}]")
    _check_pairs(turns)
    newest, marked_question = _question(turns)
    prompt = "\n".join(map(_text, turns))
    return GrpcRequest(
        dialogue=_dialogue(request, newest, without_markers(marked_question), working_folder(prompt)),
        marked_question=marked_question,
        model=request.model or "demo-grpc",
        max_tokens=request.limits.max_tokens if request.limits.HasField("max_tokens") else None,
        stop=tuple([stop for stop in request.limits.stop if stop]),
        prompt=prompt,
    )


def _check_turn(turn: pb.Turn, place: str) -> None:
    if turn.role not in pb.Role.values() or turn.role == pb.ROLE_UNSPECIFIED:
        raise Refused(f"{place}.role: must be a known role")
    if not turn.parts:
        raise Refused(f"{place}.parts: must not be empty")
    for at, part in enumerate(turn.parts):
        kind = part.WhichOneof("content")
        if kind is None:
            raise Refused(f"{place}.parts[{at}]: must have content")
        if _OWNERS.get(kind, turn.role) != turn.role:
            raise Refused(f"{place}.parts[{at}].{kind}: cannot stand in a turn of {pb.Role.Name(turn.role)}")


def _check_pairs(turns: Sequence[pb.Turn]) -> None:
    """Raises Refused unless every call has its result before the next turn and every result belongs to a call."""
    waiting: dict[str, str] = {}
    for at, turn in enumerate(turns):
        if waiting and turn.role != pb.ROLE_TOOL:
            break
        for part in turn.parts:
            if part.HasField("call"):
                waiting[part.call.id] = f"turns[{at}]"
            elif part.HasField("result") and waiting.pop(part.result.call_id, None) is None:
                raise Refused(f"turns[{at}]: the result {part.result.call_id!r} belongs to no preceding call")
    for missing, place in waiting.items():
        raise Refused(f"{place}: the call {missing!r} has no result")


def _text(turn: pb.Turn) -> str:
    return "\n".join(part.result.text if part.HasField("result") else part.text for part in turn.parts)


def _question(turns: Sequence[pb.Turn]) -> tuple[int, str]:
    """Returns the index and the text of the newest turn that has text of the user."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].role == pb.ROLE_USER and (question := own_words(_text(turns[at]))):
            return at, question
    return -1, ""


def _dialogue(request: pb.GenerateRequest, newest: int, question: str, folder: str) -> Dialogue:
    choice = request.tool_choice
    forced = choice.name if choice.HasField("name") else None
    return Dialogue(
        question=question,
        tools=tuple([OfferedTool(tool.name, tool.description, _parameters(tool)) for tool in request.tools]),
        rounds=tuple(_rounds(request.turns[newest + 1 :])),
        turn=max(newest, 0),
        choice="required" if forced else _CHOICES.get(choice.mode, "auto"),
        forced=forced,
        parallel=not request.HasField("parallel_calls") or request.parallel_calls,
        reasoning=request.reasoning_effort not in _NO_REASONING,
        folder=folder,
    )


def _parameters(tool: pb.Tool) -> JsonObject:
    if tool.HasField("schema"):
        schema: JsonObject = MessageToDict(tool.schema)
        return schema
    try:
        return msgspec.json.decode(tool.schema_json or "{}", type=dict)
    except msgspec.DecodeError as error:
        raise Refused(f"tools: the schema of {tool.name!r} is not a JSON object: {error}") from error


def _rounds(turns: Sequence[pb.Turn]) -> Iterator[tuple[Result, ...]]:
    results = {part.result.call_id: part.result.text for turn in turns for part in turn.parts}
    for turn in turns:
        calls = [part.call for part in turn.parts if part.HasField("call")]
        if calls:
            yield tuple([Result(call.name, results.get(call.id, "")) for call in calls])
