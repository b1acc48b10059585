"""Decodes a request into a Conversation.

The fields around the contents are typed strictly: a wrong field is a 400 that names it. The contents are not: their
faults are repaired and listed in `faults`, so that one faulty content does not silently make a long history unusable.
"""

from collections.abc import Sequence
from typing import Final

from adapters.gemini import DIALECT, PROVIDER
from adapters.gemini.client.generation import read_generation, unsent
from adapters.gemini.client.paths import PATHS, WRAPPED_PATHS, WRAPPER
from adapters.gemini.client.spelling import respelled
from adapters.gemini.client.tools import read_tools
from adapters.gemini.client.turns import read_turns
from adapters.gemini.parts import read_part
from adapters.gemini.table import (
    COUNT,
    FIELDS,
    MODELS_PATH,
    MODES,
    STREAM,
    TABLE,
    TIERS,
    FunctionCallingConfig,
    FunctionToolConfig,
    GenerationConfig,
    RequestFields,
    ThinkingConfig,
)
from gateway.core.conversation import (
    ALL_CONTENT,
    EMPTY,
    Block,
    Conversation,
    Json,
    JsonObject,
    ReadableContent,
    Source,
    Text,
    Turn,
)
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.core.rules import violation, violation_error
from gateway.core.state_rule import HeldState
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import Document
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field, read_fields

# The forms of a stream: events, or one array of JSON (the default of the API).
FORMS: Final = {None: "json", "json": "json", "sse": "sse"}
_PREFIX: Final = "models/"
_HELD: Final = HeldState(frozenset({PROVIDER}), frozenset({PROVIDER}))
# The API gives no thoughts unless the client asks for them, but their signatures. Source: Gemini API, "Thinking".
_WITHOUT_THOUGHTS: Final[frozenset[ReadableContent]] = frozenset(("calls", "state"))
_TOOL_CONFIG: Final = TABLE.sections["toolConfig"].reported
_CALLING_CONFIG: Final = TABLE.sections["toolConfig.functionCallingConfig"].reported


def decode_document(document: Document, head: RequestHead) -> ClientRequest:
    """Decodes a body that is read already. Fault: TEXT_UNICODE. Raises InvalidRequest that names the parameter."""
    fields = _object(respelled(document.fields))
    paths = PATHS
    if isinstance(inner := fields.get(WRAPPER), dict):
        fields, paths = _object(respelled(inner)), WRAPPED_PATHS
    return _Request(fields, paths, head).decoded(document.repaired)


class _Request:
    """A request with its fields in camelCase."""

    def __init__(self, fields: dict[str, Json], paths: FieldPaths, head: RequestHead) -> None:
        self._fields = fields
        self._paths = paths
        self._head = head
        self._before = paths.param("messages").removesuffix("contents")
        self._faults = Faults(paths=paths)

    def decoded(self, repaired: bool) -> ClientRequest:
        if repaired:
            self._faults.add("TEXT_UNICODE", -1, self._paths.param("messages"))
        contents = self._contents()
        request = self._typed()
        model = self._model(request)
        config, thinking = request.generation_config or GenerationConfig(), ThinkingConfig()
        generation = read_generation(config, self._object("generationConfig"), f"{self._before}generationConfig")
        tools = request.tool_config or FunctionToolConfig()
        calling = tools.function_calling_config or FunctionCallingConfig()
        place = self._paths.param("tool_choice")
        offered = read_tools(request.tools or (), _listed(self._fields.get("tools")), calling, self._faults, place)
        unread: list[Notice] = []
        own: list[str] = []
        turns = (*self._system(own), *read_turns(contents, self._faults, unread, own))
        if calling.mode is not None and calling.mode not in MODES.known:
            own.append(f"{place}.mode")
        # Without the state that only the API itself keeps, the answer would rest on a part of the history.
        state = [f"{self._before}{name}" for name in FIELDS.asked(self._fields)]
        if state and self._head.path.endswith(f":{COUNT}"):
            (first, *_) = state
            raise Unsupported(f"{first} is not supported: the gateway cannot count what it refers to.", param=first)
        params = {**generation.params, **FIELDS.read(request)}
        thinking = config.thinking_config or thinking
        return ClientRequest(
            Conversation(
                turns,
                offered.functions,
                offered.choice,
                model=model,
                sampling=generation.sampling,
                stream=self._head.path.endswith(f":{STREAM}"),
                include_usage=True,
                faults=tuple(self._faults.found),
                params=params,
                dialect=DIALECT,
                other_tools=offered.others,
                paths=self._paths,
                notices=(*self._unsent(), *offered.notices, *generation.notices, *unread),
                source=Source(DIALECT, self._fields),
                object_arguments=True,
                own_fields=(*state, *generation.own, *own),
                holds=_HELD,
                reads=ALL_CONTENT if thinking.include_thoughts is True else _WITHOUT_THOUGHTS,
            ),
            {"form": self._form()},
        )

    def _contents(self) -> list[Json]:
        param = self._paths.param("messages")
        if "contents" not in self._fields:
            raise missing_field(param)
        contents = self._fields.pop("contents")
        if isinstance(contents, dict):
            # The API takes one value for a list of one.
            contents = [contents]
        if not isinstance(contents, list):
            raise InvalidRequest(f"{param} must be an array.", code="invalid_type", param=param)
        if not contents:
            raise violation_error([violation("MESSAGES_EMPTY", -1, param=param, paths=self._paths)])
        return contents

    def _typed(self) -> RequestFields:
        config = self._fields.get("generationConfig")
        if isinstance(config, dict):
            self._fields["generationConfig"] = _whole_numbers(config)
        fields = {**self._fields, "tools": _listed(self._fields.get("tools"))}
        for path in _WORDS:
            fields = _in_upper_case(fields, path)
        try:
            request = read_fields(fields, RequestFields)
        except InvalidRequest as error:
            raise self._behind_prefix(error) from error
        return request

    def _behind_prefix(self, error: InvalidRequest) -> InvalidRequest:
        if not self._before or error.param is None:
            return error
        return InvalidRequest(f"{self._before}{error.message}", code=error.code, param=f"{self._before}{error.param}")

    def _model(self, request: RequestFields) -> str:
        if self._head.path:
            return self._head.path.partition(f"{MODELS_PATH}/")[2].rpartition(":")[0]
        if request.model is None:
            raise missing_field("model")
        model = request.model.removeprefix(_PREFIX)
        if not model.strip():
            raise InvalidRequest("model must not be empty.", param="model")
        return model

    def _form(self) -> str:
        form = FORMS.get(alt := self._head.parameter("alt"))
        if form is None:
            raise InvalidRequest(f"alt must be sse or json; it is {str(alt)[:40]!r}.", param="alt")
        return form

    def _system(self, own: list[str]) -> tuple[Turn, ...]:
        """Returns the system turn, if there is one. Adds the paths of its parts that are no texts."""
        value = self._fields.get("systemInstruction")
        if value is None:
            return ()
        param = f"{self._before}systemInstruction"
        written = value.get("parts") if isinstance(value, dict) else None
        # SDKs take the text alone, and the API one part for a list of one.
        parts: list[Json] = written if isinstance(written, list) else [{"text": value} if written is None else written]
        if value == {}:
            return ()
        blocks: list[Block] = []
        for position, part in enumerate(parts):
            place = f"{param}.parts[{position}]"
            block = read_part(part, position) if isinstance(part, dict) else None
            if block is None:
                raise InvalidRequest(f"{place} must be a text part.", code="invalid_type", param=place)
            if not isinstance(block, Text):
                own.append(place)
            blocks.append(block)
        source = Source(DIALECT, value if isinstance(value, dict) else {"parts": parts})
        return (Turn("system", tuple(blocks), source=source),) if blocks else ()

    def _unsent(self) -> list[Notice]:
        names = FIELDS.unsent(self._fields)
        tier = self._fields.get("serviceTier")
        if isinstance(tier, str) and tier.lower() not in TIERS.known:
            names.append("serviceTier")
        config = self._object("toolConfig")
        names += [f"toolConfig.{name}" for name in _TOOL_CONFIG if config.get(name)]
        calling = config.get("functionCallingConfig")
        if isinstance(calling, dict):
            names += [f"toolConfig.functionCallingConfig.{name}" for name in _CALLING_CONFIG if calling.get(name)]
        return [unsent(f"{self._before}{name}") for name in names]

    def _object(self, name: str) -> JsonObject:
        value = self._fields.get(name)
        return value if isinstance(value, dict) else EMPTY


# Words that clients write in any case, and the API reads so: its own pages have `thinkingLevel` in lower case.
_WORDS: Final = (
    ("toolConfig", "functionCallingConfig", "mode"),
    ("generationConfig", "thinkingConfig", "thinkingLevel"),
)


def _object(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)  # the spelling of an object is an object
    return value


def _listed(value: Json) -> Json:
    """The API takes one object for a list of one; an object without a field is no tool."""
    return [value] if isinstance(value, dict) and value else value


def _in_upper_case(fields: JsonObject, path: Sequence[str]) -> dict[str, Json]:
    """Returns a copy of the fields with the word at the path in upper case, if there is one."""
    name, *inner = path
    value = fields.get(name)
    if isinstance(value, dict) and inner:
        return {**fields, name: _in_upper_case(value, inner)}
    if isinstance(value, str) and not inner:
        return {**fields, name: value.upper()}
    return {**fields}


def _whole_numbers(fields: dict[str, Json]) -> dict[str, Json]:
    """100.0 is a whole number in ProtoJSON; SDKs send `topK` so."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in fields.items()
    }
