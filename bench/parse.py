"""Measures how fast tool calls are parsed from a model's text: `python -m bench.parse`, whole and in pieces, in MB/s.

The last column is the time for twice the size divided by the time for the size: 2 is linear growth.
"""

import gc
import json
import time
from collections.abc import Callable, Mapping
from typing import Final

from gateway.core.conversation import ToolSpec
from gateway.core.events import Event, TextDelta, ToolCallDelta
from gateway.tool_calls.parsers.format import ToolFormat
from gateway.tool_calls.parsers.formats import FORMATS

SIZE: Final = 200_000
PIECES: Final = (SIZE, 1000, 20, 4)
_TOOL: Final = ToolSpec("write_file", "", {"type": "object", "properties": {"text": {"type": "string"}}})
# Typical content that a model writes into a file: lines, quotes, marks that begin nothing.
_LINE: Final = '    if "name" in found and len(found) <= 20:  # Grüße\n        print(f"<b>{found}</b>")\n'
_ROUNDS: Final = 3


def call(tool_format: ToolFormat, size: int) -> str:
    """Writes a call with about this many characters of arguments, in the format."""
    return tool_format.render_call(_TOOL.name, json.dumps({"text": _content(size)}, ensure_ascii=False))


def repaired_call(tool_format: ToolFormat, size: int) -> str:
    """Writes the same with raw line ends inside strings, which models write although JSON forbids them."""
    return call(tool_format, size).replace("\\n", "\n")


def prose(_: ToolFormat, size: int) -> str:
    """Writes a text that contains no call, although the parser must search it for one."""
    return _content(size)


def _content(size: int) -> str:
    return (_LINE * (size // len(_LINE) + 1))[:size]


def seconds(tool_format: ToolFormat, text: str, size: int) -> float:
    """Returns the shortest time of parsing the text in pieces of this size."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return min(_once(tool_format, pieces) for _ in range(_ROUNDS))


def _once(tool_format: ToolFormat, pieces: list[str]) -> float:
    parser = tool_format.parser((_TOOL,), "call_")
    gc.collect()
    begun = time.process_time()
    read = [event for piece in pieces for event in parser.feed(piece)]
    read += parser.close()
    spent = time.process_time() - begun
    if sum(map(_length, read)) < SIZE:
        raise ValueError("the text was not read as it should be")
    return spent


def _length(event: Event) -> int:
    match event:
        case ToolCallDelta(_, written) | TextDelta(written):
            return len(written)
        case _:
            return 0


CASES: Final[Mapping[str, tuple[str, Callable[[ToolFormat, int], str]]]] = {
    **{f"a call, {name}": (name, call) for name in FORMATS},
    "a call, hermes_json, raw line ends": ("hermes_json", repaired_call),
    "no call, hermes_json": ("hermes_json", prose),
}


def main() -> None:
    """Measures and printss a table."""
    titles = ["whole" if size == SIZE else f"{size} characters" for size in PIECES]
    print(f"| {SIZE // 1000} kB, MB/s | {' | '.join(titles)} | twice the size |\n|{'---|' * (len(titles) + 2)}")
    for title, (name, write) in CASES.items():
        tool_format = FORMATS[name]
        text, double = write(tool_format, SIZE), write(tool_format, 2 * SIZE)
        megabytes = len(text.encode()) / 1e6
        rates = [megabytes / seconds(tool_format, text, size) for size in PIECES]
        growth = seconds(tool_format, double, PIECES[-1]) / seconds(tool_format, text, PIECES[-1])
        print(f"| {title} | {' | '.join(f'{rate:,.1f}' for rate in rates)} | {growth:.2f} |")


if __name__ == "__main__":
    main()
