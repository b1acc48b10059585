"""The formats by name."""

from collections.abc import Mapping
from typing import Final

from gateway.tools.prompted.format import ToolFormat
from gateway.tools.prompted.tagged import HERMES_JSON

DEFAULT_FORMAT: Final = "hermes_json"

FORMATS: Final[Mapping[str, ToolFormat]] = {"hermes_json": HERMES_JSON}
