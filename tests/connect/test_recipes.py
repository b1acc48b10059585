"""The console blocks of the recipes show what the commands print, in an empty home folder and without settings."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from gateway.connect.client import client_names
from tests.paths import ROOT

RECIPES: Final = ROOT / "docs" / "recipes"
# A command, and what stands below it until the next one or the end of the block.
_TRANSCRIPT: Final = re.compile(r"^(\$ (dragoman [^\n]*)\n)((?:(?!\$ |```).*\n)*)", re.M)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.md")))
def test_a_recipe_shows_what_is_printed(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rewrite_golden: bool,
) -> None:
    for variable in ("DRAGOMAN_API_KEYS", "DRAGOMAN_PORT", "DRAGOMAN_SETTINGS", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert name in client_names()

    def printed(found: re.Match[str]) -> str:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(found[2])[1:])
        assert ended.value.code == 0
        return found[1] + capsys.readouterr().out

    page = RECIPES / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    true, count = _TRANSCRIPT.subn(printed, text)
    if rewrite_golden:
        page.write_text(true, encoding="utf-8")
    assert count > 0 and page.read_text(encoding="utf-8") == true, "make golden writes it anew"
