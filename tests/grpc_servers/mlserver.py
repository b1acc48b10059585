"""Runs MLServer with the models of `mlserver_models`."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.grpc_servers.installed import FOLDER
from tests.grpc_servers.server_process import accepting, free_port, server_process
from tests.paths import ROOT

_MODELS: Final = ROOT / "tests" / "grpc_servers" / "mlserver_models"


@asynccontextmanager
async def mlserver() -> AsyncIterator[int]:
    """Run MLServer until the block ends. Return its port for gRPC."""
    port = free_port()
    settings = {
        "host": "127.0.0.1",
        "grpc_port": port,
        "http_port": free_port(),
        "metrics_port": free_port(),
        "parallel_workers": 0,
    }
    with tempfile.TemporaryDirectory() as folder:
        models = Path(shutil.copytree(_MODELS, Path(folder) / "models"))
        (models / "settings.json").write_text(json.dumps(settings))
        environ = {"PYTHONPATH": str(models / "words"), "HOME": folder}
        command = [str(FOLDER / "mlserver" / "bin" / "mlserver"), "start", str(models)]
        async with server_process(command, environ, cwd=Path(folder)) as process:
            await accepting(process, port)
            yield port
