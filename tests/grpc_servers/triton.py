"""Runs Triton with the models of `triton_models`, without the launcher of its wheel."""

import shutil
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.grpc_servers.installed import FOLDER
from tests.grpc_servers.server_process import accepting, free_port, server_process
from tests.paths import ROOT

_MODELS: Final = ROOT / "tests" / "grpc_servers" / "triton_models"
_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_PACKAGES: Final = FOLDER / "triton" / "lib" / f"python{_VERSION}" / "site-packages"
_STUB: Final = "triton_python_backend_stub"


def unfit() -> str:
    """Return why Triton cannot run its models with this Python, empty if it can."""
    if not (_PACKAGES / "pytriton" / "tritonserver" / "python_backend_stubs" / _VERSION).is_dir():
        return f"NOT RUN: Triton's wheel has no models for Python {_VERSION}"
    return ""


@asynccontextmanager
async def triton() -> AsyncIterator[tuple[int, Path]]:
    """Run Triton until the block ends. Return its port for gRPC and the folder of its models."""
    server = _PACKAGES / "pytriton" / "tritonserver"
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(shutil.copytree(_MODELS, Path(folder) / "models"))
        backends = Path(folder) / "backends"
        shutil.copytree(server / "backends" / "python", backends / "python")
        shutil.copy(server / "python_backend_stubs" / _VERSION / _STUB, backends / "python")
        options = {
            "model-repository": models,
            "backend-directory": backends,
            "grpc-address": "127.0.0.1",
            "grpc-port": port,
            "allow-http": "false",
            "allow-metrics": "false",
        }
        libraries = (_PACKAGES / "nvidia_pytriton.libs", sysconfig.get_config_var("LIBDIR"))
        environ = {
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            # A model runs in an interpreter that Triton embeds. It ignores PYTHONPATH; its own folder comes first.
            "PYTHONHOME": sys.base_prefix,
        }
        command = [str(server / "bin" / "tritonserver"), *(f"--{name}={value}" for name, value in options.items())]
        async with server_process(command, environ, cwd=_PACKAGES) as process:
            await accepting(process, port)
            yield port, models
