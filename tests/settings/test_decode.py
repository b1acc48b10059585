"""A file that is no JSON is told with its line, and in the words of a person where the mistake is a common one."""

import json

import pytest

from gateway.core.errors import SettingsError
from gateway.settings.decode import decode_settings

VALUE = "a text in double quotes, a number, true, false, null, an object or an array must stand here"
CONTROL = "a text contains no line end and no other control character: write \\n, \\t or \\u and four digits"
ESCAPE = "JSON does not have this escape: a backslash itself is written \\\\"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, column 1: the file is empty: remove it, and 'dragoman init' writes a new one"),
        (" \n ", "line 2, column 2: the file is empty: remove it, and 'dragoman init' writes a new one"),
        ('{"a": {\n', "line 2, column 1: the file ends here, before each { and [ is closed"),
        ('{"a": 1, // one\n"b": 2}', "line 1, column 10: JSON has no comments: remove this one"),
        ('{"a": 1 /* one */}', "line 1, column 9: JSON has no comments: remove this one"),
        ('# one\n{"a": 1}', "line 1, column 1: JSON has no comments: remove this one"),
        ('{"a": 1,\n}', "line 2, column 1: remove the comma before this }"),
        ('{"a": [1, ]}', "line 1, column 11: remove the comma before this ]"),
        ("{'a': 1}", "line 1, column 2: JSON has texts in double quotes only"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: a comma is missing before this"),
        ('{"a": 1\n 2}', "line 2, column 2: a comma or a closing bracket is missing before this"),
        ("[1,,]", "line 1, column 5: remove the comma before this ]"),
        ("[1,, 2]", f"line 1, column 4: {VALUE}"),
        ('{"a": True}', f"line 1, column 7: {VALUE}"),
        ('{"a": }', f"line 1, column 7: {VALUE}"),
        ("{a: 1}", "line 1, column 2: a name in double quotes must stand here"),
        ('{"a" 1}', "line 1, column 6: a colon is missing before this"),
        ('{"a": "b}', "line 1, column 7: this text has no closing double quote"),
        ('{"a": "b', "line 1, column 7: this text has no closing double quote"),
        ('{"a": "b\n// c"}', f"line 1, column 9: {CONTROL}"),
        ('{"a": "C:\\Users"}', f"line 1, column 10: {ESCAPE}"),
        ('{"a": "\\u12"}', f"line 1, column 9: {ESCAPE}"),
        ('{"a": 1} x', "line 1, column 10: nothing may follow the end of the JSON value"),
        ("\ufeff{}", "line 1, column 1: this is not JSON"),
        ('{"a": ' + "1" * 5000 + "}", "it contains a number that is too large"),
        ('{"a": 1,\n "b": {"a": 2},\n "a": 3}', "line 3: the setting 'a' is set twice in one object"),
        (
            '{"r": [{"a": 1}, {"a": 2,\n"b": "{\\"a\\":",\n"\\u0061": 3}]}',
            "line 3: the setting 'a' is set twice in one object",
        ),
    ],
)
def test_the_mistake_is_told(text: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        decode_settings(text)
    assert raised.value.message == told


@pytest.mark.parametrize(
    ("position", "told"),
    [
        (7, "line 1, column 10: remove the comma before this }"),
        (9, "line 1, column 10: remove the comma before this }"),
        (1, "line 1, column 2: this is not JSON"),
    ],
)
def test_no_words_of_the_library_are_told(position: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 has other words than 3.12 for a comma too many, and the position of the comma."""
    text = '{"a": 1, }'

    def fail(*_: object, **__: object) -> None:
        raise json.JSONDecodeError("Words of a later version", text, position)

    monkeypatch.setattr("gateway.settings.decode.json.loads", fail)
    with pytest.raises(SettingsError) as raised:
        decode_settings(text)
    assert raised.value.message == told
