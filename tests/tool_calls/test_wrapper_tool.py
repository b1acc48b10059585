"""Tests the content of a wrapper tool call: a call with the model's exact bytes, or none."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.policy import WrapperTool
from gateway.tool_calls.wrapper_tool import BrokenWrapper, UnwrappedCall, unwrap_arguments

ENVELOPES = {"call_mcp_tool": WrapperTool(), "use_tool": WrapperTool(("tool", "name"), ("input", "args"))}


def opened(text: str, *declared: str, envelope: str = "call_mcp_tool") -> UnwrappedCall:
    return unwrap_arguments(text, ENVELOPES[envelope], ENVELOPES, declared)


@pytest.mark.parametrize(
    ("args", "arguments"),
    [
        ('{"command": "ls"}', '{"command": "ls"}'),
        ("{}", "{}"),
        ('{ "a" :1 ,\n"b":[ ] }', '{ "a" :1 ,\n"b":[ ] }'),
        ('{"n": 12345678901234567890123}', '{"n": 12345678901234567890123}'),
        ('{"n": 1.0, "m": 1e2, "k": -0}', '{"n": 1.0, "m": 1e2, "k": -0}'),
        ('{"n": 1e999}', '{"n": 1e999}'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"t": "配置 \\u914d \\"q\\" \\/"}', '{"t": "配置 \\u914d \\"q\\" \\/"}'),
        ('"{\\"command\\": \\"ls\\"}"', '{"command": "ls"}'),
        ('" {\\"n\\": 1.0} "', '{"n": 1.0}'),
        ("null", "{}"),
        ('""', "{}"),
        ('" "', "{}"),
        ('"null"', "{}"),
    ],
)
def test_arguments_are_kept_as_they_were_written(args: str, arguments: str) -> None:
    assert opened(f'{{"name": "Execute", "args": {args}}}') == UnwrappedCall("Execute", arguments)


def test_a_number_longer_than_any_parser_takes_is_kept() -> None:
    digits = "9" * 10_000
    assert opened(f'{{"name": "f", "args": {{"n": {digits}}}}}').arguments == f'{{"n": {digits}}}'


def test_missing_arguments_are_an_empty_object() -> None:
    assert opened('{"name": "Execute"}') == UnwrappedCall("Execute", "{}")


@pytest.mark.parametrize("args", ["[]", '[{"a": 1}]', "5", "true", '"ls"', '"[1]"', '"{broken"', '"\\"{}\\""', '"5"'])
def test_no_arguments_are_invented_from_what_is_no_object(args: str) -> None:
    with pytest.raises(BrokenWrapper, match="the arguments are not an object"):
        opened(f'{{"name": "Execute", "args": {args}}}')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ('{"name": "Exe', "it is not valid JSON"),
        ('{"name": "Execute", "args": {"a": 1}', "it is not valid JSON"),
        ('{"name": "Execute"} {"name": "b"}', "it is not valid JSON"),
        ('{"name": "Execute", "args": {"a": NaN}}', "it is not valid JSON"),
        ('"{', "it is not valid JSON"),
        ("[]", "it is not an object"),
        ("null", "it is not an object"),
        ("5", "it is not an object"),
        ("{}", "the name is missing"),
        ('{"args": {}}', "the name is missing"),
        ('{"Name": "Execute"}', "the name is missing"),
        ('{"name": null}', "the name is not a string"),
        ('{"name": 5}', "the name is not a string"),
        ('{"name": ["Execute"]}', "the name is not a string"),
        ('{"name": ""}', "the name is empty"),
        ('{"name": " "}', "the name is not a function name"),
        ('{"name": "Exe cute"}', "the name is not a function name"),
        ('{"name": "Execute\\n"}', "the name is not a function name"),
        ('{"name": "\\u202eExecute"}', "the name is not a function name"),
        ('{"name": "a", "name": "b"}', "a field is set twice"),
        ('{"name": "a", "args": {}, "args": {"rm": 1}}', "a field is set twice"),
        ('{"name": "a", "\\u006eame": "b"}', "a field is set twice"),
    ],
)
def test_a_broken_envelope_says_why(text: str, reason: str) -> None:
    with pytest.raises(BrokenWrapper, match=f"^{reason}$"):
        opened(text)


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(BrokenWrapper, match="it is not valid JSON"):
        opened('{"name": "f", "args": ' + "[" * 100_000 + "]" * 100_000 + "}")
    text = '{"name": "f"}'
    for _ in range(20):
        text = f'{{"name": "call_mcp_tool", "args": {text}}}'
    with pytest.raises(BrokenWrapper, match="nested too deeply"):
        opened(text)


def test_an_odd_name_is_right_when_the_client_declared_it() -> None:
    assert opened('{"name": "查看 配置"}', "查看 配置") == UnwrappedCall("查看 配置", "{}")


def test_an_envelope_in_an_envelope_is_opened() -> None:
    inner = '{"name": "Execute", "args": {"n": 1.0}}'
    assert opened(f'{{"name": "call_mcp_tool", "args": {inner}}}') == UnwrappedCall("Execute", '{"n": 1.0}')
    assert opened('{"name": "use_tool", "args": {"tool": "Execute", "input": {}}}') == UnwrappedCall("Execute", "{}")
    with pytest.raises(BrokenWrapper, match="the name is missing"):
        opened('{"name": "call_mcp_tool", "args": {"command": "ls"}}')


def test_a_declared_tool_named_like_an_envelope_is_a_real_call() -> None:
    text = '{"name": "call_mcp_tool", "args": {"name": "x"}}'
    assert opened(text, "call_mcp_tool") == UnwrappedCall("call_mcp_tool", '{"name": "x"}')


def test_a_whole_envelope_may_be_a_json_string() -> None:
    assert opened(json.dumps('{"name": "Execute", "args": {"n": 1}}')) == UnwrappedCall("Execute", '{"n": 1}')


def test_keys_are_taken_in_their_order_of_preference() -> None:
    text = '{"name": "second", "tool": "first", "args": {"n": 2}, "input": {"n": 1}}'
    assert opened(text, envelope="use_tool") == UnwrappedCall("first", '{"n": 1}', ("name", "args"))
    assert opened('{"name": "second", "args": {"n": 2}}', envelope="use_tool") == UnwrappedCall("second", '{"n": 2}')


def test_unknown_fields_of_the_envelope_are_no_arguments_and_are_named() -> None:
    assert opened('{"server_id": "s", "name": "f", "args": {}, "x": {"n": 1}}') == UnwrappedCall(
        "f", "{}", ("server_id", "x")
    )
    assert opened('{"name": "f", "id": null}') == UnwrappedCall("f", "{}", ("id",))
    inner = '{"name": "f", "args": {"n": 1}, "inner": 1}'
    assert opened(
        f'{{"name": "use_tool", "args": {{"tool": "call_mcp_tool", "input": {inner}}}, "outer": 1}}'
    ) == UnwrappedCall("f", '{"n": 1}', ("outer", "inner"))


@pytest.mark.parametrize("key", ["args", "arguments", "parameters", "input"])
def test_arguments_stand_under_any_key_that_models_use(key: str) -> None:
    assert opened(f'{{"name": "Execute", "{key}": {{"command": "ls"}}}}') == UnwrappedCall(
        "Execute", '{"command": "ls"}'
    )
    if key != "args":
        for nothing in ("null", '""', "{}", '"{ }"'):
            assert opened(f'{{"name": "f", "args": {nothing}, "{key}": {{"n": 1}}}}') == UnwrappedCall("f", '{"n": 1}')


@pytest.mark.parametrize(
    "fields",
    [
        '"kwargs": {"command": "ls"}',
        '"kwargs": "{\\"command\\": \\"ls\\"}"',
        '"command": "ls"',
        '"args": null, "kwargs": {"command": "ls"}',
        '"args": "", "kwargs": {}',
        '"Args": {"command": "ls"}',
    ],
)
def test_no_empty_arguments_are_invented_beside_fields_that_nobody_declared(fields: str) -> None:
    with pytest.raises(BrokenWrapper, match=r"^the arguments are missing, and there are undeclared fields$"):
        opened(f'{{"name": "Execute", {fields}}}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.booleans())
def test_law_opening_is_the_inverse_of_wrapping(args: dict[str, object], ascii_only: bool, as_text: bool) -> None:
    written = json.dumps(args, ensure_ascii=ascii_only)
    envelope = json.dumps({"name": "f", "args": written}) if as_text else f'{{"name": "f", "args": {written}}}'
    assert opened(envelope) == UnwrappedCall("f", written)


@given(st.text('{}[]":,nametrugsl01\\ \n', max_size=60))
def test_law_garbage_opens_to_a_call_or_not_at_all(text: str) -> None:
    try:
        found = opened('{"name": "f", "args": ' + text)
    except BrokenWrapper:
        return
    assert found.name not in ENVELOPES
    assert isinstance(msgspec.json.decode(found.arguments), dict)
