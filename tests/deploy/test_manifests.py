"""Tests the manifests of deploy/kubernetes: what they name exists, and the restricted security standard holds."""

import re
import tomllib
from typing import Any, Final

import pytest

from gateway.settings import parse_settings
from tests.deploy.files import CONTAINERFILE, MANIFESTS, MONITOR, PAGE, documents
from tests.paths import ROOT

KINDS: Final[dict[str, Any]] = {one["kind"]: one for one in documents(MANIFESTS)}
(SERVICE_MONITOR,) = documents(MONITOR)
DEPLOYMENT: Final = KINDS["Deployment"]["spec"]
POD: Final = DEPLOYMENT["template"]["spec"]
LABELS: Final = DEPLOYMENT["template"]["metadata"]["labels"]
(CONTAINER,) = POD["containers"]
SETTINGS: Final = parse_settings(KINDS["ConfigMap"]["data"]["settings.json"])
# The secrets that the page has its readers create: their names, and the keys in each.
SECRETS: Final = {
    name: set(re.findall(r"--from-literal=(\w[\w-]*)", rest))
    for name, rest in re.findall(r"kubectl create secret generic (\S+)((?:.*\\\n)*.*)", PAGE)
}


def test_the_settings_can_be_read_and_leave_time_to_stop() -> None:
    pause = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert POD["terminationGracePeriodSeconds"] > pause + SETTINGS.server.graceful_shutdown_timeout_s
    assert SETTINGS.server.host == "0.0.0.0" and SETTINGS.log.file is None


def test_the_image_is_that_of_this_version_and_finds_its_settings() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert CONTAINER["image"] == f"dragoman:{version}"
    (mount,) = (one for one in CONTAINER["volumeMounts"] if one["name"] == "settings")
    (file,) = KINDS["ConfigMap"]["data"]
    assert f"DRAGOMAN_SETTINGS={mount['mountPath']}/{file}" in CONTAINERFILE.read_text(encoding="utf-8")


def test_the_pod_uses_what_there_is() -> None:
    assert POD["serviceAccountName"] == KINDS["ServiceAccount"]["metadata"]["name"]
    assert {one["name"] for one in CONTAINER["volumeMounts"]} == {one["name"] for one in POD["volumes"]}
    (settings,) = (one["configMap"] for one in POD["volumes"] if "configMap" in one)
    assert settings["name"] == KINDS["ConfigMap"]["metadata"]["name"]
    # Temporary files and the runtime directory of the workers; the root is read-only.
    assert {one["mountPath"] for one in CONTAINER["volumeMounts"]} >= {"/tmp"}
    (credentials,) = CONTAINER["envFrom"]
    backends = {name for backend in SETTINGS.backends.values() if (name := backend.api_key_env)}
    keys = {SETTINGS.server.api_keys_env, SETTINGS.inspector.admin_key_env, SETTINGS.state.key_env}
    assert SECRETS[credentials["secretRef"]["name"]] == keys | backends


def test_no_pod_starts_without_the_key_that_all_of_them_have() -> None:
    # A secret without it would give each pod a key of its own, in a folder that ends with the pod.
    (variable,) = CONTAINER["env"]
    (credentials,) = CONTAINER["envFrom"]
    assert variable["name"] == SETTINGS.state.key_env
    assert variable["valueFrom"]["secretKeyRef"] == {**credentials["secretRef"], "key": SETTINGS.state.key_env}
    assert "DRAGOMAN_STATE_KEY=$(openssl rand -hex 32)" in PAGE.replace('"', "")


def test_every_probe_and_every_rule_of_the_network_names_the_port() -> None:
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == SETTINGS.server.port
    probes = {name: CONTAINER[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/readyz",
        "readinessProbe": "/readyz",
        "livenessProbe": "/healthz",
    }
    (served,) = KINDS["Service"]["spec"]["ports"]
    (admitted,) = KINDS["NetworkPolicy"]["spec"]["ingress"]
    named = [probe["port"] for probe in probes.values()] + [served["targetPort"], admitted["ports"][0]["port"]]
    assert set(named) == {port["name"]}


@pytest.mark.parametrize(
    "selector",
    [
        DEPLOYMENT["selector"]["matchLabels"],
        KINDS["Service"]["spec"]["selector"],
        KINDS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        KINDS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        *(one["labelSelector"]["matchLabels"] for one in POD["topologySpreadConstraints"]),
    ],
)
def test_a_selector_finds_the_pods(selector: dict[str, str]) -> None:
    assert selector and selector.items() <= LABELS.items()


def test_a_disruption_leaves_a_pod() -> None:
    assert DEPLOYMENT["replicas"] > KINDS["PodDisruptionBudget"]["spec"]["minAvailable"] > 0


def test_the_monitor_finds_the_service_and_its_key() -> None:
    spec = SERVICE_MONITOR["spec"]
    assert spec["selector"]["matchLabels"].items() <= KINDS["Service"]["metadata"]["labels"].items()
    (endpoint,) = spec["endpoints"]
    (served,) = KINDS["Service"]["spec"]["ports"]
    assert (endpoint["port"], endpoint["path"]) == (served["name"], "/metrics")
    credentials = endpoint["authorization"]["credentials"]
    assert credentials["key"] == SETTINGS.inspector.admin_key_env
    assert credentials["key"] in SECRETS[credentials["name"]]
    # The network policy lets Prometheus in.
    (admitted,) = KINDS["NetworkPolicy"]["spec"]["ingress"]
    spaces = [one["namespaceSelector"]["matchLabels"] for one in admitted["from"] if "namespaceSelector" in one]
    assert spaces == [{"kubernetes.io/metadata.name": "monitoring"}] and "namespace `monitoring`" in PAGE


def test_the_pod_keeps_the_restricted_security_standard() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True and POD["securityContext"]["runAsUser"] > 0
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["automountServiceAccountToken"] is False
    assert POD.keys() & {"hostNetwork", "hostPID", "hostIPC"} == set()
    assert {kind for volume in POD["volumes"] for kind in volume.keys() - {"name"}} == {"configMap", "emptyDir"}
