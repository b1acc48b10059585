"""Tests the files of the inspector's page: what others wrote is as it was taken over, and nothing writes HTML."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.paths import ROOT

PAGE: Final = ROOT / "gateway" / "inspector" / "page"
VENDOR: Final = PAGE / "vendor"
MODULES: Final = sorted(PAGE.glob("*.js"))
MOST_LINES: Final = 250
# What turns a text into elements or code.
DANGEROUS: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc"
    r"|\beval\(|new Function"
)


def _packages() -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))["packages"]
    return packages


def test_what_others_wrote_is_as_it_was_taken_over() -> None:
    files = [file for package in _packages() for file in package["files"]]
    assert {file["name"] for file in files} | {"manifest.json"} == {path.name for path in VENDOR.iterdir()}
    for file in files:
        assert hashlib.sha256((VENDOR / file["name"]).read_bytes()).hexdigest() == file["sha256"], file["name"]


@pytest.mark.parametrize("package", _packages(), ids=lambda package: package["name"])
def test_each_package_has_its_version_its_licence_and_a_reason(package: dict[str, Any]) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["licence"] in {"MIT", "Apache-2.0"}
    assert f"{package['name']}.LICENSE.txt" in {file["name"] for file in package["files"]}
    assert f"`{package['name']}` {package['version']}" in (ROOT / "docs" / "dependencies.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("path", [*MODULES, *VENDOR.glob("*.mjs")], ids=lambda path: path.name)
def test_every_import_is_a_file_of_the_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"""(?:\bfrom|\bimport)\s*["']([^"']+)["']""", text):
        assert target.startswith("./"), f"{path.name} imports {target}: a browser would not find it"
        assert (path.parent / target).is_file(), f"{path.name} imports {target}"
    assert not re.search(r"\bimport\(", text)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_makes_text_nodes_only_and_is_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("/** "), "the first line says what the module is for"
    assert DANGEROUS.search(text) is None
    assert re.search(r'\bstyle="', text) is None, "the policy refuses style attributes: sizes are set as properties"
    assert len(text.splitlines()) < MOST_LINES


def test_the_page_has_no_script_and_no_style_of_its_own() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(.*?)>(.*?)</script>", text) == [(' type="module" src="inspect/assets/app.js"', "")]
    assert re.search(r"<style|\sstyle=|\son\w+=|javascript:", text) is None


def test_nothing_is_asked_of_another_host() -> None:
    styles = [PAGE / "page.css", PAGE / "start.css"]
    for path in [PAGE / "index.html", *styles, *MODULES]:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"""["'(](?:https?:)?//\w""", text) is None, path.name
    assert not any("url(" in path.read_text(encoding="utf-8") for path in styles)


def test_the_list_and_the_style_sheet_agree_on_the_height_of_a_row() -> None:
    in_list = re.search(r"^const ROW = (\d+);", (PAGE / "list.js").read_text(encoding="utf-8"), re.MULTILINE)
    in_style = re.search(r"--row: (\d+)px;", (PAGE / "page.css").read_text(encoding="utf-8"))
    assert in_list and in_style and in_list[1] == in_style[1]


def test_the_inspectors_page_lists_every_key_and_no_other() -> None:
    table = re.findall(r'shown: "(.+?)", does: "(.+?)"', (PAGE / "keys.js").read_text(encoding="utf-8"))
    documented = (ROOT / "docs" / "inspector.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[^`]+` ?)+) \| (.+?) \|$", documented, re.MULTILINE)
    assert [(" ".join(re.findall(r"`([^`]+)`", keys)), does) for keys, does in rows] == table
