"""Tests the content of the wheel: the packages and their metadata, and no code that runs on its own."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT

PACKAGES: Final = ("gateway", "adapters")
PAGE: Final = frozenset({".css", ".html", ".js", ".mjs", ".svg", ".txt"})  # of the inspector, with its licences
SUFFIXES: Final = PAGE | {".py", ".pyi", ".json", ".pb", ".typed", ".bash", ".fish", ".ps1", ".toml", ".zsh"}
MANUAL: Final = "data/share/man/man1/dragoman.1"  # in the folder of what is installed beside the packages
METADATA: Final = frozenset({"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"})
BUILD: Final = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the setuptools that is installed here, without a network."""
    source = tmp_path_factory.mktemp("source")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # What lies about in a checkout must not be shipped with it.
    for name in ("evil.pth", "stray.py", "gateway/evil.pth", "gateway/.env", "settings.json"):
        (source / name).write_text("{}")
    shutil.copytree(source / "adapters" / "openai_chat", source / "tests")
    target = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD, str(target)], cwd=source, check=True, capture_output=True, timeout=120)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    """The names of all files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _metadata(names: list[str]) -> str:
    (folder,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    return folder + "/"


def test_nothing_is_shipped_but_the_packages_and_their_metadata(names: list[str]) -> None:
    folder = _metadata(names)
    data = folder.replace(".dist-info", ".data")
    assert {name.partition("/")[0] + "/" for name in names} == {folder, data, *(package + "/" for package in PACKAGES)}
    assert [name for name in names if name.startswith(data)] == [data + MANUAL]
    assert {name.removeprefix(folder) for name in names if name.startswith(folder)} == METADATA


def test_nothing_is_shipped_that_runs_by_itself(names: list[str], wheel: Path) -> None:
    assert {Path(name).suffix for name in names if name.startswith(PACKAGES)} <= SUFFIXES
    assert not [name for name in names if Path(name).name in ("sitecustomize.py", "usercustomize.py", ".env")]
    with zipfile.ZipFile(wheel) as archive:
        entry_points = archive.read(_metadata(names) + "entry_points.txt").decode()
        assert b"Root-Is-Purelib: true" in archive.read(_metadata(names) + "WHEEL")
    # pytest imports the plugin by itself; it adds an option, a marker and a fixture.
    plugin = ["[pytest11]", "dragoman", "=", "gateway.testing.pytest_plugin"]
    assert entry_points.split() == ["[console_scripts]", "dragoman", "=", "gateway.cli:main", *plugin]


def test_every_module_is_shipped(names: list[str]) -> None:
    sources = {
        str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*") if _is_source(path)
    }
    assert sources - set(names) == set()
    assert {"gateway/py.typed", "adapters/py.typed"} <= set(names)
    assert {"adapters/warp/multi_agent_pb2.py", "adapters/warp/multi_agent_pb2.pyi"} <= set(names)


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix in SUFFIXES


def test_what_is_shipped_can_be_imported(wheel: Path) -> None:
    imports = "import sys; sys.path.insert(0, sys.argv[1]); import gateway, gateway.cli, adapters.warp; "
    place = imports + "assert sys.argv[1] in gateway.__file__, gateway.__file__"
    ran = subprocess.run([sys.executable, "-I", "-c", place, str(wheel)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_the_metadata_asks_for_what_is_documented(wheel: Path, names: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(_metadata(names) + "METADATA").decode().splitlines()
    asked = {
        line.split()[1].partition(">")[0] for line in lines if line.startswith("Requires-Dist: ") if "extra" not in line
    }
    documented = (ROOT / "docs" / "dependencies.md").read_text()
    assert asked and not [name for name in asked if f"`{name}`" not in documented]
