"""Formats calls as tags with plain text between them, in `<tool_call>`: no value needs an escape."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import ToolChoice, ToolSpec
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.format import Constraint, listed, rules
from gateway.tool_calls.parsers.json_call import JsonCallReader
from gateway.tool_calls.parsers.json_formats import HERMES_JSON
from gateway.tool_calls.parsers.json_scan import repaired_object, skip
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser
from gateway.tool_calls.parsers.reader import CallReader
from gateway.tool_calls.parsers.schema import callable_tools
from gateway.tool_calls.parsers.xml_call import (
    END_FUNCTION,
    END_PARAMETER,
    FUNCTION,
    LONGEST_NAME,
    PARAMETER,
    XmlCallReader,
)

_MARK: Final = "<tool_call>"
_CLOSER: Final = "</tool_call>"


class EitherReader(CallReader):
    """Reads the call after `<tool_call>` as tags or as JSON; its first character decides."""

    def __init__(self, declared: Declared) -> None:
        super().__init__()
        self._declared = declared
        self._reader: CallReader | None = None

    def read(self, text: str, at: int) -> int:
        if self._reader is None:
            at = skip(text, at)
            if at == len(text):
                return at
            is_json = text[at] in "{["
            self._reader = JsonCallReader(self._declared) if is_json else XmlCallReader(self._declared, opened=False)
            self._reader.arguments, self._reader.repaired = self.arguments, self.repaired
            self._reader.in_list = self.in_list
        at = self._reader.read(text, at)
        self.name, self.done = self._reader.name, self._reader.done
        self.refusal, self.failure = self._reader.refusal, self._reader.failure
        self.in_list = self._reader.in_list
        return at

    @property
    def certain(self) -> bool:
        return self._reader is not None and self._reader.certain

    def more(self, texts: Sequence[str]) -> Sequence[str] | None:
        return None if self._reader is None else self._reader.more(texts)


def read_function(declared: Declared) -> XmlCallReader:
    return XmlCallReader(declared)


class QwenXml(msgspec.Struct, frozen=True):
    """The format of models that were trained for code.

    Values that tags cannot hold (a value with their closing tag in it) are written as JSON, which the same parser
    reads.
    """

    # Some models leave out the first mark, and then still write the closing one.
    marks: tuple[Mark, ...] = (Mark(_MARK, EitherReader, _CLOSER), Mark(FUNCTION, read_function, _CLOSER))
    ends: tuple[str, ...] = ("<tool_response>",)

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        if not callable_tools(tools, choice):
            return ""
        shape = self.render_call("NAME", '{"KEY": "VALUE", "OTHER_KEY": "A LINE\\nANOTHER LINE"}')
        return (
            "You can call these functions. Each line is one function, with the JSON schema of its arguments:\n"
            f"<tools>\n{listed(tools)}\n</tools>\n\n"
            "To call a function, write its name and each of its arguments like this, objects and lists as JSON:\n"
            f"{shape}\n\n{rules(choice, parallel, HERMES_JSON.several)}"
        )

    def render_call(self, name: str, arguments: str) -> str:
        fields = _fields(arguments)
        if fields is None or not all(map(_can_be_written, fields.items())):
            return HERMES_JSON.render_call(name, arguments)
        parameters = "".join(f"{PARAMETER}{key}>\n{value}\n{END_PARAMETER}\n" for key, value in fields.items())
        return f"{_MARK}\n{FUNCTION}{name}>\n{parameters}{END_FUNCTION}\n{_CLOSER}"

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        return ToolCallParser((*self.marks, *also), () if choice == "none" else tools, id_prefix, self.ends)

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """The schema of the JSON form: no schema describes the tags."""
        return HERMES_JSON.grammar(tools, choice)


def _fields(arguments: str) -> Mapping[str, str] | None:
    """Returns each argument as the text between its tags; None unless they are an object with unique keys."""
    written = repaired_object(arguments.strip() or "{}")
    try:
        fields = msgspec.json.decode(written or "", type=dict[str, msgspec.Raw])
        pairs = json.loads(written or "", object_pairs_hook=list, parse_int=str, parse_float=str)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if len(fields) < len(pairs):
        return None
    return {key: _plain(bytes(value).decode()) for key, value in fields.items()}


def _plain(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value


def _can_be_written(field: tuple[str, str]) -> bool:
    key, value = field
    plain_key = key.strip() == key and key != "" and len(key) < LONGEST_NAME and not set(key) & set("<>\n")
    return plain_key and END_PARAMETER not in value


QWEN_XML: Final = QwenXml()
