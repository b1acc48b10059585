"""Reads what the script needs from a generateContent body and rejects a body that breaks the API's rules."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal

import msgspec

from adapters.gemini.demo.thought_signature import unsigned_steps
from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.endpoint import Refused
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder
from gateway.demo.strict_models import is_strict

_ROLES: Final = frozenset({"user", "model"})
_CHOICES: Final[Mapping[Json, Literal["none", "required"]]] = {"NONE": "none", "ANY": "required"}
# A thinking level or a budget of tokens that asks for no thoughts.
_NO_THOUGHTS: Final = ("MINIMAL", 0)
# The names of the field for the parameters of a function: the SDK for Python writes one with underscores.
_SCHEMAS: Final = ("parametersJsonSchema", "parameters_json_schema", "parameters")
# The names of the fields by which a result says what it is.
_RESULTS: Final = ("output", "result", "error")

Content = Mapping[str, Json]


class GeminiRequest(msgspec.Struct, frozen=True):
    """A decoded body. `marked_question` is the newest question with its markers, `dialogue` is without them."""

    dialogue: Dialogue
    marked_question: str
    max_tokens: int | None
    stop: tuple[str, ...]
    json_type: bool
    schema: JsonObject | None
    prompt: str


def read_gemini(body: JsonObject, model: str = "") -> GeminiRequest:
    """Decodes the body of a request to this model. Raises Refused as the API does."""
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    turns = [_content(content, at) for at, content in enumerate(contents)]
    _check_pairs(turns)
    for sentence in unsigned_steps(turns) if is_strict(model) else ():
        raise Refused(sentence)
    config = _object(body.get("generationConfig"))
    instruction = body.get("systemInstruction")
    said = [*([_object(instruction)] if instruction is not None else []), *turns]
    prompt = "\n".join(_text(content) for content in said)
    newest, marked_question = _question(turns)
    limit, schema = config.get("maxOutputTokens"), config.get("responseJsonSchema", config.get("responseSchema"))
    stop = config.get("stopSequences")
    return GeminiRequest(
        dialogue=_dialogue(body, turns, newest, without_markers(marked_question), working_folder(prompt)),
        marked_question=marked_question,
        max_tokens=limit if isinstance(limit, int) else None,
        stop=tuple([found for found in stop if isinstance(found, str)]) if isinstance(stop, list) else (),
        json_type=config.get("responseMimeType") == "application/json",
        schema=schema if isinstance(schema, dict) else None,
        prompt=prompt,
    )


def parts_of(content: Content) -> Iterator[JsonObject]:
    """Yields the parts of a content."""
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield part


def _content(content: Json, at: int) -> Content:
    if not isinstance(content, dict) or content.get("role", "user") not in _ROLES:
        raise Refused("Please use a valid role: user, model.")
    if not content.get("parts"):
        raise Refused(f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
    return content


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(content: Content) -> str:
    texts = [part.get("text") for part in parts_of(content) if part.get("thought") is not True]
    return "\n".join([text for text in texts if isinstance(text, str)])


def _of_kind(content: Content, kind: str) -> list[JsonObject]:
    return [found for part in parts_of(content) if isinstance(found := part.get(kind), dict)]


def _check_pairs(turns: Sequence[Content]) -> None:
    """Raises Refused unless the responses to all calls of a content stand in the next one, each with its name."""
    for at, (turn, after) in enumerate(zip(turns, [*turns[1:], {}], strict=True)):
        calls, responses = _of_kind(turn, "functionCall"), _of_kind(after, "functionResponse")
        if len(calls) != len(responses):
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if calls and (at == 0 or turn.get("role") != "model"):
            raise Refused(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if any(not response.get("name") for response in responses):
            raise Refused("* GenerateContentRequest.contents.parts.function_response.name: Name cannot be empty.")


def _question(turns: Sequence[Content]) -> tuple[int, str]:
    """Returns the index and the text of the newest content that has text of the user."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].get("role", "user") == "user" and (question := own_words(_text(turns[at]))):
            return at, question
    return -1, ""


def _dialogue(body: JsonObject, turns: Sequence[Content], newest: int, question: str, folder: str) -> Dialogue:
    calling = _object(_object(body.get("toolConfig")).get("functionCallingConfig"))
    allowed = calling.get("allowedFunctionNames")
    forced = str(allowed[0]) if isinstance(allowed, list) and len(allowed) == 1 else None
    thinking = _object(_object(body.get("generationConfig")).get("thinkingConfig"))
    asked = thinking.get("thinkingLevel", thinking.get("thinkingBudget"))
    return Dialogue(
        question=question,
        tools=tuple(_tools(body.get("tools"))),
        rounds=tuple(_rounds(turns[max(newest, 0) :])),
        turn=max(newest, 0),
        choice=_CHOICES.get(calling.get("mode"), "auto"),
        forced=forced,
        reasoning=thinking.get("includeThoughts") is True and asked is not None and asked not in _NO_THOUGHTS,
        folder=folder,
    )


def _tools(tools: Json) -> Iterator[OfferedTool]:
    for tool in tools if isinstance(tools, list) else ():
        declared = _object(tool).get("functionDeclarations")
        for function in declared if isinstance(declared, list) else ():
            if isinstance(function, dict) and isinstance(name := function.get("name"), str) and name:
                schema = next((function[field] for field in _SCHEMAS if field in function), None)
                yield OfferedTool(name, str(function.get("description") or ""), _object(schema))


def _rounds(turns: Sequence[Content]) -> Iterator[tuple[Result, ...]]:
    """Yields the results of each content with calls: by their ids, else in their order."""
    for turn, after in pairwise(turns):
        calls, responses = _of_kind(turn, "functionCall"), _of_kind(after, "functionResponse")
        by_id = {str(response["id"]): response for response in responses if response.get("id")}
        results = [by_id.get(str(call.get("id")), response) for call, response in zip(calls, responses, strict=True)]
        if results:
            yield tuple([_result(result) for result in results])


def _result(response: JsonObject) -> Result:
    said = _object(response.get("response"))
    name = str(response.get("name"))
    for key in _RESULTS:
        if isinstance(text := said.get(key), str):
            return Result(name, text, key == "error")
    return Result(name, msgspec.json.encode(said).decode())
