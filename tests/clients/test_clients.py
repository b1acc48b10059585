"""Runs each client of the README's table, as a real program, with a running gateway (`make clients`)."""

import os
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gateway.connect.client import load_client
from tests.clients.installed import CLIENTS, PROGRAMS, SDKS, LoggedGateway
from tests.clients.page import advice
from tests.clients.scratch import SECRET, Scratch
from tests.paths import ROOT

MODELS: Final = ("demo-agent", "demo-chat", "demo-text")
# These take long to start.
SLOW: Final = ("Cline", "Copilot CLI", "opencode")
_MODULES: Final = PROGRAMS / "node_modules"
_BIN: Final = _MODULES / ".bin"


class Client(msgspec.Struct, frozen=True):
    """One section of docs/clients.md: its name for `dragoman connect`, the program it needs, what it must print, how
    often it may ask the gateway, and what keeps it from asking anybody else. `path` is that of the answers, and
    `changed` the files that it changes, with what then stands in them."""

    name: str
    connect: str
    program: str
    says: tuple[str, ...]
    asks: tuple[int, int]
    environ: dict[str, str] = {}
    files: dict[str, str] = {}
    path: str = "/v1/chat/completions"
    changed: dict[str, str] = {}


RESPONSES: Final = "/v1/responses"
MESSAGES: Final = "/v1/messages"
GEMINI: Final = "/v1beta/models/"
# A client of several dialects may take another one for its first command.
ANY_PATH: Final = "/"
MARLIN: Final = {"README.md": "The password is marlin."}

ALL: Final = (
    Client("openai", "openai", sys.executable, (SECRET,), (2, 2)),
    Client("Codex", "codex", str(_BIN / "codex"), ("1 file changed",), (4, 5), path=RESPONSES, changed=MARLIN),
    Client(
        "Claude Code",
        "claude-code",
        str(PROGRAMS / "bin" / "claude"),
        ("1 file changed",),
        (4, 6),
        {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"},
        path=MESSAGES,
        changed=MARLIN,
    ),
    Client(
        "gemini-cli",
        "gemini-cli",
        str(_BIN / "gemini"),
        ("1 file changed",),
        (5, 6),
        files={".gemini/settings.json": '{"privacy": {"usageStatisticsEnabled": false}}'},
        path=GEMINI,
        changed=MARLIN,
    ),
    Client("openai (Responses)", "openai", SDKS, (SECRET,), (2, 2), path=RESPONSES),
    Client("openai-agents", "openai", SDKS, (SECRET,), (2, 2), path=RESPONSES),
    Client("AI SDK", "openai-js", str(_MODULES / "ai"), (SECRET,), (2, 2), path=RESPONSES),
    Client("anthropic", "anthropic", SDKS, (SECRET,), (2, 2), path=MESSAGES),
    Client(
        "@anthropic-ai/sdk", "anthropic-js", str(_MODULES / "@anthropic-ai" / "sdk"), (SECRET,), (2, 2), path=MESSAGES
    ),
    Client("Ollama", "ollama", SDKS, (SECRET, "tools"), (2, 2), path="/api/chat"),
    Client("google-genai", "google-genai", SDKS, (SECRET,), (2, 2), path="/v1/models/"),
    Client("google-genai (Interactions)", "google-genai", SDKS, (SECRET,), (2, 2), path="/v1/interactions"),
    Client("@google/genai", "google-genai-js", str(_MODULES / "@google" / "genai"), (SECRET,), (2, 2), path=GEMINI),
    Client(
        "Qwen Code",
        "qwen-code",
        str(_BIN / "qwen"),
        (SECRET,),
        (2, 3),
        {"QWEN_USAGE_STATISTICS_ENABLED": "false", "QWEN_CODE_SKIP_UPDATE_CHECK_ONCE": "1"},
        {".qwen/settings.json": '{"general": {"enableAutoUpdate": false}}'},
    ),
    Client(
        "opencode",
        "opencode",
        str(PROGRAMS / "bin" / "opencode"),
        (SECRET,),
        (2, 4),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_SHARE": "1",
        },
    ),
    Client(
        "Cline",
        "cline",
        str(_BIN / "cline"),
        (SECRET,),
        (2, 3),
        {"CLINE_NO_AUTO_UPDATE": "1"},
    ),
    Client(
        "Copilot CLI",
        "copilot-cli",
        str(_BIN / "copilot"),
        ("1 file changed",),
        (4, 4),
        {"COPILOT_AUTO_UPDATE": "false"},
        changed=MARLIN,
    ),
    Client("pi", "pi", str(_BIN / "pi"), (SECRET,), (2, 2), {"PI_OFFLINE": "1"}),
    Client("Continue", "continue", str(_BIN / "cn"), (SECRET,), (2, 3), {"CONTINUE_TELEMETRY_ENABLED": "0"}),
    Client(
        "aider",
        "aider",
        str(PROGRAMS / "aider" / "bin" / "aider"),
        ('You said: "What is in the file README.md?"', "I am a scripted demo model"),
        (1, 1),
        {
            "AIDER_ANALYTICS": "false",
            "AIDER_CHECK_UPDATE": "false",
            "AIDER_GITIGNORE": "false",
            "AIDER_YES_ALWAYS": "true",
            "AIDER_SHOW_RELEASE_NOTES": "false",
            "AIDER_INPUT_HISTORY_FILE": "/dev/null",
            "AIDER_CHAT_HISTORY_FILE": "/dev/null",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        # Its own cache in the repository is nothing that the model wrote.
        {".aider/caches/model_prices_and_context_window.json": "{}", ".config/git/ignore": ".aider*\n"},
    ),
    Client("llm", "llm", str(PROGRAMS / "llm" / "bin" / "llm"), ("1, 2, 3, 4, 5", "llm_version says: 0."), (3, 3)),
)


# One for each name of `dragoman connect`: a client may have several sections.
CONNECTED: Final = tuple({client.connect: client for client in reversed(ALL)}.values())


def programs(client: Client) -> str:
    """The search path with the client's program and this project's own."""
    found = (str(Path(client.program).parent), str(Path(sys.executable).parent), os.environ["PATH"])
    return os.pathsep.join(found)


def connect(client: Client, scratch: Scratch, arguments: str) -> str:
    """What `dragoman connect` prints in the repository."""
    command = f"dragoman connect {client.connect} --settings {ROOT / 'settings.json'} {arguments}"
    ran = scratch.run(command, {"PATH": programs(client)})
    assert ran.status == 0, ran.printed
    return ran.printed


@pytest.mark.clients
@pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this")
@pytest.mark.parametrize(
    ("client", "model"),
    [
        pytest.param(client, model, id=f"{client.name}-{model}")
        for client in ALL
        for model in (MODELS[:1] if client.name in SLOW else MODELS)
    ],
)
def test_a_client_does_its_job_with_the_tools_of_its_own(
    client: Client, model: str, gateway: LoggedGateway, tmp_path: Path
) -> None:
    if not Path(client.program).exists():
        pytest.skip(f"NOT RUN: {client.name}, because its package could not be installed here")
    scratch = Scratch(tmp_path)
    said = advice()[client.name]

    def here(text: str) -> str:
        return text.replace("127.0.0.1:8000", gateway.address).replace("demo-agent", model)

    for name, text in client.files.items():
        scratch.write(name, text)
    before = len(gateway.answered(client.path))
    if said.files:
        connect(client, scratch, f"--write --model {model} --url http://{gateway.address}")
        assert all((scratch.home / name).exists() for name in said.files)
    outcome = scratch.run(here(said.commands), {**client.environ, "PATH": programs(client)})
    assert outcome.status == 0, outcome.printed
    for words in client.says:
        assert words in " ".join(outcome.printed.split()), outcome.printed
    assert scratch.changed == sorted(client.changed), scratch.state()
    for name, text in client.changed.items():
        assert text in (scratch.repository / name).read_text()
    statuses = gateway.answered(client.path)[before:]
    assert set(statuses) == {"200"}
    least, most = client.asks
    assert least <= len(statuses) <= most, outcome.printed


@pytest.mark.clients
@pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this")
@pytest.mark.parametrize("client", CONNECTED, ids=lambda client: client.connect)
def test_the_first_command_that_connect_prints_works(client: Client, gateway: LoggedGateway, tmp_path: Path) -> None:
    if not Path(client.program).exists():
        pytest.skip(f"NOT RUN: {client.name}, because its package could not be installed here")
    scratch = Scratch(tmp_path)
    for name, text in client.files.items():
        scratch.write(name, text)
    known = load_client(client.connect)
    printed = connect(client, scratch, f"{'--write' if known.files else ''} --url http://{gateway.address}")
    commands = printed.partition("In a shell:\n")[2]
    before = len(gateway.answered(ANY_PATH))
    outcome = scratch.run(commands, {**client.environ, "PATH": programs(client)})
    assert outcome.status == 0, outcome.printed
    assert set(gateway.answered(ANY_PATH)[before:]) == {"200"}, outcome.printed
