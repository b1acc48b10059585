"""Calls as tags: plain text becomes JSON by the schema."""

import pytest

from tests.tool_calls.parsers.parsing import parse


def call(*parameters: tuple[str, str], name: str = "get_weather") -> str:
    body = "".join(f"<parameter={key}>{value}</parameter>\n" for key, value in parameters)
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("city", "\nRome\n", '"Rome"'),
        ("city", "Rome", '"Rome"'),
        ("city", "\r\nRome\n", '"Rome"'),
        ("city", "\n\n5 \n\n", '"\\n5 \\n"'),
        ("city", "\ntrue\n", '"true"'),
        ("city", "", '""'),
        ("city", "\n", '""'),
        ("city", 'a "b" \\ é', '"a \\"b\\" \\\\ é"'),
        ("city", "x</parameter> y", '"x</parameter> y"'),
        ("city", "x</parameter>" + " " * 65, '"x</parameter>' + " " * 65 + '"'),
        ("days", "\n5\n", "5"),
        ("days", "five", '"five"'),
        ("wind", "True", "true"),
        ("wind", " false ", "false"),
        ("place", '\n{"a": [1.0]}\n', '{"a": [1.0]}'),
        ("place", '{"a": "x\ny"}', '{"a": "x\\ny"}'),
        ("place", "None", "null"),
        ("other", "5", '"5"'),
    ],
)
def test_a_value_is_what_its_schema_says(key: str, value: str, expected: str) -> None:
    text = call((key, value))
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "qwen_xml")
        assert [one.arguments for one in parsed.calls] == [f'{{"{key}": {expected}}}']
        assert (parsed.text, parsed.error) == ("", None)


def test_the_first_mark_may_be_missing() -> None:
    parsed = parse([call(("days", "5")).removeprefix("<tool_call>\n")], "qwen_xml")
    assert [one.arguments for one in parsed.calls] == ['{"days": 5}'] and parsed.text == ""


def test_json_between_the_marks_is_read_too() -> None:
    parsed = parse(['<tool_call>\n{"name": "write", "arguments": {"text": "x"}}\n</tool_call>'], "qwen_xml")
    assert [one.arguments for one in parsed.calls] == ['{"text": "x"}'] and parsed.text == ""


@pytest.mark.parametrize(
    "text", ["<function=>", "<function=a<b>", "<function=wri\nte>", "<tool_call>\n<func ", "<function=" + "x" * 300]
)
def test_what_is_no_function_stays_text(text: str) -> None:
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "qwen_xml")
        assert (parsed.text, parsed.rules) == (text, ["TEXT_CALL_BROKEN"])


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("<parameter=days>5</parameter> x", True),
        ("<parameter=a>1</parameter><parameter=a>2</parameter>", True),
        ("<parameter=>", True),
        ("x<parameter=days>5</parameter>", False),
    ],
)
def test_what_is_no_parameter_is_an_error_once_the_call_has_begun(body: str, named: bool) -> None:
    text = f"<function=get_weather>{body}</function>"
    for pieces in ([text], list(text)):
        parsed = parse(pieces, "qwen_xml")
        assert (parsed.error is not None) == named
        assert named or parsed.text == text
