"""Tests the dependencies: pinned by hash, without a named index or a known vulnerability, and listed."""

import hashlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from ruamel.yaml import YAML

from tests.paths import ROOT

REQUIREMENTS: Final = sorted((ROOT / "requirements").rglob("*.txt"))

# The first versions without a published hole that reaches a gateway.
FLOORS: Final = {
    "starlette": (1, 0, 1),  # host headers that changed the path, and slow ranges
    "h11": (0, 16),  # chunks read leniently
    "protobuf": (6, 33, 5),  # recursion without an end
}
# What is not installed cannot be reached: parsers of forms, and what obeys files and variables of its own.
UNWANTED: Final = frozenset({"python-multipart", "litellm", "pyyaml", "requests", "jinja2"})
# The exporter of traces comes with `requests`, which it uses without them.
TRACED: Final = UNWANTED - {"requests"}


def _versions(text: str) -> dict[str, tuple[int, ...]]:
    pins = re.findall(r"^([a-z0-9_.-]+)==(\d+(?:\.\d+)*)", text, re.MULTILINE)
    return {name: tuple(int(part) for part in version.split(".")) for name, version in pins}


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: file.name)
def test_every_requirement_is_pinned_by_hash_and_from_no_named_place(file: Path) -> None:
    text = file.read_text()
    assert "://" not in text
    for option in ("--index", "--extra-index", "--find-links", "--trusted-host", "-e ", "git+"):
        assert option not in text
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text)[1:]
    assert blocks
    for block in blocks:
        assert re.match(r"[A-Za-z0-9_.-]+==[^\s;]+", block) and "--hash=sha256:" in block, block[:60]


@pytest.mark.parametrize("name", ["browser", "clients", "grpc"])
def test_every_program_of_npm_is_pinned_by_version_and_hash_and_from_no_named_place(name: str) -> None:
    folder = ROOT / "requirements" / name
    asked = json.loads((folder / "package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in asked.values())
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["dependencies"] == asked
    assert packages.keys() >= {f"node_modules/{name}" for name in asked}
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package and "://" not in package["version"], name


@pytest.mark.parametrize(
    ("file", "unwanted"),
    [
        ("runtime.txt", UNWANTED),
        ("dev.txt", TRACED),
        ("otel.txt", TRACED),
        ("valkey.txt", UNWANTED),
        ("documents.txt", UNWANTED),
    ],
)
def test_no_pin_lies_below_a_known_hole(file: str, unwanted: frozenset[str]) -> None:
    versions = _versions((ROOT / "requirements" / file).read_text())
    assert {name for name in FLOORS if versions.get(name, FLOORS[name]) < FLOORS[name]} == set()
    assert file in ("otel.txt", "valkey.txt", "documents.txt") or versions.keys() >= FLOORS.keys()
    assert not versions.keys() & unwanted


def test_what_is_installed_with_a_gateway_and_for_its_traces_has_the_same_versions() -> None:
    runtime, otel = (_versions((ROOT / "requirements" / file).read_text()) for file in ("runtime.txt", "otel.txt"))
    assert {name: otel[name] for name in otel if name in runtime and otel[name] != runtime[name]} == {}


def _bill(*arguments: str) -> str:
    command = [sys.executable, str(ROOT / "requirements" / "sbom.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_bill_of_materials_lists_every_pin_with_its_hashes() -> None:
    written = _bill()
    document = json.loads(written)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    pinned = (ROOT / "requirements" / "runtime.txt").read_text()
    listed = {part["name"]: part for part in document["components"] if part["purl"].startswith("pkg:pypi/")}
    assert listed.keys() == set(re.findall(r"^([A-Za-z0-9_.-]+)==", pinned, re.MULTILINE))
    assert sum(len(part["hashes"]) for part in listed.values()) == pinned.count("--hash=sha256:")
    assert "://" not in written
    assert _bill() == written


def test_the_bill_of_materials_knows_who_needs_what() -> None:
    document = json.loads(_bill())
    needs = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["build"]]
    direct = {re.split(r"[><=;\[ ]", requirement)[0] for requirement in asked}
    own = needs[document["metadata"]["component"]["bom-ref"]]
    pypi = {ref for ref in own if ref.startswith("pkg:pypi/")}
    assert {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in pypi} == direct
    assert needs.keys() == {part["bom-ref"] for part in document["components"]} | {
        document["metadata"]["component"]["bom-ref"]
    }


def test_the_bill_of_materials_lists_the_packages_whose_files_the_wheel_holds() -> None:
    page = ROOT / "gateway" / "inspector" / "page" / "vendor"
    document = json.loads(_bill())
    held = {part["purl"]: part for part in document["components"] if part["purl"].startswith("pkg:npm/")}
    assert {url.partition("@")[0] for url in held} == {"pkg:npm/preact", "pkg:npm/htm"}
    hashes = {file["name"]: file["hashes"][0]["content"] for part in held.values() for file in part["components"]}
    assert hashes == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in page.iterdir()
        if path.name != "manifest.json"
    }
    own = document["metadata"]["component"]["bom-ref"]
    (needed,) = (entry["dependsOn"] for entry in document["dependencies"] if entry["ref"] == own)
    assert held.keys() <= set(needed)
    assert all(part["licenses"] for part in held.values())


def test_a_requirement_without_a_hash_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    for line in ("msgspec==1.0", "msgspec>=1.0 \\\n    --hash=sha256:" + "0" * 64):
        file.write_text(line + "\n")
        with pytest.raises(subprocess.CalledProcessError):
            _bill(str(file))


def test_the_workflow_tests_every_python_that_the_package_claims() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    jobs = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    (alone,) = (
        step["with"]["python-version"] for step in jobs["run"]["steps"] if "with" in step and "python" in str(step)
    )
    assert claimed == sorted([alone, *jobs["pythons"]["strategy"]["matrix"]["python"]])
    assert project["requires-python"] == f">={claimed[0]}"


def test_the_commands_of_the_workflow_work() -> None:
    """Those that Windows and macOS run after the installation."""
    steps = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["systems"]["steps"]
    commands = [step["run"] for step in steps if "run" in step and "pip install" not in step["run"]]
    assert len(commands) == 2
    for command in commands:
        program, *arguments = shlex.split(command)
        ran = subprocess.run(
            [Path(sys.executable).parent / program, *arguments], cwd=ROOT, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
