"""What the workflows run is fixed by a commit, and a release has a version with changes."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, WORKFLOWS

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-23

### Added

- One.

## [1.1.0] - 2026-11-01

- Two.
"""


@pytest.fixture(scope="module")
def notes() -> Callable[[str, str, str], str]:
    """The gate: tag, version, changelog -> the notes of the release."""
    found: Callable[[str, str, str], str] = runpy.run_path(str(DEPLOY / "release" / "changelog.py"))["notes"]
    return found


def test_the_notes_of_a_release_are_its_section(notes: Callable[[str, str, str], str]) -> None:
    assert notes("v1.2.0", "1.2.0", CHANGELOG) == "### Added\n\n- One."


@pytest.mark.parametrize(
    ("tag", "old", "new", "said"),
    [
        ("v1.2.1", "", "", "the tag v1.2.1 is not v1.2.0"),
        ("1.2.0", "", "", "the tag 1.2.0 is not v1.2.0"),
        ("v1.2.0", " - 2026-11-23", "", "has no section"),
        ("v1.2.0", "1.2.0", "1.3.0", "has no section"),
        ("v1.2.0", "- One.", "", "has no entry"),
        ("v1.2.0", "[Unreleased]\n", "[Unreleased]\n\n- Three.\n", 'entries under "Unreleased"'),
        ("v1.2.0", "## [Unreleased]", "## [2.0.0] - 2026-12-01\n\n- Four.", "is not the first version"),
    ],
)
def test_a_release_that_is_not_ready_is_refused(
    notes: Callable[[str, str, str], str], tag: str, old: str, new: str, said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        notes(tag, "1.2.0", CHANGELOG.replace(old, new, 1))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit_and_names_its_version(workflow: Path) -> None:
    used = re.findall(r"^ +(?:- )?uses: (.+)$", workflow.read_text(encoding="utf-8"), re.M)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_an_action_has_one_commit_in_all_workflows() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w-]+/[\w-]+)@(\w+)", text))
    assert len(pins) == len({name for name, _ in pins})


def test_no_workflow_has_a_secret() -> None:
    assert [path.name for path in WORKFLOWS if "secrets." in path.read_text(encoding="utf-8")] == []
