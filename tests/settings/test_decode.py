"""A file that is no JSON is told with its line, and in the words of a person where the mistake is a common one."""

import pytest

from gateway.core.errors import SettingsError
from gateway.settings.decode import decode_settings


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
        ('{"a": 1} x', "line 1, column 10: Extra data"),
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
