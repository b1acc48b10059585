"""`dragoman lab` with real clients: programs of the SDK, and programs that read a stream badly."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.demo.lab.event import APIS
from gateway.demo.lab.events import EVENTS
from gateway.demo.lab.run_client import FOLDER_PREFIX, KEY
from tests.paths import ROOT
from tests.tiers import sample

# It reads and asks as the examples of the SDK do.
SDK: Final = """
import sys
from openai import OpenAI

schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
tools = [{"type": "function", "function": {"name": "read_file", "parameters": schema}}]
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    answer = OpenAI().chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
    messages.append(answer)
    if not answer.tool_calls:
        break
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": open("notes.md").read()} for call in answer.tool_calls
    ]
print(answer.content)
"""
# It reads Responses with the SDK, without tools.
RESPONSES: Final = """
import sys
from openai import OpenAI

with OpenAI().responses.stream(model="m", input=sys.argv[1]) as stream:
    print(stream.get_final_response().output_text)
"""
# Whatever comes is the answer, an error is none, and what is missing in arguments is completed.
CARELESS: Final = """
import http.client, json, os, re, sys
from urllib.parse import urlsplit

url = urlsplit(os.environ["OPENAI_BASE_URL"])
schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
tools = [{"type": "function", "function": {"name": "read_file", "parameters": schema}}]
messages = [{"role": "user", "content": sys.argv[1]}]
said = called = ""
while not said:
    connection = http.client.HTTPConnection(url.hostname, url.port)
    body = json.dumps({"model": "m", "stream": True, "messages": messages, "tools": tools})
    connection.request("POST", url.path + "/chat/completions", body)
    said = called = ""
    try:
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            delta = (json.loads(line[6:])["choices"] or [{"delta": {}}])[0]["delta"]
            said += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                called += call["function"]["arguments"]
    except Exception:
        pass
    if not called:
        break
    path = re.search(r'"path":"([^"]*)', called)
    text = open(path[1]).read() if path else ""
    function = {"name": "read_file", "arguments": called}
    call = {"id": "call_lab_1", "type": "function", "function": function}
    messages.append({"role": "assistant", "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": "call_lab_1", "content": text})
print(said)
"""
# It asks once, and then waits for ever if there is no answer.
WAITING: Final = """
import os, signal, sys, urllib.request, json

body = {"model": "m", "messages": [{"role": "user", "content": sys.argv[1]}]}
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode())
try:
    print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
except Exception:
    signal.pause()
"""


# Those with files, in all kinds of folders.
CONFIGURED: Final = (
    *("codex", "claude-code", "gemini-cli", "qwen-code", "opencode", "pi", "continue"),
    *("aider", "copilot", "librechat", "llm"),
)


def lab(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["lab", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def client(folder: Path, code: str) -> tuple[str, ...]:
    """The command of a client that is a program of Python."""
    path = folder / "client.py"
    path.write_text(code)
    return ("--", sys.executable, str(path))


def only(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--only", name))


def verdicts(printed: str) -> dict[str, tuple[str, int]]:
    outcomes: Any = json.loads(printed)["outcomes"]
    return {one["event"]: (one["verdict"], one.get("again", 0)) for one in outcomes}


@pytest.mark.full
def test_the_sdk_asks_again_where_it_can_and_says_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = only("unknown_fields", "rate_limited_bare", "unauthorized", "two_calls")
    assert lab(*names, "--format", "json", "--jobs", "4", *client(tmp_path, SDK)) == 0
    printed = capsys.readouterr().out
    assert (json.loads(printed)["api"], json.loads(printed)["tool"]) == ("chat", "read_file")
    assert verdicts(printed) == {
        "unknown_fields": ("survived", 0),
        "rate_limited_bare": ("survived", 1),
        "unauthorized": ("reported", 0),
        "two_calls": ("survived", 0),
    }


@pytest.mark.full
def test_the_tool_that_is_called_is_the_one_that_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offered = SDK.replace('"read_file"', '"read-file"').replace("tools = [", "tools = [VIEW, ")
    view = '{"type": "function", "function": {"name": "view", "parameters": {"type": "object"}}}'
    code = offered.replace("VIEW", view)
    assert lab(*only("two_calls"), "--format", "json", *client(tmp_path, code)) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == "read-file"


@pytest.mark.full
def test_a_client_of_the_responses_api_is_known_by_its_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = only("comments", "unknown_item", "two_calls")
    assert lab(*names, "--format", "json", *client(tmp_path, RESPONSES)) == 0
    printed = capsys.readouterr().out
    assert (json.loads(printed)["title"], json.loads(printed)["tool"]) == ("Responses", "")
    assert verdicts(printed)["comments"] == ("survived", 0)
    assert verdicts(printed)["two_calls"] == ("not met", 0)


def test_a_client_that_takes_whatever_comes_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = only("comments", "disconnected", "error_late", "page", "cut_arguments")
    assert lab(*names, *client(tmp_path, CARELESS)) == 1
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines() if line.startswith("  ") and not line.startswith("    ")]
    assert {line[0]: line[1] for line in lines} == {
        "disconnected": "accepted",
        "error_late": "accepted",
        "page": "accepted",
        "cut_arguments": "accepted",
        "comments": "survived",
    }
    assert "it completed the arguments of the call, and ran that" in printed


def test_a_client_that_joins_the_pieces_of_two_calls_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It shows the whole answer, which the model gives upon any result."""
    joins = CARELESS.replace("path = re", "called = called if called.count('{') == 1 else '{}'\n    path = re")
    names = only("two_calls", "large_arguments")
    assert lab(*names, "--format", "json", *client(tmp_path, joins)) == 0
    details = {one["event"]: one.get("detail") for one in json.loads(capsys.readouterr().out)["outcomes"]}
    assert details == {"two_calls": "no result of its calls has the words of the file", "large_arguments": None}


def test_a_client_that_waits_for_ever_is_ended_at_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--time-limit", "2", "--silence", "0")
    assert lab(*only("unauthorized"), *limits, "--format", "markdown", *client(tmp_path, WAITING)) == 1
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.endswith(f"| {Path(sys.executable).name} |")
    assert row == "| `unauthorized` | 401, each time | hung |"


# It names its process and waits for the answer for ever, which no signal of a terminal ends.
NAMED: Final = """
import os, pathlib, sys
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
""" + WAITING.replace("sys.argv[1]", "sys.argv[2]")


@sample(lambda end: 1)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda end: end.name)
def test_a_signal_that_ends_the_command_ends_its_clients_and_their_folders(end: signal.Signals, tmp_path: Path) -> None:
    named = tmp_path / "processes"
    named.mkdir()
    limits = ("--time-limit", "60", "--silence", "50", "--only", "silence_before_head")
    command = (sys.executable, "-m", "gateway", "lab", *limits, *client(tmp_path, NAMED), str(named), "{prompt}")
    environ = {**os.environ, "TMPDIR": str(tmp_path)}

    def heeds_signals() -> None:
        # What this process ignores, as under nohup, its children would ignore, too.
        signal.signal(end, signal.SIG_DFL)

    with subprocess.Popen(command, cwd=ROOT, env=environ, preexec_fn=heeds_signals) as running:
        # The second one is that of the event.
        while len(list(named.iterdir())) < 2 and running.poll() is None:
            time.sleep(0.01)
        assert list(tmp_path.glob(f"{FOLDER_PREFIX}*")) != []
        running.send_signal(end)
        assert running.wait(30) == 130
    assert list(tmp_path.glob(f"{FOLDER_PREFIX}*")) == []
    assert [path.name for path in named.iterdir() if Path("/proc", path.name).exists()] == []


def test_a_run_that_cannot_begin_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program removes itself: no run behind the first one can start it."""
    path = tmp_path / "client"
    path.write_text(f"#!{sys.executable}\nimport os\nos.remove({str(path)!r})\n{WAITING}")
    path.chmod(0o700)
    assert lab("--only", "page", "--only", "empty_body", "--", str(path)) == 2
    assert capsys.readouterr().err == f"dragoman: {str(path)!r} cannot be started: No such file or directory\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('hello')", "the client asked for no answer; exit status 0; it printed: hello"),
        (WAITING.replace("sys.argv[1]", "'Hello'"), "no request of the client has the prompt"),
        (WAITING.replace('["choices"]', '["choice"]'), "without any fault; still running at the time limit"),
        (WAITING.replace('"user"', '"nobody"'), "the client sent what its API refuses: messages[0]"),
    ],
    ids=["asks nothing", "another prompt", "shows nothing", "another role"],
)
def test_a_client_that_fails_without_any_event_is_no_subject(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, words: str
) -> None:
    assert lab("--time-limit", "2", "--silence", "0", *client(tmp_path, code)) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the client's command is missing"),
        (("--only", "disconected", "--", "x"), "there is no event 'disconected'; did you mean 'disconnected'?"),
        (("--client", "codx", "--", "x"), "there is no client 'codx'; did you mean 'codex'?"),
        (("--env", "NAME", "--", "x"), "'NAME' is no NAME=VALUE"),
        (("--silence", "60", "--time-limit", "60", "--", "x"), "--silence must be shorter than --time-limit"),
        (("--", "no-such-program-here"), "'no-such-program-here' cannot be started"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab(*arguments) == 2
    assert words in capsys.readouterr().err


def test_the_list_has_every_event_with_its_apis(capsys: pytest.CaptureFixture[str]) -> None:
    assert lab("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [event.name for event in EVENTS]
    assert all(any(api in line for api in APIS) for line in lines)


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_files_of_a_known_client_are_written_into_the_folder_of_the_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    code = """
import os, pathlib
for path in sorted(pathlib.Path.home().parent.rglob("*")):
    if path.is_file():
        print(path.name, "127.0.0.1:" in path.read_text(errors="replace"))
print(*[name for name in os.environ if os.environ[name] == "KEY"])
""".replace("KEY", KEY)
    assert lab("--client", name, *client(tmp_path, code)) == 2
    printed = capsys.readouterr().err
    assert "True" in printed or name == "gemini-cli", "gemini-cli has its address in a variable"
    assert not (tmp_path / "own").exists()
