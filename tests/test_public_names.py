import ast
import importlib
import subprocess
import sys
import tomllib

import pytest

import gateway
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Turn
from tests.paths import ROOT


@pytest.mark.parametrize("name", gateway.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(gateway, name) is not None


def test_a_public_name_is_the_one_of_its_module() -> None:
    assert gateway.Turn is Turn
    with pytest.raises(AttributeError, match="Trun"):
        importlib.import_module("gateway").Trun  # noqa: B018 - asking for it is the test


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "gateway" / "__init__.py").read_text())
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        (alias.name, node.module) for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert declared == set(gateway._HOME.items())
    assert set(gateway.__all__) == {*gateway._HOME, "__version__"} and sorted(gateway.__all__) == gateway.__all__


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert gateway.__version__ == project["version"]


def test_the_version_is_told_to_backends() -> None:
    assert WarpOptions().client_version == gateway.__version__


def test_importing_the_package_imports_nothing_else() -> None:
    """Beside the finder of what has moved."""
    code = "import sys, gateway; print([name for name in sys.modules if name.startswith(('gateway.', 'msgspec'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "['gateway.moved']"
