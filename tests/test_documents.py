"""The pages with lists contain exactly the existing items."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.adapter import Capabilities, SigningAdapter
from gateway.core.policy import Policy
from gateway.dialect import Dialect
from gateway.registry import load_adapter
from gateway.settings import parse_settings
from gateway.testing.adapter_case import GREETING
from tests.paths import ROOT

CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

# Literals that look like rule codes and are none: environment variables, words of a backend's wire, a flag of files.
OTHER_NAMES = re.compile(r"(?:DRAGOMAN|OTEL|AWS)_\w+|[A-Z_]+_API_KEY|OUT_OF_CREDITS|SYSTEM_PROMPT|O_BINARY")
# Words of an API that look like rule codes, by the modules that have them: there no other word passes.
WIRE_WORDS = {
    "adapters.gemini.backend.failure": {"API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED"},
    "adapters.proto.backend.rpc_status": {"RATE_LIMIT_EXCEEDED"},
    "adapters.gemini.client.errors": {
        "DEADLINE_EXCEEDED",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
    },
    "adapters.gemini.finish": {
        "BLOCKED_REASON_UNSPECIFIED",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "MALFORMED_FUNCTION_CALL",
        "MAX_TOKENS",
        "MISSING_THOUGHT_SIGNATURE",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    },
    "gateway.server.upstream.http.tls": {"ACCESS_DENIED", "KEY_TYPE_MISMATCH", "KEY_VALUES_MISMATCH", "UNKNOWN_CA"},
    "gateway.server.state.state_folder": {"STATE_DIRECTORY", "XDG_STATE_HOME"},
    "adapters.gemini.table": {"MODE_UNSPECIFIED", "THINKING_LEVEL_UNSPECIFIED"},
}
SILENT = re.compile(r"gateway\.(cli|core\.notices|core\.requirements|demo|testing)\b|adapters\.\w+\.demo\b")


def test_the_notices_page_lists_every_rule_and_no_other() -> None:
    page = (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")
    listed = {code for code in re.findall(r"`([^`\n]+)`", page) if CODE.fullmatch(code)}
    emitted = set(_codes())
    assert listed - emitted == set(), "on the page, but never emitted"
    assert emitted - listed == set(), "emitted, but not on the page"


def test_the_words_of_a_wire_are_none_of_the_rules_and_stand_in_their_modules() -> None:
    listed = set(re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")))
    for module, words in WIRE_WORDS.items():
        path = (ROOT / Path(*module.split("."))).with_suffix(".py")
        assert words <= set(_literals(path.read_text(encoding="utf-8"))), module
        assert not words & listed


def test_no_rule_is_listed_twice() -> None:
    page = (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \|", page, re.M)
    assert len(rows) == len(set(rows))


def test_the_dependencies_page_gives_a_reason_for_each_and_no_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = re.findall(r'^pin \S+ "([^"]+)"', (ROOT / "requirements" / "pin").read_text(encoding="utf-8"), re.M)
    apart = [name for names in asked for name in names.split()]
    entries = [*project["dependencies"], *(entry for extra in extras for entry in extra), *apart]
    declared = {_name(entry) for entry in entries}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \|", page, re.M)
    assert {name for name, _ in rows} == declared
    assert len(rows) == len(declared)


def test_the_tests_that_the_dependencies_page_names_exist() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 20
    for path, name in named:
        assert re.search(rf"^(?:async )?def {name or 'test_'}", (ROOT / path).read_text(encoding="utf-8"), re.M), path


@pytest.mark.parametrize("name", ["parrot.py", "test_parrot.py", "test_parrot_faults.py", "jackdaw.py"])
def test_the_backend_page_shows_the_example_that_is_tested(name: str) -> None:
    source = (ROOT / "tests" / "examples" / name).read_text(encoding="utf-8")
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    assert f"```python\n{source}```" in page


def test_the_backend_page_refers_to_the_second_example() -> None:
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    (name,) = set(re.findall(r"`(tests/examples/(?!parrot|test_)\w+\.py)`", page))
    source = (ROOT / name).read_text(encoding="utf-8")
    assert "ToolCallStart(" in source and "ReasoningDelta(" in source
    for quoted in (
        'ReasoningEnd(with_provider_state("magpie", {"opaque": line.seal}))',
        'provider_state(extra, "magpie").get("opaque")',
    ):
        assert quoted in source and f"`{quoted}`" in page


def test_the_backend_page_names_everything_that_a_backend_declares() -> None:
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    assert [name for name in Capabilities.__struct_fields__ if not re.search(rf"`{name}(=True)?`", page)] == []


def test_the_entry_on_the_backend_page_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
    entry, signing = re.findall(r"```json\n(.+?)```", page, re.S)
    settings = parse_settings(entry)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "examples"))
    adapter = load_adapter("parrot", settings.backends["parrot"], 1 << 20)
    body = adapter.encode(GREETING, Policy()).body
    assert b'"voice":"loud"' in body and b"Good morning." in body
    assert isinstance(load_adapter("jackdaw", parse_settings(signing).backends["jackdaw"], 1 << 20), SigningAdapter)


def test_the_dialect_page_names_everything_that_a_dialect_has() -> None:
    page = (ROOT / "docs" / "add-a-dialect.md").read_text(encoding="utf-8")
    members = {name for name in (*Dialect.__annotations__, *vars(Dialect)) if not name.startswith("_")}
    assert {name for name in members if f"`{name}`" not in page} == set()


def test_the_pages_link_to_files_that_exist() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_pages_name_make_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / ".pre-commit-config.yaml"]:
        named = set(re.findall(r"(?:`|entry: )make ([a-z0-9-]+)", path.read_text(encoding="utf-8")))
        assert named <= targets, f"{path.name} names {named - targets}"


def _codes() -> Iterator[str]:
    for package in ("gateway", "adapters"):
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not SILENT.match(module) and not path.stem.endswith("_pb2"):
                yield from set(_literals(path.read_text(encoding="utf-8"))) - WIRE_WORDS.get(module, set())


def _literals(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and CODE.fullmatch(value) and not OTHER_NAMES.fullmatch(value):
            yield value


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found is not None
    return found[0]


TASKS = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
NUMBERS = (
    "Ten",
    "Eleven",
    "Twelve",
    "Thirteen",
    "Fourteen",
    "Fifteen",
    "Sixteen",
    "Seventeen",
    "Eighteen",
    "Nineteen",
    "Twenty",
)
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", TASKS, re.M))


def test_the_page_of_tasks_counts_its_kinds_of_change() -> None:
    (number,) = re.findall(r"^(\w+) common kinds of change", TASKS, re.M)
    assert len(SECTIONS) == 10 + NUMBERS.index(number)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_task_names_its_files_and_what_stands_in_them(section: str) -> None:
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", SECTIONS[section], re.M)
    assert rows
    for files, does in rows:
        named = [ROOT / name for name in re.findall(r"`([\w/.]+\.py)`", files) if "NAME" not in name]
        text = "".join(path.read_text(encoding="utf-8") for path in named)
        constants = [name for name in re.findall(r"`([A-Z][A-Z_]+)`", does) if name != "NAME"]
        assert not named or [name for name in constants if name not in text] == [], files
