"""Every old public path imports what has moved, says so, and is named by the change log."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from gateway.moved import MODULES, NAMES
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from tests.paths import ROOT

# What settings.json and packages of others were told to write.
CLASSES = {
    "adapters.anthropic_messages": "AnthropicMessagesAdapter",
    "adapters.gemini": "GeminiAdapter",
    "adapters.openai_chat": "OpenAIChatAdapter",
    "adapters.openai_responses": "OpenAIResponsesAdapter",
    "adapters.proto": "ProtoAdapter",
    "adapters.text": "TextAdapter",
    "adapters.warp": "WarpAdapter",
}


@pytest.mark.parametrize("old", [old for old in MODULES if old not in CLASSES])
def test_an_old_path_gives_the_module_itself_with_a_warning(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=rf"{old} is {MODULES[old]} now"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MODULES[old])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gateway.dialects.openai_chat.dialect", "adapters.openai_chat.client.dialect"),
        ("adapters.warp.decode.decoder", "adapters.warp.backend.decode.decoder"),
        ("adapters.text.presets", "adapters.text.backend.presets"),
        ("gateway.dialects.gemini.parts", "adapters.gemini.parts"),
    ],
)
def test_a_module_below_an_old_path_is_not_loaded_again(old: str, new: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning):
        assert importlib.import_module(old) is importlib.import_module(new)
    spec = importlib.import_module(new).__spec__
    assert spec is not None and spec.name == new and spec.origin is not None


@pytest.mark.parametrize("package", CLASSES)
def test_an_import_string_of_settings_gives_the_adapter_with_a_warning(package: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{package}:{CLASSES[package]} is {package}.backend"):
        moved = getattr(importlib.import_module(package), CLASSES[package])
    assert moved is getattr(importlib.import_module(MODULES[package]), CLASSES[package])
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        importlib.import_module(package).Nothing  # noqa: B018 - asking for it is the test


@pytest.mark.parametrize("old", NAMES)
def test_an_old_name_gives_the_value_itself_with_a_warning(old: str) -> None:
    module, name = old.split(":")
    with pytest.warns(DeprecationWarning, match=rf"{old} is {NAMES[old]} now"):
        value = getattr(importlib.import_module(module), name)
    assert value is pkgutil.resolve_name(NAMES[old])
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        importlib.import_module(module).Nothing  # noqa: B018 - asking for it is the test


def test_settings_with_an_old_import_string_load() -> None:
    entry = BackendSettings(adapter="adapters.openai_chat:OpenAIChatAdapter", base_url="http://a.example")
    with pytest.warns(DeprecationWarning):
        assert type(load_adapter("old", entry, 1000)).__name__ == "OpenAIChatAdapter"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["adapters.gemini.nothing", "gateway.dialects.nothing", "gateway.dialects.gemini.no"])
def test_what_never_was_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
        importlib.import_module(name)


def test_nothing_of_the_project_has_an_old_path() -> None:
    """A process that loads every adapter and dialect sees no warning."""
    code = (
        "import warnings; warnings.simplefilter('error', DeprecationWarning)\n"
        "from gateway.registry import ADAPTERS, load_dialects\nimport pkgutil\n"
        "load_dialects(); [pkgutil.resolve_name(value) for value in ADAPTERS.values()]"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_change_log_lists_every_old_path() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [old for old in (*MODULES, *NAMES) if f"`{old}" not in text] == []
