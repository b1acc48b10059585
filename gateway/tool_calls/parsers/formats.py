"""Lists the formats by name."""

from collections.abc import Mapping
from typing import Final

from gateway.tool_calls.parsers.format import ToolFormat
from gateway.tool_calls.parsers.json_formats import BARE_JSON, FENCED_JSON, HERMES_JSON
from gateway.tool_calls.parsers.qwen import QWEN_XML
from gateway.tool_calls.parsers.react import REACT

DEFAULT_FORMAT: Final = "hermes_json"

FORMATS: Final[Mapping[str, ToolFormat]] = {
    "hermes_json": HERMES_JSON,
    "qwen_xml": QWEN_XML,
    "fenced_json": FENCED_JSON,
    "bare_json": BARE_JSON,
    "react": REACT,
}
