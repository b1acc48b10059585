"""The pytest plugin in runs of its own, as a user's project would have it."""

import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from gateway.demo.settings import DEMO_SETTINGS
from gateway.recording.files import load_recording, save_recording
from gateway.recording.recording import Recording
from gateway.testing.gateway import running_gateway
from tests.paths import ROOT
from tests.recording.samples import golden_recordings, names

pytest_plugins = ["pytester"]

TEST = """
import json, pytest, urllib.request

def ask(base_url, body):
    request = urllib.request.Request(f"{base_url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json", "authorization": "Bearer a-secret-key-17"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()

BODY = %s

@pytest.mark.dragoman("a.dragoman.jsonl"%s)
def test_it(dragoman):
%s
"""


def project(pytester: pytest.Pytester, body: object, lines: str, marker: str = "") -> Path:
    indented = "\n".join(f"    {line}" for line in lines.splitlines())
    pytester.makepyfile(TEST % (repr(body), marker, indented))
    return pytester.path / "a.dragoman.jsonl"


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    # Not by its entry point: whether the package is installed is no matter of this test.
    words = ("-p", "no:cacheprovider", "-p", "gateway.testing.pytest_plugin", "--strict-markers", *options)
    environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        return pytester.runpytest_subprocess(*words)


def recorded(path: Path) -> dict[str, object]:
    """Saves a recording, and returns the body of its request."""
    (one,) = golden_recordings()[names().index("openai_chat_plain_answer")].interactions()
    request = msgspec.structs.replace(one.request, path="/v1/chat/completions")
    save_recording(path, Recording().with_interactions([msgspec.structs.replace(one, request=request)]))
    body: dict[str, object] = msgspec.json.decode(one.body or b"")
    return body


def test_a_recording_is_the_service_of_a_test(pytester: pytest.Pytester) -> None:
    body = recorded(pytester.path / "a.dragoman.jsonl")
    project(pytester, body, "assert ask(dragoman.base_url, BODY)\nassert len(dragoman.requests) == 1")
    run(pytester).assert_outcomes(passed=1)


def test_an_unused_response_fails_the_test(pytester: pytest.Pytester) -> None:
    body = recorded(pytester.path / "a.dragoman.jsonl")
    project(pytester, body, "pass")
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*nobody asked for the recorded responses 1*"])


@pytest.mark.full
def test_a_request_that_does_not_fit_fails_the_test_with_the_difference(pytester: pytest.Pytester) -> None:
    body = recorded(pytester.path / "a.dragoman.jsonl")
    lines = (
        "BODY['messages'][0]['content'] = 'Other'\ntry:\n    ask(dragoman.base_url, BODY)\nexcept Exception:\n    pass"
    )
    project(pytester, body, lines)
    result = run(pytester)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(['*no recorded response*messages?0?.content: recorded*now "Other"*'])


@pytest.mark.full
def test_a_response_can_be_broken(pytester: pytest.Pytester) -> None:
    body = recorded(pytester.path / "a.dragoman.jsonl")
    lines = "dragoman.fail('truncated')\nwith pytest.raises(Exception):\n    ask(dragoman.base_url, BODY)"
    project(pytester, body, lines)
    run(pytester).assert_outcomes(passed=1)


@pytest.mark.full
def test_a_fixture_without_its_marker_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(dragoman):\n    pass")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs the marker @pytest.mark.dragoman(FILE)*"])


@pytest.mark.full
def test_recording_needs_an_upstream(pytester: pytest.Pytester) -> None:
    project(pytester, {}, "pass")
    result = run(pytester, "--dragoman-record=new")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*recording needs the base URL*"])


@pytest.mark.full
async def test_what_is_missing_is_recorded_once_new_or_all(pytester: pytest.Pytester) -> None:
    body = {"model": "demo-chat", "messages": [{"role": "user", "content": "my key is sk-abcdefghijklmnop"}]}
    lines = "assert b'chat.completion' in ask(dragoman.base_url, BODY)"
    async with running_gateway(DEMO_SETTINGS) as gateway:  # type: ignore[arg-type]  # the settings of the demo
        path = project(pytester, body, lines, f", upstream={gateway.base_url!r}")

        async def outcome(mode: str) -> tuple[int, list[str]]:
            before = len(gateway.app.gateway_state.demo_backends._running["chat"].requests)
            result = await asyncio.to_thread(run, pytester, f"--dragoman-record={mode}")
            assert result.ret == (0 if mode != "none" or path.exists() else 1)
            after = len(gateway.app.gateway_state.demo_backends._running["chat"].requests)
            ids = [one.request.id for one in load_recording(path).interactions()] if path.exists() else []
            return after - before, ids

        assert await outcome("none") == (0, [])
        asked, first = await outcome("once")
        assert (asked, len(first)) == (1, 1)
        assert await outcome("once") == (0, first)
        assert await outcome("new") == (0, first)
        assert await outcome("none") == (0, first)
        asked, again = await outcome("all")
        assert (asked, len(again)) == (1, 1) and again != first
    written = path.read_text()
    assert "a-secret-key-17" not in written and "sk-abcdefghijklmnop" not in written
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.full
def test_an_upstream_that_does_not_answer_fails_the_test_and_says_so(pytester: pytest.Pytester) -> None:
    lines = "with pytest.raises(Exception, match='404'):\n    ask(dragoman.base_url, BODY)"
    path = project(pytester, {}, lines, ', upstream="http://127.0.0.1:1"')
    result = run(pytester, "--dragoman-record=once")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*The upstream http://127.0.0.1:1 gave no whole response (ConnectError)*"])
    assert not path.exists()


@pytest.mark.full
@pytest.mark.parametrize("marker", [", side='both'", ", match='some'"])
def test_an_option_of_the_marker_that_does_not_exist_is_refused(pytester: pytest.Pytester, marker: str) -> None:
    body = recorded(pytester.path / "a.dragoman.jsonl")
    project(pytester, body, "pass", marker)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is none of*"])


def test_the_plugin_imports_nothing_until_it_is_used() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import gateway.testing.pytest_plugin; "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('gateway')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"


def test_the_package_names_the_plugin() -> None:
    project_file = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project_file["entry-points"]["pytest11"] == {"dragoman": "gateway.testing.pytest_plugin"}
