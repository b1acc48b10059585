"""Tests deploy/compose.yaml: without rights that it does not need, and naming only what exists."""

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import valkey.asyncio

from bench.load_test.gateway_process import free_ports
from bench.load_test.store_servers import PROGRAMS
from gateway.settings import read_settings
from tests.deploy.files import DEPLOY

TOOLS: Final = os.environ.get("DEPLOY", "")
pytestmark = [
    pytest.mark.deploy,
    pytest.mark.skipif(not TOOLS, reason="make deploy installs what parses YAML"),
]

ENVIRON: Final = {**os.environ, "PYTHONPATH": TOOLS}
TO_JSON: Final = "import json, sys, ruamel.yaml; json.dump(ruamel.yaml.YAML(typ='safe').load(sys.stdin), sys.stdout)"
GATEWAYS: Final = ("gateway1", "gateway2")


@pytest.fixture(scope="module")
def compose() -> Any:
    """The file with its anchors resolved."""
    text = (DEPLOY / "compose.yaml").read_bytes()
    run = subprocess.run([sys.executable, "-c", TO_JSON], input=text, env=ENVIRON, capture_output=True, check=True)
    return json.loads(run.stdout)


def test_no_service_runs_as_root_or_writes_to_its_image(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert int(service["user"].partition(":")[0]) > 0, name
        assert "healthcheck" in service and "privileged" not in service, name
    assert [name for name, service in compose["services"].items() if "ports" in service] == ["nginx"]
    assert all(port.startswith("127.0.0.1:") for port in compose["services"]["nginx"]["ports"])
    assert compose["networks"]["store"] == {"internal": True}


def test_every_secret_network_and_file_that_it_names_exists(compose: Any) -> None:
    for service in compose["services"].values():
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        assert set(service["networks"]) <= set(compose["networks"])
        assert {entry["source"] for entry in service.get("configs", ())} <= set(compose["configs"])
        assert set(service.get("depends_on", ())) <= set(compose["services"])
    assert all((DEPLOY / entry["file"]).is_file() for entry in compose["configs"].values())
    # Secrets are the operator's: none lies in the repository.
    assert not (DEPLOY / "secrets").exists()


def test_the_settings_can_be_read_and_name_what_the_services_have(compose: Any) -> None:
    settings = read_settings(json.loads((DEPLOY / "settings.json").read_bytes()))
    for name in GATEWAYS:
        service = compose["services"][name]
        started = "\n".join(service["entrypoint"])
        exported = dict(re.findall(r'export (\w+)="\$\$\(cat /run/secrets/(\w+)\)"', started))
        assert exported == {settings.state.key_env: "state_key", settings.state.password_env: "store_password"}
        assert settings.server.api_keys_file == "/run/secrets/client_keys" and "client_keys" in service["secrets"]
        assert service["environment"]["DRAGOMAN_SETTINGS"] == service["configs"][0]["target"]
        assert f":{settings.server.port}/readyz" in service["healthcheck"]["test"][-1]
        assert int(service["stop_grace_period"].removesuffix("s")) > settings.server.graceful_shutdown_timeout_s
    assert settings.state.store is not None and "//valkey:" in settings.state.store
    assert not settings.log.file and settings.server.host == "0.0.0.0"
    nginx = (DEPLOY / "nginx.conf").read_text()
    assert re.findall(r"server (\w+):(\d+)", nginx) == [(name, str(settings.server.port)) for name in GATEWAYS]
    assert f"client_max_body_size {settings.server.max_body_mb:.0f}m" in nginx


def test_the_commands_read_only_files_of_secrets_that_they_have(compose: Any) -> None:
    for name, service in compose["services"].items():
        text = json.dumps([service.get(part) for part in ("entrypoint", "command", "healthcheck")])
        assert set(re.findall(r"/run/secrets/(\w+)", text)) <= set(service.get("secrets", ())), name


async def test_the_command_of_the_store_starts_a_server_with_this_password(compose: Any, tmp_path: Path) -> None:
    """As it stands in the file, but for the place of the secret, the port, and the program's own path."""
    (tmp_path / "store_password").write_text("a password")
    (port,) = free_ports(1)
    shell, flags, text = compose["services"]["valkey"]["command"]
    text = text.replace("/run/secrets", str(tmp_path)).replace("$$", "$")
    text = text.replace("valkey-server -", f"exec {PROGRAMS['valkey']} - --port {port} --bind 127.0.0.1")
    process = await asyncio.create_subprocess_exec(
        shell, flags, text, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            while b"Ready to accept" not in (line := await process.stdout.readline()):
                assert line
        async with valkey.asyncio.Valkey(port=port, password="a password") as client:
            found = await client.config_get("*")
        assert (found["maxmemory-policy"], found["save"], found["appendonly"]) == ("noeviction", "", "no")
        listed = await asyncio.create_subprocess_exec("ps", "-eo", "args", stdout=asyncio.subprocess.PIPE)
        assert b"a password" not in (await listed.communicate())[0]
    finally:
        os.killpg(process.pid, 9)
        await process.communicate()
