"""The formats by name."""

from collections.abc import Mapping
from typing import Final

from gateway.tools.prompted.format import ToolFormat
from gateway.tools.prompted.qwen import QWEN_XML
from gateway.tools.prompted.react import REACT
from gateway.tools.prompted.tagged import BARE_JSON, FENCED_JSON, HERMES_JSON

DEFAULT_FORMAT: Final = "hermes_json"

FORMATS: Final[Mapping[str, ToolFormat]] = {
    "hermes_json": HERMES_JSON,
    "qwen_xml": QWEN_XML,
    "fenced_json": FENCED_JSON,
    "bare_json": BARE_JSON,
    "react": REACT,
}
