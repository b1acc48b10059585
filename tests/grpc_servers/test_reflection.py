"""The schema that a server of others describes itself."""

from pathlib import Path

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import gateway_command, running_gateway
from tests.adapters.proto.backend.mappings import TALK
from tests.adapters.proto.backend.services import SET
from tests.grpc_servers.cases import ANSWERS, METHODS, SAID
from tests.grpc_servers.installed import needs
from tests.grpc_servers.mlserver import mlserver
from tests.grpc_servers.server_process import scripted_server
from tests.grpc_servers.wires import PROGRAMS

pytestmark = [pytest.mark.grpc, needs()]


async def fetched(folder: Path, port: int) -> tuple[int, str]:
    """The exit status of `dragoman schema fetch`, and what it says."""
    arguments = ("schema", "fetch", f"http://127.0.0.1:{port}", "-o", "fetched.pb")
    async with gateway_command(folder, {}, *arguments) as command:
        return await command.ended()


@needs("grpclib")
@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_a_fetched_schema_serves(version: str, tmp_path: Path) -> None:
    command = PROGRAMS["grpclib"].command
    async with scripted_server(command, ANSWERS, str(SET), version, *METHODS) as server:
        port = server.ports["port"]
        assert await fetched(tmp_path, port) == (0, "")
        entry = {**TALK, "adapter": "proto", "schema": {"set": str(tmp_path / "fetched.pb")}, "carrier": "grpc"}
        backends: dict[str, Json] = {"b": {**entry, "base_url": f"http://127.0.0.1:{port}/whole"}}
        async with running_gateway({"backends": backends, "models": {"m": {"backend": "b"}}}) as gateway:
            response = await gateway.chat()
    assert response.json()["choices"][0]["message"]["content"] == SAID


@needs("mlserver")
async def test_a_server_without_reflection_is_told(tmp_path: Path) -> None:
    async with mlserver() as port:
        status, told = await fetched(tmp_path, port)
    assert status != 0 and "no server reflection" in told
    assert not (tmp_path / "fetched.pb").exists()
