"""Tests difficult cases of calls in a model's text, by name."""

import json

import pytest

from gateway.core.conversation import NamedTool
from gateway.core.errors import BackendTruncated, InvalidToolCall
from gateway.core.events import Event, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.tool_calls.parsers.formats import FORMATS
from tests.tool_calls.parsers.parsing import TOOLS, Parsed, parse, parser

WRITE = '<tool_call>\n{"name": "write", "arguments": {"text": "x"}}\n</tool_call>'


def arguments(parsed: Parsed) -> list[str]:
    return [call.arguments for call in parsed.calls]


def written(text: str) -> str:
    return json.dumps({"name": "write", "arguments": {"text": text}})


def test_what_is_certain_comes_at_once() -> None:
    parsing = parser()
    assert parsing.feed("Well. <tool") == [TextDelta("Well. ")]
    assert parsing.feed('_call>\n{"name": "write", "arguments": ') == []
    assert parsing.feed('{"te') == [ToolCallStart(0, "call_0", "write"), ToolCallDelta(0, '{"te')]
    assert parsing.feed('xt": "x"}') == [ToolCallDelta(0, 'xt": "x"}')]
    assert parsing.feed("}\n</tool") == [ToolCallEnd(0)]
    assert parsing.feed("_call>\n") == []
    assert parsing.close() == []


@pytest.mark.parametrize(
    "inner", ["</tool_call>", "<tool_call>", "}}", '"}', "```", "<function=write>", '{"name": "write"}']
)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_mark_inside_an_argument_is_content(name: str, inner: str) -> None:
    text = f"a {inner}\n{inner}\n b"
    parsed = parse([FORMATS[name].render_call("write", json.dumps({"text": text}))], name)
    assert [json.loads(one) for one in arguments(parsed)] == [{"text": text}]
    assert (parsed.text, parsed.notices) == ("", [])


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_marks_may_be_split_at_every_position(name: str) -> None:
    call = FORMATS[name].render_call("write", '{"text": "\\u00e9 \\ud83c\\udf26 \\n"}')
    text = f"Well.\n{call}\nDone."
    whole = parse([text], name)
    assert len(whole.calls) == 1
    for place in range(1, len(text)):
        assert parse([text[:place], text[place:]], name) == whole


def test_two_calls_come_in_one_piece() -> None:
    parsed = parse([f"{WRITE}{WRITE}"])
    assert [event for event in parsed.events if not isinstance(event, ToolCallDelta)] == [
        ToolCallStart(0, "call_0", "write"),
        ToolCallEnd(0),
        ToolCallStart(1, "call_1", "write"),
        ToolCallEnd(1),
    ]


def test_prose_between_calls_keeps_its_place_and_its_blanks() -> None:
    parsed = parse([f"First.\n\n{WRITE}\nThen  this:\n{WRITE}\n"])
    assert [event.text for event in parsed.events if isinstance(event, TextDelta)] == ["First.\n\n", "\nThen  this:\n"]
    assert len(parsed.calls) == 2


@pytest.mark.parametrize("blanks", ["", "\n", " \n\t\r\n"])
def test_blanks_alone_around_calls_are_no_content(blanks: str) -> None:
    assert parse([blanks, WRITE, blanks, WRITE, blanks]).text == ""


def test_blanks_alone_are_content_where_there_is_no_call() -> None:
    assert parse([" \n", "\n"]).events == [TextDelta(" \n\n")]
    assert parse([" \n", "x"]).events == [TextDelta(" \nx")]


@pytest.mark.parametrize(
    ("text", "rule", "reason"),
    [
        ('<tool_call>{"name": "rm", "arguments": {}}</tool_call>', "TEXT_CALL_UNKNOWN", "a tool rm that was not"),
        ('<tool_call>{"name": "r m", "arguments": {}}', "TEXT_CALL_UNKNOWN", "a tool that was not"),
        ('<tool_call>{"arguments": {"a": 1}, "name": "rm"} x', "TEXT_CALL_UNKNOWN", "rm"),
        ("<tool_call>...</tool_call>", "TEXT_CALL_BROKEN", "no JSON object"),
        ("<tool_call>[1]", "TEXT_CALL_BROKEN", "no JSON object"),
        ('<tool_call>{"name": 5}', "TEXT_CALL_BROKEN", "its name is not a string"),
        ('<tool_call>{"arguments": {}}', "TEXT_CALL_BROKEN", "it has no name"),
        ('<tool_call>{"arguments": "{\\"a\\": "}', "TEXT_CALL_BROKEN", "it has no name"),
        ('<tool_call>{"arguments": "{\\"a\\": ", "name": "rm"}', "TEXT_CALL_UNKNOWN", "rm"),
        ("<tool_call>{'name': 'write'}", "TEXT_CALL_BROKEN", "not valid JSON"),
        ('<tool_call>{"name": "write", "argu', "TEXT_CALL_BROKEN", "ended inside"),
        ("<tool_call>", "TEXT_CALL_BROKEN", "ended inside"),
    ],
)
def test_what_is_no_call_stays_text_and_is_told_once(text: str, rule: str, reason: str) -> None:
    for pieces in ([text], list(text)):
        parsed = parse(pieces)
        assert (parsed.text, parsed.calls, parsed.error) == (text, (), None)
        (notice,) = parsed.notices
        assert notice.rule == rule and reason in notice.detail


# What a call of a declared tool may have for its arguments although they are no object.
SPOILT = ['"{\\"text\\": "', '"{\\"text\\": \\"x\\""', '"[1]"', '"x"', "[1]", "12", "true", "nothing"]
CALLS = {
    "hermes_json": "<tool_call>\n%s\n</tool_call>",
    "qwen_xml": "<tool_call>\n%s\n</tool_call>",
    "fenced_json": "```tool_call\n%s\n```",
    "bare_json": "%s",
}


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("keys", ['{"name": "write", "arguments": %s}', '{"parameters": %s, "name": "write"}'])
@pytest.mark.parametrize("name", ["hermes_json", "qwen_xml", "fenced_json"])
def test_a_call_whose_arguments_are_no_object_is_an_error_and_no_text(name: str, keys: str, spoilt: str) -> None:
    text = "Well.\n" + CALLS[name].replace("%s", keys.replace("%s", spoilt))
    if spoilt == "nothing" and keys.startswith('{"parameters"'):
        return  # what breaks the object before its name is no call of anything
    for pieces in ([text], list(text)):
        parsed = parse(pieces, name)
        assert (parsed.text, parsed.calls) == ("Well.\n", ())
        assert parsed.error is not None and parsed.error[0] is InvalidToolCall


@pytest.mark.parametrize(
    ("name", "mark"), [("bare_json", "%s"), ("bare_json", "```json\n%s\n```"), ("fenced_json", "```json\n%s\n```")]
)
def test_json_that_may_be_no_call_is_one_when_its_string_begins_an_object(name: str, mark: str) -> None:
    for spoilt in SPOILT:
        text = mark.replace("%s", '{"name": "write", "arguments": %s}').replace("%s", spoilt)
        for pieces in ([text], list(text)):
            parsed = parse(pieces, name)
            begins = spoilt.startswith('"{')
            assert parsed.calls == () and (parsed.error is not None) is begins
            assert parsed.text == ("" if begins else text)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_answer_that_ends_inside_arguments_in_a_string_is_cut(name: str) -> None:
    whole = CALLS[name].replace("%s", '{"name": "write", "arguments": "{\\"text\\": \\"x\\"}"}')
    begin, end = whole.index('"{') + 2, whole.index('}"') + 1
    for cut_at in range(begin, end):
        for pieces in ([whole[:cut_at]], list(whole[:cut_at])):
            parsed = parse(pieces, name)
            assert parsed.text == "" and parsed.error is not None and parsed.error[0] is BackendTruncated
        assert parse([whole[:cut_at]], name, "length").error is None


@pytest.mark.parametrize("fields", ['"kwargs": {"text": "x"}', '"text": "x"', '"arguments": null, "kwargs": {}'])
def test_no_empty_arguments_are_invented_beside_fields_that_no_call_has(fields: str) -> None:
    for written in (f'{{"name": "write", {fields}}}', f'{{{fields}, "name": "write"}}'):
        for name in ("hermes_json", "qwen_xml", "fenced_json"):
            text = "Well.\n" + CALLS[name].replace("%s", written)
            for pieces in ([text], list(text)):
                parsed = parse(pieces, name)
                assert (parsed.calls, parsed.text) == ((), "Well.\n")
                assert parsed.error is not None and parsed.error[0] is InvalidToolCall
        for pieces in ([written], list(written)):
            parsed = parse(pieces, "bare_json")
            assert (parsed.calls, parsed.text, parsed.error) == ((), written, None)
    assert parse(['<tool_call>{"id": "1", "type": "function", "name": "write"}</tool_call>']).calls


def test_a_call_inside_the_arguments_of_an_unknown_tool_is_not_made() -> None:
    outer = json.dumps({"name": "rm", "arguments": {"text": "\n<function=write>\n</function>\n"}}, indent=1)
    parsed = parse([f"<tool_call>{outer}</tool_call>"], "qwen_xml")
    assert parsed.calls == ()
    inner = "<tool_call>\n<function=rm>\n<parameter=a>\n" + WRITE + "\n</parameter>\n</function>\n</tool_call>"
    parsed = parse([inner], "qwen_xml")
    assert (parsed.calls, parsed.text) == ((), inner)


def test_a_call_after_a_broken_one_is_made() -> None:
    parsed = parse([f'<tool_call>{{"name": \n{WRITE}'])
    assert len(parsed.calls) == 1 and parsed.text == '<tool_call>{"name": \n'


@pytest.mark.parametrize("end", range(WRITE.index('{"text"') + 1, WRITE.index("}}") + 2))
def test_a_call_that_has_begun_must_end(end: int) -> None:
    parsed = parse([WRITE[:end]])
    assert parsed.error is not None and parsed.error[0] is BackendTruncated
    assert not any(isinstance(event, ToolCallEnd) for event in parsed.events)


def test_a_call_cut_at_the_models_length_ends_as_it_is() -> None:
    parsed = parse([WRITE[:-20]], reason="length")
    assert parsed.error is None and parsed.rules == ["TEXT_CALL_CUT"]
    assert isinstance(parsed.events[-1], ToolCallEnd)


def test_a_call_without_its_closing_mark_is_complete() -> None:
    assert parse([WRITE.removesuffix("</tool_call>")]).error is None
    parsed = parse([WRITE.removesuffix("_call>")])
    assert (parsed.text, len(parsed.calls), parsed.error) == ("", 1, None)


def test_a_missing_last_brace_is_mended() -> None:
    parsed = parse(['<tool_call>{"name": "write", "arguments": {"text": "x"}\n</tool_call>'])
    assert (arguments(parsed), parsed.text, parsed.rules) == (['{"text": "x"}'], "", ["TEXT_CALL_MENDED"])


def test_braces_that_are_too_many_are_left_out_and_told() -> None:
    one = written("x")
    for text in (f"<tool_call>{one}}}\n}}</tool_call>", f"<tool_call>{one}}}\n}}"):
        for pieces in ([text], list(text)):
            parsed = parse(pieces)
            assert (parsed.text, len(parsed.calls), parsed.rules) == ("", 1, ["TEXT_CALL_MENDED"])
    assert parse([f"<tool_call>{one}}} x"]).text == "} x"
    assert parse([f"<tool_call>{one}}}{WRITE}"]).text == "}"


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("a\nb", "a\\nb"),
        ("\r\n\t", "\\r\\n\\t"),
        ("\x01", "\\u0001"),
        ("\\d+", "\\\\d+"),
        ("\\'", "\\u0027"),
        ("\\\n", "\\n"),
    ],
)
@pytest.mark.parametrize(
    "quoted", ['{"name": "write", "arguments": {"text": "%s"}}', '{"args": {"text": "%s"}, "name": "write"}']
)
def test_what_json_forbids_in_a_string_is_escaped_as_it_streams(raw: str, repaired: str, quoted: str) -> None:
    text = "<tool_call>" + quoted.replace("%s", raw)
    for pieces in ([text], list(text)):
        parsed = parse(pieces)
        assert arguments(parsed) == [f'{{"text": "{repaired}"}}']
        json.loads(parsed.calls[0].arguments)
        assert parsed.rules == ["TEXT_CALL_MENDED"]


@pytest.mark.parametrize(
    "broken", ["{\"text\": 'x'}", '{"text": "x",}', '{"text": 01}', '{"text": nul}', '{"text": "\\u12"}', "{text: 1}"]
)
def test_arguments_that_have_begun_and_are_no_json_are_an_error_that_hides_nothing_before_it(broken: str) -> None:
    text = f'Well. <tool_call>{{"name": "write", "arguments": {broken}}}'
    parsing = parser()
    events = parsing.feed(text)
    assert events[:2] == [TextDelta("Well. "), ToolCallStart(0, "call_0", "write")]
    with pytest.raises(InvalidToolCall):
        parsing.feed("x")
    with pytest.raises(InvalidToolCall):
        parsing.close()


@pytest.mark.full
def test_a_long_argument_in_pieces_of_one_character_is_kept_to_the_letter() -> None:
    text = '"</tool_call>\\\n{}é🌦' * 10_000
    parsed = parse("<tool_call>" + written(text) + "</tool_call>")
    assert json.loads(parsed.calls[0].arguments) == {"text": text}
    assert len(parsed.calls[0].arguments) > 200_000


@pytest.mark.parametrize("fence", ["```\n{}\n```", "```json\n{}\n```", "Write `{}` to call.", "x{}"])
def test_text_that_shows_the_format_is_no_call_unless_it_names_a_tool_on_its_own_line(fence: str) -> None:
    shown = fence.replace("{}", '<tool_call>\n{"name": "NAME", "arguments": {"KEY": "VALUE"}}\n</tool_call>')
    assert parse([shown]).text == shown and parse([shown]).calls == ()
    inline = f"Write `{WRITE}` to call."
    assert parse([inline]).text == inline


@pytest.mark.parametrize("escape", ["\\u00e9", "\\ud83c\\udf26", "\\ud83d", "\\udf26", "\\\\u00e9", "\\\\"])
def test_escapes_are_kept_as_written_wherever_they_are_split(escape: str) -> None:
    text = f'<tool_call>{{"name": "write", "arguments": {{"text": "{escape}"}}}}'
    for place in range(len(text)):
        assert arguments(parse([text[:place], text[place:]])) == [f'{{"text": "{escape}"}}']


def test_half_a_character_in_decoded_arguments_stays_an_escape() -> None:
    parsed = parse(['<tool_call>{"name": "write", "arguments": "{\\"text\\": \\"\\ud83d\\"}"}'])
    assert arguments(parsed) == ['{"text": "\\ud83d"}']


def test_objects_one_after_the_other_are_calls_where_each_stands_alone() -> None:
    one = written("x")
    assert len(parse([one + one], "bare_json").calls) == 2
    parsed = parse([f"<tool_call>{one}{one}</tool_call>"])
    assert len(parsed.calls) == 1 and parsed.text == f"{one}</tool_call>"


@pytest.mark.parametrize("text", ["<tool_cal", "a <", "a <tool_call", "<tool_cal>", "<tool_cal l>", "<<tool_call"])
def test_a_mark_that_never_completes_is_text(text: str) -> None:
    for pieces in ([text], list(text)):
        assert parse(pieces).events == [TextDelta(text)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('{"name": "write"}', "{}"),
        ('{"name": "write", "arguments": null}', "{}"),
        ('{"name": "write", "arguments": ""}', "{}"),
        ('{"name": "write", "arguments": {}}', "{}"),
        ('{"name": "write", "parameters": {"a": 1.0}}', '{"a": 1.0}'),
        ('{"name": "write", "args": {"a": 1}}', '{"a": 1}'),
        ('{"name": "write", "input": {"a":1}}', '{"a":1}'),
        ('{"arguments": { "a" : 1e5 }, "name": "write"}', '{ "a" : 1e5 }'),
        ('{"id": 5, "name": "write", "type": {"name": "rm"}, "arguments": {"name": "rm"}}', '{"name": "rm"}'),
        ('{"arguments": "{\\"a\\": \\"\\\\n\\"}", "name": "write"}', '{"a": "\\n"}'),
        ('{"name": "write", "arguments": "{\\"a\\": \\"\\n\\"}"}', '{"a": "\\n"}'),
        ('{ "name" : "wr\\u0069te" , "arguments" : {"a":[{}]} }', '{"a":[{}]}'),
        ('{"arguments": {}, "parameters": {"a": 1}, "name": "write"}', '{"a": 1}'),
        ('{"name": "write", "arguments": "", "parameters": {"a": 1}}', '{"a": 1}'),
        ('{"name": "write", "arguments": {"a": 1}, "parameters": {}}', '{"a": 1}'),
        ('{"type": "function", "function": {"name": "write", "arguments": {"a": 1}}}', '{"a": 1}'),
        ('{"function": {"arguments": "{\\"a\\": 1}", "name": "write"}, "id": {"b": "}"}}', '{"a": 1}'),
        ('{"type": "function", "function": {"name": "write"}}', "{}"),
    ],
)
def test_the_arguments_of_a_call(call: str, expected: str) -> None:
    for pieces in ([call], list(call)):
        parsed = parse(["<tool_call>", *pieces, "</tool_call>"])
        assert (arguments(parsed), parsed.text, parsed.error) == ([expected], "", None)
        assert set(parsed.rules) <= {"TEXT_CALL_MENDED"}


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize(
    "call",
    [
        '{"name": "write", "arguments": {}, "parameters": {"a": 1}}',
        '{"name": "write", "arguments": {"b": 1}, "input": {"a": 1}}',
        '{"arguments": {"b": 1}, "name": "write", "arguments": {"a": 1}}',
        '{"arguments": {"b": 1}, "args": {"a": 1}, "name": "write"}',
        '{"function": {"name": "write", "arguments": {}, "parameters": {"a": 1}}}',
    ],
)
def test_a_call_with_arguments_under_two_keys_is_an_error(name: str, call: str) -> None:
    for pieces in ([call], list(call)):
        before, _, after = CALLS[name].partition("%s")
        parsed = parse([before, *pieces, after], name)
        assert parsed.error is not None and parsed.error[0] is InvalidToolCall and "two keys" in parsed.error[1]
        assert parsed.text == ""


@pytest.mark.parametrize("name", ["hermes_json", "qwen_xml", "fenced_json"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_the_elements_of_a_list_are_calls(name: str, blank: str) -> None:
    function = '{"type": "function", "function": {"name": "write", "arguments": {"text": "]"}}}'
    elements = ['{"name": "write", "arguments": {"text": "[,"}}', function, '{"name": "write"}']
    for count in range(1, len(elements) + 1):
        many = f"{blank},{blank}".join(elements[:count])
        text = "Well.\n" + CALLS[name].replace("%s", f"[{blank}{many}{blank}]")
        for pieces in ([text], list(text)):
            parsed = parse([*pieces, "\nDone."], name)
            assert (parsed.text, parsed.error) == ("Well.\n\nDone.", None)
            assert arguments(parsed) == ['{"text": "[,"}', '{"text": "]"}', "{}"][:count]


def test_an_element_of_a_list_that_is_no_call_stays_text_and_hides_no_other() -> None:
    text = '<tool_call>[ {"name": "rm"} , {"name": "write"},{"name": "rm"}, 5]</tool_call>'
    for pieces in ([text], list(text)):
        parsed = parse(pieces)
        assert arguments(parsed) == ["{}"]
        assert parsed.text == '<tool_call>[ {"name": "rm"} ,{"name": "rm"}, 5]</tool_call>'
        assert parsed.rules.count("TEXT_CALL_UNKNOWN") == 2 and parsed.rules.count("TEXT_CALL_BROKEN") == 1


@pytest.mark.parametrize("text", ["<tool_call>[]", "<tool_call>[[{}]]", '<tool_call>[{"name": "rm"} \n'])
def test_a_list_without_a_call_is_text_to_the_letter(text: str) -> None:
    for pieces in ([text], list(text)):
        parsed = parse(pieces)
        assert (parsed.text, parsed.calls, parsed.error) == (text, (), None)


def test_a_json_block_that_is_no_call_stays_text_without_a_notice() -> None:
    for block in ('```json\n{"name": "Ada"}\n```', '```json\n{"a": {"name": "write"}}\n```', "```json\n[1]\n```"):
        assert parse([block], "fenced_json").events == [TextDelta(block)]
    assert len(parse(["```json\n" + written("x") + "\n```"], "fenced_json").calls) == 1


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_without_tools_or_with_the_choice_none_every_text_passes_at_once(name: str) -> None:
    call = FORMATS[name].render_call("write", "{}")
    for parsing in (FORMATS[name].parser(TOOLS, "call_", "none"), FORMATS[name].parser((), "call_")):
        events: list[Event] = [*parsing.feed(""), *parsing.feed(call)]
        assert events == [TextDelta(call)] and parsing.close() == []


def test_a_named_tool_does_not_hide_the_others() -> None:
    parsing = FORMATS["hermes_json"].parser(TOOLS, "call_", NamedTool("get_weather"))
    assert ToolCallStart(0, "call_0", "write") in parsing.feed(WRITE)


def test_after_its_end_a_parser_takes_nothing() -> None:
    parsing = parser()
    parsing.close()
    with pytest.raises(ValueError, match="ended"):
        parsing.feed("x")
