"""`dragoman models import` prints or writes the keys of settings that a file about models tells, and what it cannot."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.settings.test_model_files import LITELLM

SETTINGS: Final = """{
  "backends": {
    "o": {"adapter": "openai_responses", "base_url": "https://api.openai.com/v1"},
    "local": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9/v1"}
  },
  "models": {
    "mine": {"backend": "o", "name": "m", "price": {"input": 1, "output": 2}, "facts": {"images": false}},
    "other": {"backend": "o"},
    "local": {"backend": "local", "name": "m"},
    "x-*": {"backend": "o"}
  }
}
"""


def run(folder: Path, *arguments: str, document: Any = LITELLM) -> tuple[int, str, str]:  # Any: JSON
    settings, file = folder / "settings.json", folder / "models.json"
    if not settings.exists():
        settings.write_text(SETTINGS)
    file.write_text(json.dumps(document))
    command = [sys.executable, "-m", "gateway", "models", "import", str(file), "--settings", str(settings), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_what_is_known_is_printed_as_keys_and_what_is_not_is_told(tmp_path: Path) -> None:
    status, printed, told = run(tmp_path)
    assert status == 0
    (name,) = json.loads(printed)["models"]
    entry = json.loads(printed)["models"][name]
    assert name == "mine" and entry["context_length"] == 272000 and "price" not in entry
    assert entry["facts"]["max_output"] == 128000 and "images" not in entry["facts"]
    assert told.splitlines() == [
        "models.mine: price is set: it stays (--replace replaces it)",
        "models.mine: facts.images is set: it stays (--replace replaces it)",
        "models.mine: no key holds input_cost_per_token_above_200k_tokens",
        "models.other: the file (LiteLLM) has no model 'other' of openai",
        "models.local: the file (LiteLLM) does not know whose http://127.0.0.1:9/v1 is: name its provider by "
        "--provider",
        "models.x-*: it stands for many models: nothing is read for it",
    ]
    assert (tmp_path / "settings.json").read_text() == SETTINGS


def test_written_keys_stand_in_the_file_and_nothing_else_changes(tmp_path: Path) -> None:
    status, printed, told = run(tmp_path, "--write", "--replace", "--model", "mine")
    assert (status, printed) == (0, "") and "settings.json.bak" in told
    assert (tmp_path / "settings.json.bak").read_text() == SETTINGS
    changed = json.loads((tmp_path / "settings.json").read_text())
    mine = changed["models"].pop("mine")
    assert mine["price"] == {"input": 2.5, "output": 10, "cached_input": 0.25}
    assert mine["facts"]["images"] is True and mine["context_length"] == 272000
    before = json.loads(SETTINGS)
    del before["models"]["mine"]
    assert changed == before
    again = run(tmp_path, "--write", "--replace", "--model", "mine")
    assert again[0] == 0 and "nothing to change" in again[2]


def test_the_provider_may_be_named(tmp_path: Path) -> None:
    status, printed, _ = run(tmp_path, "--provider", "groq", "--model", "local")
    assert status == 0
    assert json.loads(printed) == {"models": {"local": {"context_length": 8192, "facts": {"efforts": []}}}}


def test_a_file_that_knows_none_of_the_models_is_status_1(tmp_path: Path) -> None:
    status, printed, told = run(tmp_path, "--model", "other")
    assert (status, printed) == (1, "") and "has no model 'other'" in told


@pytest.mark.parametrize(
    ("arguments", "document", "words"),
    [
        (("--model", "mina"), LITELLM, "there is no model 'mina'; did you mean 'mine'?"),
        (("--provider", "opnai"), LITELLM, "the file has no provider 'opnai'; did you mean 'openai'?"),
        ((), {"a": 1}, "it is in none of the forms"),
    ],
)
def test_a_mistake_is_said(tmp_path: Path, arguments: tuple[str, ...], document: Any, words: str) -> None:  # Any: JSON
    status, printed, told = run(tmp_path, *arguments, document=document)
    assert (status, printed) == (2, "") and words in told
    assert (tmp_path / "settings.json").read_text() == SETTINGS


def test_a_file_that_does_not_exist_is_said(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(SETTINGS)
    command = [sys.executable, "-m", "gateway", "models", "import", str(tmp_path / "none"), "--settings", str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "cannot be read" in done.stderr and "Traceback" not in done.stderr


HOSTILE: Final = "\x1b]0;title\x07\x9b2J\u202e"


@pytest.mark.parametrize("form", ["LiteLLM", "genai-prices"])
def test_nothing_of_a_file_moves_a_cursor(tmp_path: Path, form: str) -> None:
    entry = {**LITELLM["m"], f"input_cost{HOSTILE}": 1}
    document: Any = {"m": entry, **{key: value for key, value in LITELLM.items() if key != "m"}}
    if form == "genai-prices":
        prices = {"input_mtok": 1, "output_mtok": 2, f"x{HOSTILE}": 3}
        model = {"id": "m", "name": f"M{HOSTILE}", "prices": prices, "price_comments": f"two\nlines{HOSTILE}"}
        document = {"providers": [{"id": "openai", "models": [model]}]}
    status, printed, told = run(tmp_path, "--model", "mine", "--replace", document=document)
    assert status == 0
    for text in (printed, told):
        assert all(char.isprintable() or char == "\n" for char in text), ascii(text)
    assert "\\x1b]0;title" in told and "display_name" not in json.loads(printed)["models"]["mine"].get("facts", {})
    assert len(told.splitlines()) == 1


def test_a_provider_that_moves_a_cursor_is_written_with_escapes(tmp_path: Path) -> None:
    document = {"m": {**LITELLM["m"], "litellm_provider": f"open{HOSTILE}"}}
    status, printed, told = run(tmp_path, "--provider", "open", document=document)
    assert (status, printed) == (2, "")
    assert all(char.isprintable() or char == "\n" for char in told), ascii(told)
