"""The pages about the project match its folders, import rules, modules and pages."""

import pkgutil
import re
from pathlib import Path
from typing import Final, get_args

import pytest

from gateway.dialects.stream_state import STREAM_TRANSITIONS, StreamInput
from gateway.server.http.client_connection_state import CLIENT_TRANSITIONS, ClientInput
from gateway.server.upstream.circuit import CIRCUIT_TRANSITIONS, CircuitInput
from gateway.server.upstream.http1.backend_connection_state import BACKEND_TRANSITIONS, BackendInput
from gateway.server.upstream.http2.connection_state import HTTP2_TRANSITIONS, Http2Input
from gateway.testing.layering import RULES, ImportRule
from tests.paths import ROOT
from tests.transitions import markdown

DOCS: Final = ROOT / "docs"
PAGES: Final = tuple(sorted(path for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if path.name != "CHANGELOG.md"))
ARCHITECTURE: Final = (DOCS / "architecture.md").read_text(encoding="utf-8")
GLOSSARY: Final = (DOCS / "glossary.md").read_text(encoding="utf-8")
INDEX: Final = (DOCS / "index.md").read_text(encoding="utf-8")
# The first cell of a row: a folder, which ends with a slash, or a module.
PLACE: Final = re.compile(r"^\| `([\w/*]+/|[\w/]+\.py)` \|(.*)\|$", re.MULTILINE)
TERM: Final = re.compile(r"^\| ([^|`]+) \| ([^|]+) \| `([\w.:]+)` \|$", re.MULTILINE)
NAMED_PATH: Final = re.compile(
    r"(?<![\w/.-])((?:gateway|adapters|bench|docs|proto|tests)/[\w/.*-]*(?:/|\.py|\.md|\.json))(?![\w/])"
)
NAMED_MODULE: Final = re.compile(r"`((?:gateway|adapters|bench|tests)(?:\.\w+)+)`")
# Names that stand for a reader's own.
PLACEHOLDER: Final = re.compile("NAME|parrot")


def _cells(rest: str) -> list[str]:
    return [cell.strip() for cell in rest.split("|")]


def _rows(cells: int) -> dict[str, list[str]]:
    """The rows of a place with so many cells beside it."""
    rows = [(place, _cells(rest)) for place, rest in PLACE.findall(ARCHITECTURE)]
    return {place: found for place, found in rows if len(found) == cells}


def _place(package: str) -> str:
    path = package.replace(".", "/")
    return f"{path}/" if any(found.is_dir() for found in ROOT.glob(path)) else f"{path}.py"


def _values() -> tuple[str, ...]:
    (listed,) = re.findall(r"^\*\*values\*\*: ((?:.+\n)+)", ARCHITECTURE, re.MULTILINE)
    return tuple(f"gateway.{name}" for name in re.findall(r"`([\w.]+)`", listed))


def _allowed(rule: ImportRule) -> tuple[str, str]:
    """What the page must say of a rule: what of the project, and what else."""
    if rule.gateway is None:
        ours = "all of `gateway`"
    else:
        short = set(_values()) <= set(rule.gateway)
        names = [name.removeprefix("gateway.") for name in rule.gateway if not (short and name in _values())]
        ours = ", ".join([*(["values"] if short else []), *(f"`{name}`" for name in names)]) or "nothing"
    packages = "any package" if rule.others is None else ", ".join(f"`{name}`" for name in rule.others)
    effects = "any IO" if rule.io is None else ", ".join(f"`{name}`" for name in rule.io) or "no IO"
    return ours, f"{packages}; {effects}"


RULED: Final = {_place(rule.package): rule for rule in RULES if rule.package != "gateway"}


def test_every_import_rule_has_a_row_and_every_row_a_rule() -> None:
    assert set(_rows(3)) == set(RULED)


@pytest.mark.parametrize("place", RULED)
def test_a_row_says_what_the_import_rule_allows(place: str) -> None:
    _, *said = _rows(3)[place]
    assert tuple(said) == _allowed(RULED[place])


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    rooms = {
        f"{found.parent.relative_to(ROOT)}/"
        for folder in (
            "gateway",
            "gateway/server",
            "gateway/demo",
            "gateway/dialects",
            "adapters",
            "adapters/warp/backend",
        )
        for found in (ROOT / folder).glob("*/__init__.py")
    }
    modules = {f"gateway/{path.name}" for path in (ROOT / "gateway").glob("*.py")}
    listed = _rows(3).keys() | _rows(1).keys()
    assert rooms | modules <= listed
    assert {place for place in listed if not any(ROOT.glob(place.rstrip("/")))} == set()


def test_no_place_has_two_rows() -> None:
    places = [place for place, _ in PLACE.findall(ARCHITECTURE)]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    named = {name for name in NAMED_PATH.findall(page.read_text(encoding="utf-8")) if not PLACEHOLDER.search(name)}
    # A link is relative to its page.
    assert {name for name in named if not (any(ROOT.glob(name.rstrip("/"))) or (page.parent / name).exists())} == set()


def test_the_modules_that_the_pages_name_exist() -> None:
    named = {name for page in PAGES for name in NAMED_MODULE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 15
    for name in named:
        pkgutil.resolve_name(name)  # raises where there is no such module or name


def test_the_page_for_contributors_names_every_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (rooms,) = re.findall(r"^\| `gateway/server/` \| (.+) \|$", text, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", rooms)) == _folders(ROOT / "gateway" / "server")
    assert {name for name in _folders(ROOT / "gateway") if f"`gateway/{name}/`" not in text} == set()


def _folders(package: Path) -> set[str]:
    return {path.parent.name for path in package.glob("*/__init__.py")}


def test_the_page_shows_the_states_of_all_connections_and_of_a_stream() -> None:
    assert markdown(CLIENT_TRANSITIONS, get_args(ClientInput)) in ARCHITECTURE
    assert markdown(BACKEND_TRANSITIONS, get_args(BackendInput)) in ARCHITECTURE
    assert markdown(HTTP2_TRANSITIONS, get_args(Http2Input)) in ARCHITECTURE
    assert markdown(CIRCUIT_TRANSITIONS, get_args(CircuitInput)) in ARCHITECTURE
    assert markdown(STREAM_TRANSITIONS, get_args(StreamInput)) in ARCHITECTURE


def test_a_term_has_one_row_and_the_rows_are_sorted() -> None:
    terms = [term for term, _, _ in TERM.findall(GLOSSARY)]
    assert terms == sorted(set(terms), key=str.casefold)


def test_every_row_of_the_glossary_is_read() -> None:
    rows = [line for line in GLOSSARY.splitlines() if line.startswith("| ")]
    assert len(TERM.findall(GLOSSARY)) == len(rows) - 2 > 0


@pytest.mark.parametrize("home", [home for _, _, home in TERM.findall(GLOSSARY)])
def test_the_home_of_a_term_exists(home: str) -> None:
    assert pkgutil.resolve_name(home) is not None


def test_the_index_lists_every_page_once() -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+\.md)\): \S", INDEX, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {(DOCS / name).resolve() for name in listed} == set(PAGES) - {DOCS / "index.md", ROOT / "README.md"} | {
        ROOT / "CHANGELOG.md"
    }


def test_the_readme_links_to_the_index() -> None:
    assert "](docs/index.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
