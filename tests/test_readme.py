"""Runs the commands of README.md and compares their output with the page."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateway.core.policy import Policy
from gateway.demo.settings import DEMO_SETTINGS
from gateway.server.upstream.backends import Backends
from gateway.settings import read_settings
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [text for kind, text in found if kind == language]


def transcripts() -> list[tuple[str, str]]:
    """Every `$ command` with the output shown below it."""
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)


class Started:
    def __init__(self, port: str, printed: str) -> None:
        self.port = port
        self.printed = printed

    def here(self, text: str) -> str:
        """The text of the page, for the port that was free."""
        return text.replace(":8000", f":{self.port}")


@pytest.fixture(scope="module")
def started() -> Iterator[Started]:
    """`make run`, as the page says, on a free port."""
    # Not `gateway_command`: what the page promises is the target of the Makefile.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
    command = ["make", "--no-print-directory", "run", "PORT=0"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(3))
        port = re.search(r"http://[^:]+:(\d+)", printed)
        assert port, printed
        yield Started(port[1], printed)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def settled(output: str) -> str:
    """Without what differs from run to run."""
    output = re.sub(r"chatcmpl-[0-9a-f]+", "chatcmpl-ID", output.replace("\r", ""))
    return re.sub(r'"created":\d+', '"created":TIME', output)


def test_the_gateway_prints_what_the_page_shows(started: Started) -> None:
    (shown,) = [text for text in blocks("text") if text.startswith("dragoman listens")]
    assert started.printed == started.here(shown)


def test_the_printed_command_works_as_printed(started: Started) -> None:
    command = started.printed.splitlines()[-1]
    assert '"content":"Hello! I am a scripted demo model.' in run(command)


@pytest.mark.parametrize(("command", "shown"), transcripts())
def test_a_transcript_is_true(started: Started, command: str, shown: str) -> None:
    assert settled(run(started.here(command))) == shown


def test_the_agent_loop_runs(started: Started) -> None:
    """The loop of the page of the demo models, to which the README leads."""
    assert "docs/demo.md#an-agent-loop" in README
    (script,) = blocks("python", DEMO)
    (shown,) = [text for text in blocks("text", DEMO) if text.startswith("call: ")]
    done = subprocess.run(
        [sys.executable, "-c", started.here(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == (shown, 0), done.stderr


def test_the_page_is_short_and_its_first_screen_leads_to_every_page() -> None:
    lines = README.splitlines()
    assert len(lines) <= 200
    first = "\n".join(lines[:40])
    assert "](docs/index.md)" in first and "](docs/pictures/inspector-broken.png)" in first
    assert "dragoman connect codex --write" in first


def test_the_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    used = re.findall(r"\bmake ([a-z]+)", README)
    assert {"run", "test"} <= set(used) <= set(targets)


def test_ci_runs_what_the_page_says() -> None:
    assert "make test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_settings_shown_are_true_defaults() -> None:
    shown = dict(re.findall(r"^\| `(max_\w+|repair|disable_\w+)` \| `(.*?)` \|", README, re.MULTILINE))
    policy = Policy()
    assert shown == {
        "max_tool_results": str(policy.max_tool_results),
        "max_history_messages": str(policy.max_history_messages),
        "repair": f'"{policy.repair}"',
        "disable_warp_tools": str(policy.disable_warp_tools).lower(),
    }


def test_every_linked_file_exists() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_the_backend_shown_can_be_read() -> None:
    from gateway.settings import parse_settings

    (shown,) = blocks("json")
    assert set(parse_settings(shown).models) == {"agent", "*"}


@pytest.mark.parametrize("page", ["README.md", "docs/settings.md"])
def test_the_adapters_with_limits_of_the_top_level_are_named(page: str) -> None:
    settings = read_settings(DEMO_SETTINGS)
    backends = Backends(settings)
    policies = {settings.backends[name].adapter: backends.route(name)[0].policy for name in settings.models}
    limited = {
        name for name, policy in policies.items() if (policy.max_tool_results, policy.max_history_messages) == (10, 50)
    }
    assert limited == {"text", "warp", "proto"} and len(policies) == 7
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    (sentence,) = re.findall(r"[^.|]*at the top level apply to backends[^;]*;", text)
    assert set(re.findall(r"`(\w+)`", sentence)) - {"max_tool_results", "max_history_messages"} == limited
