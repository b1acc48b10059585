"""Law: a reader looks at its own call, and copies nothing of what stands behind it."""

from typing import Any, Final

import pytest

from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.formats import FORMATS
from tests.tool_calls.parsers.parsing import TOOLS

ARGUMENTS: Final = '{"city": "Rome", "days": 3, "wind": true}'


class Sliced(str):
    """Text that counts the characters that are cut out of it."""

    __slots__ = ("copied",)
    copied: int

    def __getitem__(self, key: Any) -> str:
        piece = super().__getitem__(key)
        self.copied += len(piece)
        return piece


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_nothing_behind_a_call_is_copied(name: str, end: str) -> None:
    mark = FORMATS[name].marks[0]
    reader = mark.reader(Declared(TOOLS))
    call = FORMATS[name].render_call("get_weather", ARGUMENTS).replace("\n", end)
    text = Sliced(call + end + "x" * 10_000)
    text.copied = 0
    at = reader.read(text, 0 if mark.is_read else len(mark.text))
    assert reader.name == "get_weather" and (reader.done or at <= len(call) + len(end))
    assert text.copied < 10 * len(call)
