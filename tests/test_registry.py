import subprocess
import sys
from pathlib import Path

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.registry import ADAPTERS, load_adapter, load_adapters
from gateway.settings import BackendSettings, read_settings

LIMIT = 1 << 20


def entry(adapter: str) -> BackendSettings:
    return BackendSettings(adapter, "http://host")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of somebody else whose metadata names three adapters."""
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
    short, long = (load_adapter("b", entry(adapter), LIMIT) for adapter in (name, ADAPTERS[name]))
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


@pytest.mark.parametrize("name", ["json:dumps", "adapters.text:Missing"])
def test_what_is_no_adapter_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=r"backends\.b\.adapter"):
        load_adapter("b", entry(name), LIMIT)


def test_every_backend_entry_gets_its_adapter() -> None:
    backends: dict[str, Json] = {name: {"adapter": name, "base_url": "http://host"} for name in ADAPTERS}
    assert list(load_adapters(read_settings({"backends": backends}))) == list(ADAPTERS)


def test_explain_and_lint_import_no_server() -> None:
    program = (
        "import sys, gateway.diagnostics.explain, gateway.diagnostics.lint, gateway.registry\n"
        "print([name for name in sys.modules if name.startswith('gateway.server')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
