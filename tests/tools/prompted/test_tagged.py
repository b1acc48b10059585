"""The default format reads what it writes."""

from gateway.events import TextDelta
from gateway.testing.events import content, fold
from gateway.tools.prompted.formats import DEFAULT_FORMAT, FORMATS
from gateway.types import ToolCall, ToolSpec

TOOLS = (ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}}),)
HERMES = FORMATS[DEFAULT_FORMAT]


def test_a_call_of_the_history_is_read_as_it_was() -> None:
    arguments = '{"city": "</tool_call>"}'
    parser = HERMES.parser(TOOLS, "call_")
    answer = fold(parser.feed("Hi. " + HERMES.render_call("get_weather", arguments)) + parser.close())
    assert answer.text == "Hi. "
    assert answer.calls == (ToolCall("call_0", "get_weather", arguments),)


def test_without_a_choice_text_passes_untouched() -> None:
    parser = HERMES.parser(TOOLS, "call_", "none")
    text = HERMES.render_call("get_weather", "{}")
    assert content(parser.feed(text) + parser.close()) == [TextDelta(text)]
    assert HERMES.render_tools(TOOLS, "none", True) == ""
