import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.routing import Route

from gateway.core.conversation import EMPTY, Json
from gateway.core.errors import SettingsError
from gateway.registry import (
    ADAPTERS,
    DEFAULT_DIALECT,
    DIALECTS,
    Named,
    load_adapter,
    load_adapters,
    load_dialect,
    load_dialects,
    named_adapters,
    named_dialects,
)
from gateway.server.api.app import create_app
from gateway.server.api.own_routes import OWN_ROUTES
from gateway.settings import BackendSettings, Settings, read_settings
from tests.adapters.proto.backend.mappings import REQUIRED_OPTIONS

LIMIT = 1 << 20


def entry(adapter: str, options: Mapping[str, Json] = EMPTY) -> BackendSettings:
    return BackendSettings(adapter, "http://host", options=options)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs a third-party package whose metadata names three adapters."""
    metadata = tmp_path / "feathered-1.0.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: feathered\nVersion: 1.0\n")
    metadata.joinpath("entry_points.txt").write_text(
        "[dragoman.adapters]\n"
        "parrot = tests.examples.parrot:ParrotAdapter\n"
        "text = tests.examples.parrot:ParrotAdapter\n"
        "dodo = tests.examples.dodo:DodoAdapter\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_built_in_adapter_has_a_short_name_beside_its_import_string(name: str) -> None:
    short, long = (
        load_adapter("b", entry(adapter, REQUIRED_OPTIONS.get(name, {})), LIMIT) for adapter in (name, ADAPTERS[name])
    )
    assert type(short) is type(long) and type(short).__name__.endswith("Adapter")


@pytest.mark.usefixtures("installed")
def test_an_installed_package_names_its_adapter() -> None:
    assert type(load_adapter("b", entry("parrot"), LIMIT)).__name__ == "ParrotAdapter"


@pytest.mark.usefixtures("installed")
def test_a_built_in_name_wins_over_an_installed_one() -> None:
    assert type(load_adapter("b", entry("text"), LIMIT)).__name__ == "TextAdapter"


@pytest.mark.usefixtures("installed")
def test_an_installed_adapter_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(SettingsError, match=r"backends\.b\.adapter: 'dodo' cannot be imported"):
        load_adapter("b", entry("dodo"), LIMIT)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("wrong", "right"), [("opnai_chat", "openai_chat"), ("parot", "parrot")])
def test_an_unknown_name_is_told_with_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(SettingsError, match=f"there is no adapter {wrong!r}.*did you mean {right!r}"):
        load_adapter("b", entry(wrong), LIMIT)


@pytest.mark.usefixtures("installed")
def test_the_names_of_adapters_are_listed_and_none_is_imported() -> None:
    named = {(one.name, one.used): one for one in named_adapters()}
    assert [one.name for one in named_adapters()][: len(ADAPTERS)] == list(ADAPTERS)
    assert named["parrot", True] == Named("parrot", "tests.examples.parrot:ParrotAdapter", "feathered 1.0", True)
    assert named["text", True].package == ""
    assert named["text", False].package == "feathered 1.0"
    assert named["dodo", True].value == "tests.examples.dodo:DodoAdapter"  # which does not exist


@pytest.mark.parametrize("name", ["json:dumps", "adapters.text.backend:Missing"])
def test_what_is_no_adapter_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"backends\.b\.adapter"):
        load_adapter("b", entry(name), LIMIT)


def test_every_backend_entry_gets_its_adapter() -> None:
    backends: dict[str, Json] = {
        name: {**REQUIRED_OPTIONS.get(name, {}), "adapter": name, "base_url": "http://host"} for name in ADAPTERS
    }
    assert list(load_adapters(read_settings({"backends": backends}))) == list(ADAPTERS)


def dialect_package(folder: Path, entry_points: str, module: str = "") -> None:
    """Creates a third-party package whose metadata names dialects."""
    metadata = folder / "chatty-1.0.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: chatty\nVersion: 1.0\n")
    metadata.joinpath("entry_points.txt").write_text(f"[dragoman.dialects]\n{entry_points}\n")
    folder.joinpath("chatty_dialect.py").write_text(module)


LINES = "tests.examples.json_lines.json_lines_dialect:JsonLinesDialect"
TAKES_A_PATH_OF_OURS = """
from gateway.dialect import Route
from adapters.openai_chat.client.dialect import OpenAIChatDialect

class Chatty(OpenAIChatDialect):
    name = "chatty"
    routes = (Route("GET", "/metrics", "models"),)
"""


def test_the_built_in_dialects_are_served_and_the_default_one_answers_first() -> None:
    table = load_dialects()
    assert {dialect.name for dialect in table.dialects} >= set(DIALECTS)
    assert table.default.name == load_dialect().name == DEFAULT_DIALECT


def test_an_installed_package_adds_its_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect_package(tmp_path, f"json_lines = {LINES}\nopenai_chat = nowhere:Never")
    monkeypatch.syspath_prepend(tmp_path)
    assert [dialect.name for dialect in load_dialects().dialects] == [*DIALECTS, "json_lines"]
    assert load_dialects().find("POST", "/lines/chat").dialect.name == "json_lines"
    assert [(one.name, one.used) for one in named_dialects() if one.package] == [
        ("json_lines", True),
        ("openai_chat", False),
    ]


@pytest.mark.parametrize(
    ("entry_point", "module", "said"),
    [
        (
            "chatty = nowhere:Never",
            "",
            "the dialect 'chatty' of the package chatty: 'nowhere:Never' cannot be imported",
        ),
        ("chatty = chatty_dialect:Chatty", "def", "'chatty_dialect:Chatty' cannot be imported"),
        ("chatty = chatty_dialect:Chatty", "absent", "'chatty_dialect:Chatty' cannot be imported: name 'absent'"),
        ("chatty = chatty_dialect:Chatty", "", "there is no 'Chatty' in 'chatty_dialect'"),
        ("chatty = json:dumps", "", "'json:dumps' is not a dialect of this name"),
        (f"chatty = {LINES}", "", "is not a dialect of this name"),
        (
            "chatty = chatty_dialect:Chatty",
            TAKES_A_PATH_OF_OURS.replace("/metrics", "/v1/models"),
            "'openai_chat' and 'chatty' both serve GET /v1/models",
        ),
        (
            "chatty = chatty_dialect:Chatty",
            TAKES_A_PATH_OF_OURS,
            "'chatty' serves GET /metrics, which is a path of the",
        ),
    ],
)
def test_a_broken_dialect_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_point: str, module: str, said: str
) -> None:
    dialect_package(tmp_path, entry_point, module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "chatty_dialect", raising=False)
    with pytest.raises(SettingsError, match=re.escape(said)):
        create_app(Settings())


def test_every_path_of_the_gateway_is_refused_to_dialects() -> None:
    """Its routes are loaded later, so the names that a start compares are a list of their own."""
    modules = {"gateway.server.api.routes", "fastapi.applications"}
    assert {
        (method, route.path)
        for route in create_app(Settings()).load_routes().routes
        if isinstance(route, Route) and route.endpoint.__module__ in modules
        for method in route.methods or ()
    } == OWN_ROUTES


def test_a_name_that_two_packages_give_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, value in (("one", LINES), ("two", "elsewhere:Lines")):
        tmp_path.joinpath(folder).mkdir()
        dialect_package(tmp_path / folder, f"json_lines = {value}")
        tmp_path.joinpath(folder, "chatty-1.0.dist-info").rename(tmp_path / folder / f"{folder}-1.0.dist-info")
        metadata = f"Metadata-Version: 2.1\nName: {folder}\nVersion: 1.0\n"
        tmp_path.joinpath(folder, f"{folder}-1.0.dist-info", "METADATA").write_text(metadata)
        monkeypatch.syspath_prepend(tmp_path / folder)
    with pytest.raises(SettingsError, match=r"two installed packages name 'json_lines' in dragoman\.dialects"):
        load_dialects()


def test_an_unknown_dialect_is_told_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"there is no dialect 'openai'.*did you mean 'openai_chat'"):
        load_dialect("openai")


def test_explain_and_lint_import_no_server() -> None:
    program = (
        "import sys, gateway.diagnostics.explain_request, gateway.diagnostics.lint, gateway.registry\n"
        "print([name for name in sys.modules if name.startswith('gateway.server')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
