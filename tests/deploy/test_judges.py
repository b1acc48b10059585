"""Programs that know the formats of the files in deploy/ accept them, and the image is built and runs as its file says.

Without the programs of the system (promtool, prometheus, unshare as root), the tests that need them are skipped.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import pytest

from bench.load_test.gateway_process import free_ports
from gateway.core.conversation import Json
from gateway.testing.gateway import hello, running_gateway
from tests.deploy.files import ALERTS, CONTAINERFILE, DEPLOY, MANIFESTS, UNIT, WORKFLOWS, dashboard_queries
from tests.paths import ROOT

JUDGES: Final = os.environ.get("DEPLOY", "")
SETTINGS: Final[dict[str, Json]] = {
    "backends": {"b": {"adapter": "openai_chat", "base_url": "demo:chat"}},
    "models": {"m": {"backend": "b"}},
}
ADMIN_KEY: Final = "an-admin-key"
# A program of the system starts while others use the machine.
STARTS_S: Final = 60
# Prometheus reads the metrics once a second, and a rate needs two values.
SCRAPED_S: Final = 30
# The interpreter of the system: the one of these tests may stand in a folder that other users cannot read.
PYTHON: Final = shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable
USER: Final = 65532
IMAGE: Final = Path("/opt/dragoman")

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.skipif(not JUDGES, reason="make deploy installs what judges these files"),
]


def judge(*command: str) -> None:
    environ = {**os.environ, "PYTHONPATH": JUDGES}
    run = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, timeout=120, env=environ)
    assert run.returncode == 0, run.stdout + run.stderr


def promtool(*arguments: str) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, cwd=ALERTS.parent)
    assert run.returncode == 0, run.stdout + run.stderr


def test_kubernetes_accepts_the_manifests() -> None:
    judge("kubernetes_validate", "--strict", str(MANIFESTS))


def test_compose_accepts_its_file() -> None:
    judge("check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml"))


def test_github_accepts_the_workflows() -> None:
    judge("check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS))


def test_the_workflows_grant_nothing_that_they_do_not_need() -> None:
    program = str(Path(JUDGES, "bin", "zizmor"))
    command = [program, "--offline", "--no-config", "--strict-collection", "--persona=auditor", *map(str, WORKFLOWS)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_right_that_the_unit_does_not_need() -> None:
    """The scale of the judge goes from 0 to 10, times ten; what is left is a network, and memory for a JIT."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(UNIT)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def test_prometheus_accepts_its_files_and_the_alerts_fire() -> None:
    promtool("check", "rules", "alerts.yaml")
    promtool("test", "rules", "alerts_test.yaml")
    promtool("check", "config", "--syntax-only", "prometheus.yaml", "compose.yaml")


def prometheus_config(folder: Path, target: str) -> Path:
    """Writes the shipped configuration as it stands, but for the gateways' addresses, the place of files, and that it
    asks once a second."""
    text = (DEPLOY / "prometheus" / "compose.yaml").read_text(encoding="utf-8")
    (folder / "admin_key").write_text(ADMIN_KEY)
    for old, new in (
        ('"gateway1:8000", "gateway2:8000"', f'"{target}"'),
        ("/run/secrets", str(folder)),
        ("alerts.yaml", str(ALERTS)),
        ("15s", "1s"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "prometheus.yaml").write_text(text)
    return folder / "prometheus.yaml"


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus that reads the metrics of a gateway each second, with the alerts."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={prometheus_config(folder, target)}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            await ready(client, "/-/ready")
            yield client
    finally:
        process.terminate()
        await process.wait()


async def ready(client: httpx.AsyncClient, path: str) -> None:
    """Waits until a server answers with 200: before its port is open it answers nothing, and then it may say 503."""
    async with asyncio.timeout(STARTS_S):
        while True:
            with suppress(httpx.TransportError):
                if (await client.get(path)).status_code == 200:
                    return
            await asyncio.sleep(0.1)


async def answered(client: httpx.AsyncClient, query: str) -> Sequence[object]:
    reply = (await client.get("/api/v1/query", params={"query": query})).json()
    assert reply["status"] == "success", (query, reply)
    result: list[object] = reply["data"]["result"]
    return result


async def seen(client: httpx.AsyncClient, query: str) -> Sequence[object]:
    """Waits for the first result of a query."""
    async with asyncio.timeout(SCRAPED_S):
        while True:
            if found := await answered(client, query):
                return found
            await asyncio.sleep(0.2)


async def test_a_real_prometheus_answers_every_query_of_the_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", ADMIN_KEY)
    async with running_gateway(SETTINGS) as gateway:
        await gateway.chat()
        async with prometheus(tmp_path, f"{gateway.host}:{gateway.port}") as client:
            assert await seen(client, 'up{job="dragoman"} == 1')
            await seen(client, "rate(gateway_requests_total[10s])")
            for query in dashboard_queries():
                await answered(client, query.replace("$__rate_interval", "10s"))
            assert await seen(client, "sum by (status) (gateway_requests_total)")
            rules = (await client.get("/api/v1/rules")).json()["data"]["groups"][0]["rules"]
            assert len(rules) > 5
            assert {rule["health"] for rule in rules} <= {"ok", "unknown"}


def build_steps() -> Iterator[str]:
    """Yields the commands of the image's first stage."""
    stage = CONTAINERFILE.read_text(encoding="utf-8").split("\nFROM ")[1]
    for instruction, rest in re.findall(r"^(COPY|RUN) ((?:.*\\\n)*.*)$", stage, re.M):
        if instruction == "RUN":
            yield rest.replace("\\\n", " ")
            continue
        *sources, target = rest.replace("\\\n", " ").split()
        # Of a folder, its content is copied.
        copied = [f"{ROOT / source}{'/.' if (ROOT / source).is_dir() else ''}" for source in sources]
        yield f"mkdir -p {target} && cp -r {' '.join(copied)} {target}"


def isolated(folder: Path, *lines: str) -> list[str]:
    """Returns a command that runs the lines in a view of the file system in which /opt/dragoman is the folder's own."""
    return ["unshare", "--mount", "sh", "-ec", "\n".join((f"mount --bind {folder / 'opt'} {IMAGE}", *lines))]


@contextmanager
def image() -> Iterator[Path]:
    """Runs the steps of the image, and yields the folder with the result in `opt`."""
    if os.getuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("a view of the file system of one's own needs root, unshare and setpriv")
    # Not in the folder of the tests, which only their own user may enter.
    with tempfile.TemporaryDirectory(prefix="dragoman-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("opt", "build", "bin"):
            (folder / part).mkdir()
        (folder / "bin" / "python").symlink_to(PYTHON)
        environ = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        IMAGE.mkdir(parents=True, exist_ok=True)
        for step in build_steps():
            command = isolated(folder, f"cd {folder / 'build'}", step)
            run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environ)
            assert run.returncode == 0, (step, run.stdout, run.stderr)
        yield folder


def read_status(pid: int) -> str:
    """Returns what the kernel says of a process."""
    return Path(f"/proc/{pid}/status").read_text()


async def test_the_image_makes_a_gateway_that_runs_without_rights_on_a_root_that_is_read_only() -> None:
    (port,) = free_ports(1)
    settings = json.dumps({**SETTINGS, "server": {"port": port, "api_keys_env": None}, "log": {"file": None}})
    with image() as folder:
        process = await asyncio.create_subprocess_exec(
            *isolated(
                folder,
                "mount -t tmpfs tmpfs /mnt",
                f"printf %s '{settings}' > /mnt/settings.json",
                "chmod 1777 /mnt",
                "mount -o remount,bind,ro /",
                f"mount -o remount,bind,ro {IMAGE}",
                # What a store and traces need.
                f"{IMAGE}/bin/python -c 'import cryptography, opentelemetry.sdk, valkey'",
                f"exec env -i PATH={IMAGE}/bin TMPDIR=/mnt DRAGOMAN_SETTINGS=/mnt/settings.json"
                f" {shutil.which('setpriv')} --reuid {USER} --regid {USER} --clear-groups --bounding-set=-all"
                f" --no-new-privs {IMAGE}/bin/dragoman serve",
            ),
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
                await ready(client, "/readyz")
                answer = await client.post("/v1/chat/completions", json=hello())
            assert answer.status_code == 200 and answer.json()["choices"][0]["finish_reason"] == "stop"
            status = read_status(process.pid)
            assert re.search(rf"^Uid:\s+{USER}\s+{USER}\b", status, re.M)
            assert re.search(r"^CapBnd:\s+0+$", status, re.M)
        finally:
            with suppress(ProcessLookupError):  # it has ended by itself
                process.terminate()
        assert await process.wait() == 0
