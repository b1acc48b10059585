"""`dragoman adapters` and `dragoman dialects` list names, and say where each is from."""

from pathlib import Path

import pytest

from gateway.cli import main
from gateway.registry import ADAPTERS, DIALECTS


def printed(capsys: pytest.CaptureFixture[str], command: str) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main([command])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that gives three names, one of them a built-in one. None of its classes exists."""
    metadata = tmp_path / "lines-2.1.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 2.1\n")
    metadata.joinpath("entry_points.txt").write_text(
        "[dragoman.adapters]\nmorse = lines:Morse\ntext = lines:Text\n[dragoman.dialects]\nmorse = lines:Dialect\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("package")
def test_every_name_has_a_line_with_its_package_and_class(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split(None, 1) for line in printed(capsys, "adapters")]
    assert [name for name, _ in lines] == [*ADAPTERS, "morse", "text"]
    assert lines[-2][1] == "lines 2.1  lines:Morse"
    assert lines[-1][1] == "lines 2.1  lines:Text (not used: the name is built in)"


@pytest.mark.usefixtures("package")
def test_the_dialects_are_listed_alike(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "dialects")
    assert [line.split()[0] for line in lines] == [*DIALECTS, "morse"]
    assert lines[0].split()[1:] == ["built", "in", DIALECTS["openai_chat"]]
