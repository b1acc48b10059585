"""`explain --candidates` shows the models that may answer, in the order in which they would be asked."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.core.conversation import Json

PICTURE: Final[Json] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TOOL: Final[Json] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def _settings() -> dict[str, Json]:
    chat: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1"}
    other: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:2"}
    text: Json = {"adapter": "text", "base_url": "http://127.0.0.1:3", "wire": "llama_cpp"}
    models: Json = {
        "m": {"backend": "chat", "candidates": ["words", "shown", "same"], "longer": "small"},
        "words": {"backend": "text"},
        "shown": {"backend": "text", "images": "placeholder"},
        "same": {"backend": "other"},
        "small": {"backend": "other", "context_length": 10},
    }
    return {"backends": {"chat": chat, "other": other, "text": text}, "models": models}


def _explained(folder: Path, capsys: pytest.CaptureFixture[str], content: Json, *options: str) -> str:
    (folder / "settings.json").write_text(json.dumps(_settings()), encoding="utf-8")
    request = {"model": "m", "messages": [{"role": "user", "content": content}], "tools": [TOOL]}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    files = [str(folder / "request.json"), "--settings", str(folder / "settings.json")]
    with pytest.raises(SystemExit) as ended:
        main(["explain", *files, "--candidates", *options])
    assert not ended.value.code
    return capsys.readouterr().out


def test_the_one_that_loses_least_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content: Json = [{"type": "text", "text": "look at this picture, and say what it shows, please"}, PICTURE]
    found: Any = json.loads(_explained(tmp_path, capsys, content, "--json"))["candidates"]
    assert [one["model"] for one in found] == ["m", "same", "shown", "small", "words"]
    assert [one["over_window"] for one in found] == [False, False, False, True, False]
    assert found[1]["losses"] == 0 and found[2]["losses"] >= 1 and "images" in found[2]["broken"]
    assert found[4]["losses"] is None and "image" in found[4]["refusal"]


def test_the_table_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _explained(tmp_path, capsys, [PICTURE]).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("model  "))
    assert lines[at].split() == ["model", "backend", "losses", "of"]
    assert lines[at + 1].split() == ["m", "chat", "0", "-"]
    assert lines[at + 5].split()[:3] == ["words", "text", "-"] and "cannot answer" in lines[at + 5]


def test_what_only_the_account_knows_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content: Json = [{"type": "file", "file": {"file_id": "file-1"}}]
    found: Any = json.loads(_explained(tmp_path, capsys, content, "--json"))["candidates"]
    assert found[0]["losses"] == 0
    assert {one["refusal"] for one in found[1:]} == {"what file_id refers to is for another account"}
