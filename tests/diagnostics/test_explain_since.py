"""`dragoman explain NEW --since OLD` says what a provider's prompt cache loses, and by whom; nothing is sent."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.core.conversation import Json

SETTINGS: Final[Json] = {
    "backends": {
        "chat": {"adapter": "openai_chat", "base_url": "http://chat"},
        "text": {"adapter": "text", "wire": "llama_cpp", "base_url": "http://text"},
    },
    "models": {"chat": {"backend": "chat"}, "text": {"backend": "text"}},
    "max_history_messages": 6,
    "trim_step": 1,
}


def talk(turns: int, day: str = "Monday") -> list[Json]:
    said: list[Json] = [{"role": "system", "content": f"You are an agent. Today is {day}."}]
    for number in range(turns):
        said.append({"role": "user", "content": f"Question {number}, and what stands in this file?"})
        said.append({"role": "assistant", "content": f"Answer {number}, and what stands in this file."})
    return said[:-1]


def run(*arguments: str) -> int:
    """Runs the command; returns its exit status."""
    with pytest.raises(SystemExit) as left:
        main([*arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def explain(folder: Path, later: Json, earlier: Json, *options: str) -> int:
    for name, value in (("later", later), ("earlier", earlier), ("settings", SETTINGS)):
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    files = [str(folder / "later.json"), "--since", str(folder / "earlier.json")]
    return run("explain", *files, "--settings", str(folder / "settings.json"), *options)


@pytest.mark.parametrize(
    ("model", "later", "earlier", "expected"),
    [
        ("chat", talk(3), talk(2), ("", "")),
        ("chat", talk(3, "Tuesday"), talk(2), ("client_system", "")),
        ("chat", talk(5), talk(4), ("", "")),
        ("text", talk(5), talk(4), ("rule", "HISTORY_LIMITED")),
    ],
)
def test_the_cause_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model: str,
    later: Sequence[Json],
    earlier: Sequence[Json],
    expected: tuple[str, str],
) -> None:
    assert explain(tmp_path, [*later], [*earlier], "--json", "--model", model) == 0
    cache: dict[str, Any] = json.loads(capsys.readouterr().out)["cache"]
    assert (cache["cause"], cache["rule"]) == expected
    assert (cache["lost"] > 0) == bool(expected[0]) and cache["held"] >= 0
    assert cache["sentence"].startswith("The ")


def test_a_whole_request_of_another_model_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later: Json = {"model": "chat", "messages": talk(2)}
    earlier: dict[str, Json] = {"model": "text", "messages": talk(1)}
    assert explain(tmp_path, later, earlier) == 0
    printed = capsys.readouterr().out
    assert "prompt cache: The requests went to different models or backends, text/text and chat/chat: about " in printed
    assert explain(tmp_path, later, {**earlier, "model": "chat"}) == 0
    assert "prompt cache: The earlier request is the beginning of this one." in capsys.readouterr().out


def test_without_another_request_nothing_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(talk(1)), encoding="utf-8")
    assert run("explain", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out)["cache"] is None


def test_settings_without_a_backend_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("later", "earlier"):
        Path(f"{name}.json").write_text(json.dumps(talk(1)), encoding="utf-8")
    assert run("explain", "later.json", "--since", "earlier.json") == 2
    assert "the settings must have a model with a backend" in capsys.readouterr().err
