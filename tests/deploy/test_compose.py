"""Tests deploy/compose.yaml: without rights that it does not need, and naming only what exists."""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import valkey.asyncio

from bench.load_test.gateway_process import free_ports
from bench.load_test.store_servers import PROGRAMS
from gateway.server.process.gateway_server import KEEP_ALIVE_S
from gateway.settings import read_settings
from tests.deploy.files import COMPOSE, DASHBOARD, DEPLOY, PAGE, documents
from tests.paths import ROOT

(FILE,) = documents(COMPOSE)
SERVICES: Final[dict[str, Any]] = FILE["services"]
SETTINGS: Final = read_settings(json.loads((DEPLOY / "settings.json").read_bytes()))
NGINX: Final = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
GATEWAYS: Final = ("gateway1", "gateway2")
# The port on which each service listens.
PORTS: Final = {name: SETTINGS.server.port for name in GATEWAYS} | {
    "nginx": int(re.findall(r"listen (\d+);", NGINX)[0]),
    "prometheus": 9090,
    "grafana": 3000,
}


def target(service: str, source: str) -> str:
    """Returns the path at which a service sees one of the configs."""
    (path,) = (entry["target"] for entry in SERVICES[service]["configs"] if entry["source"] == source)
    return str(path)


def config(source: str) -> Any:
    """Returns what a config in YAML says."""
    (content,) = documents(DEPLOY / FILE["configs"][source]["file"])
    return content


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_runs_as_root_or_writes_to_its_image(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["user"].partition(":")[0]) > 0
    assert "healthcheck" in service and "privileged" not in service


def test_only_nginx_and_the_dashboard_can_be_reached_and_from_this_machine_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {name: [f"127.0.0.1:{PORTS[name]}:{PORTS[name]}"] for name in ("nginx", "grafana")}
    assert FILE["networks"]["store"] == {"internal": True}


@pytest.mark.parametrize("name", SERVICES)
def test_everything_that_a_service_names_exists(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("secrets", ())) <= set(FILE["secrets"])
    assert set(service["networks"]) <= set(FILE["networks"])
    assert {entry["source"] for entry in service.get("configs", ())} <= set(FILE["configs"])
    assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(FILE["volumes"])
    # What it waits for starts with it, and there is a network between the two.
    for other in service.get("depends_on", ()):
        assert SERVICES[other].get("profiles", service.get("profiles")) == service.get("profiles")
        assert set(service["networks"]) & set(SERVICES[other]["networks"])
    read = json.dumps([service.get(part) for part in ("entrypoint", "command", "healthcheck", "environment")])
    assert set(re.findall(r"/run/secrets/(\w+)", read)) <= set(service.get("secrets", ()))


def test_the_configs_are_in_the_repository_and_the_secrets_cannot_be() -> None:
    assert [entry["file"] for entry in FILE["configs"].values() if not (DEPLOY / entry["file"]).is_file()] == []
    assert {name: entry["file"] for name, entry in FILE["secrets"].items()} == {
        name: f"secrets/{name}" for name in FILE["secrets"]
    }
    assert set(re.findall(r"> deploy/secrets/(\w+)", PAGE)) == set(FILE["secrets"])
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_an_image_is_built_by_one_service_alone() -> None:
    """Two services that build one name at once fail where the image is new: "already exists"."""
    assert [name for name, service in SERVICES.items() if "build" in service] == ["gateway1"]
    assert SERVICES["gateway2"]["pull_policy"] == "never"
    differing = {"build", "pull_policy"}
    first, second = ({key: SERVICES[name][key] for key in SERVICES[name].keys() - differing} for name in GATEWAYS)
    assert first == second


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "valkey"])
def test_a_service_is_asked_at_its_own_port_whether_it_works(name: str) -> None:
    (url,) = re.findall(r"http://[^'\"]+", json.dumps(SERVICES[name]["healthcheck"]["test"]))
    assert (urlsplit(url).hostname, urlsplit(url).port) == ("127.0.0.1", PORTS[name])


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_gateway_gets_what_its_settings_name(name: str) -> None:
    service, server = SERVICES[name], SETTINGS.server
    exported = dict(re.findall(r'export (\w+)="\$\$\(cat /run/secrets/(\w+)\)"', "\n".join(service["entrypoint"])))
    assert exported == {
        SETTINGS.state.key_env: "state_key",
        SETTINGS.state.password_env: "store_password",
        SETTINGS.inspector.admin_key_env: "admin_key",
    }
    assert server.api_keys_file == "/run/secrets/client_keys" and "client_keys" in service["secrets"]
    assert service["environment"]["DRAGOMAN_SETTINGS"] == target(name, "gateway")
    assert int(service["stop_grace_period"].removesuffix("s")) > server.graceful_shutdown_timeout_s
    assert SETTINGS.state.store is not None and "//valkey:6379/" in SETTINGS.state.store
    assert not SETTINGS.log.file and server.host == "0.0.0.0"


def test_nginx_leads_to_the_gateways() -> None:
    assert re.findall(r"server (\w+):(\d+)", NGINX) == [(name, str(PORTS[name])) for name in GATEWAYS]
    assert f"client_max_body_size {SETTINGS.server.max_body_mb:.0f}m" in NGINX
    assert all(set(SERVICES["nginx"]["networks"]) & set(SERVICES[name]["networks"]) for name in GATEWAYS)


def test_nginx_streams_and_waits_as_long_as_a_gateway() -> None:
    assert "proxy_buffering off;" in NGINX and "proxy_request_buffering off;" in NGINX
    (waits,) = re.findall(r"proxy_read_timeout (\d+)s;", NGINX)
    assert all(int(waits) > backend.timeouts.total for backend in SETTINGS.backends.values())
    # Else nginx would take a connection that the gateway is about to close.
    (keeps,) = re.findall(r"keepalive_timeout (\d+)s;", NGINX)
    assert int(keeps) < KEEP_ALIVE_S


def test_what_writes_files_has_a_place_in_memory() -> None:
    assert [SERVICES[name]["tmpfs"] for name in (*GATEWAYS, "grafana")] == [["/tmp"]] * 3
    assert SERVICES["nginx"]["tmpfs"] == [f"/tmp:uid={SERVICES['nginx']['user'].partition(':')[0]}"]
    places = re.findall(r"^ *(?:pid|\w+_temp_path) (\S+);", NGINX, re.M)
    assert len(places) == 6 and all(place.startswith("/tmp/") for place in places)
    # The program's own place for it.
    assert target("nginx", "nginx") == "/etc/nginx/nginx.conf"


def test_prometheus_asks_every_gateway_with_the_admin_key() -> None:
    prometheus = config("prometheus")
    (job,) = prometheus["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{name}:{PORTS[name]}" for name in GATEWAYS]}]
    assert job["authorization"]["credentials_file"] == "/run/secrets/admin_key"
    assert f"--config.file={target('prometheus', 'prometheus')}" in SERVICES["prometheus"]["command"]
    rules = Path(target("prometheus", "prometheus")).parent / prometheus["rule_files"][0]
    assert str(rules) == target("prometheus", "alerts")
    assert all(set(SERVICES["prometheus"]["networks"]) & set(SERVICES[name]["networks"]) for name in GATEWAYS)


def test_grafana_has_the_dashboard_and_its_source() -> None:
    (source,) = config("grafana_sources")["datasources"]
    (provider,) = config("grafana_dashboards")["providers"]
    assert source["url"] == f"http://prometheus:{PORTS['prometheus']}"
    assert source["jsonData"]["timeInterval"] == config("prometheus")["global"]["scrape_interval"]
    # The dashboard takes any source of this type.
    (variable,) = json.loads(DASHBOARD.read_text(encoding="utf-8"))["templating"]["list"]
    assert variable["query"] == source["type"]
    folders = ("/etc/grafana/provisioning/datasources", "/etc/grafana/provisioning/dashboards")
    assert tuple(str(Path(target("grafana", name)).parent) for name in ("grafana_sources", "grafana_dashboards")) == (
        folders
    )
    assert FILE["configs"]["dashboard"]["file"] == str(DASHBOARD.relative_to(DEPLOY))
    assert provider["options"]["path"] == str(Path(target("grafana", "dashboard")).parent)
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == target("grafana", "dashboard")


async def test_the_command_of_the_store_starts_a_server_with_this_password(tmp_path: Path) -> None:
    """As it stands in the file, but for the place of the secret, the port, and the program's own path."""
    (tmp_path / "store_password").write_text("a password")
    (port,) = free_ports(1)
    shell, flags, text = SERVICES["valkey"]["command"]
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
