"""Tests the line of a wrong setting in the file."""

import pytest

from gateway.core.errors import SettingsError
from gateway.settings import parse_settings
from gateway.settings.line_numbers import with_line

TEXT = """{
  "repair": "repair",
  "server": {"host": "port: {",
    "port": 70000
  },
  "models": {
    "a": {
      "backend": "b"
    },
    "a.b": {"repair": "x",
      "prot": 1}
  }
}"""


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("server.port: too large", 4),
        ("server must be an object", 3),
        ("unknown setting 'models.a.b.prot'; did you mean 'port'?", 11),
        ("models.a.backend: there is no backend 'b'", 8),
        ("models.a.nothing: what is missing is told with what it is missing in", 7),
        ("repair: no", 2),
    ],
)
def test_a_message_gets_the_line_of_its_key(message: str, line: int) -> None:
    assert with_line(TEXT, message) == f"line {line}: {message}"


@pytest.mark.parametrize("message", ["repairs: no", "it is nested too deep", "max_history_messages: an alias"])
def test_other_messages_stay(message: str) -> None:
    assert with_line(TEXT, message) == message


def test_a_wrong_file_is_told_with_line_and_key() -> None:
    with pytest.raises(SettingsError, match=r"^line 3: unknown setting 'server\.prot'; did you mean 'port'"):
        parse_settings('{\n "server": {\n  "prot": 1}}')
