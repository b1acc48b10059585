"""A test that needs more than the environment has is run by one target of the Makefile, and by no other."""

import re
import tomllib
from typing import Final

from tests.paths import ROOT

_OPTIONS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
# marker -> the target that its description names; that of a tier chooses with an option
_NAMED: Final = re.findall(r"^(\w+): .*\(make ([\w-]+)\)$", "\n".join(_OPTIONS["markers"]), re.MULTILINE)
TARGETS: Final = {marker: target for marker, target in _NAMED if marker != "full"}


def test_make_test_leaves_out_what_other_targets_run() -> None:
    assert f"-m '{' and '.join(f'not {marker}' for marker in sorted(TARGETS))}'" in _OPTIONS["addopts"]


def test_each_marker_is_chosen_by_its_target_alone_in_every_folder_that_has_it() -> None:
    """The target runs every case: no other target runs those of the second tier."""
    recipes = re.findall(r"^([\w-]+):.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    chosen = [
        (marker, target, folders.split())
        for target, recipe in recipes
        for marker, folders in re.findall(r"pytest --tier all -m (\w+)(?: -\w+)*((?: tests/\w+)+)", recipe)
    ]
    assert {marker: target for marker, target, _ in chosen} == TARGETS and len(chosen) == len(TARGETS)
    for marker, _, folders in chosen:
        marked = re.compile(rf"pytest\.mark\.{marker}\b")
        files = [path for path in (ROOT / "tests").rglob("*.py") if marked.search(path.read_text(encoding="utf-8"))]
        assert files and {"/".join(path.relative_to(ROOT).parts[:2]) for path in files} == set(folders)
