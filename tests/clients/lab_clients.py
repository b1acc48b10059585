"""The clients that meet the laboratory: what each runs, and the package that says its version."""

import json
import sys
from pathlib import Path
from typing import Final

import msgspec

from tests.clients.installed import PROGRAMS, SDKS

_MODULES: Final = PROGRAMS / "node_modules"
_BIN: Final = _MODULES / ".bin"
# Continue reads no other file than the one that is named.
_CONTINUE: Final = 'exec cn --config "$HOME/.continue/config.yaml" -p "$1"'

ANTHROPIC: Final = """
import sys
from anthropic import Anthropic

schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
tools = [{"name": "read_file", "input_schema": schema}]
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    with Anthropic().messages.stream(model="m", max_tokens=1000, messages=messages, tools=tools) as stream:
        answer = stream.get_final_message()
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": open("notes.md").read()} for call in calls]
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
print("".join(block.text for block in answer.content if block.type == "text"))
"""
GOOGLE: Final = """
import sys
from google import genai


def read_file(path: str) -> str:
    return open("notes.md").read()


client = genai.Client()
chat = client.chats.create(model="m", config={"tools": [read_file]})
print(chat.send_message(sys.argv[1]).text)
"""


class LabClient(msgspec.Struct, frozen=True):
    """A client: the head of its column, the program that it needs, its package of Node, its options and its command
    for `dragoman lab`. `code` is a program of Python that is the client."""

    title: str
    program: Path
    command: tuple[str, ...]
    options: tuple[str, ...] = ()
    package: str = ""
    code: str = ""

    @property
    def version(self) -> str:
        """The version of the package."""
        text = (_MODULES / self.package / "package.json").read_text()
        found: str = json.loads(text)["version"]
        return found


def _with(client: str, *variables: str) -> tuple[str, ...]:
    return ("--client", client, *(word for variable in variables for word in ("--env", variable)))


_CODEX: Final = ("codex", "exec", "--skip-git-repo-check", "{prompt}")

# Those of the page.
PAGE: Final = (
    LabClient(
        "Claude Code",
        PROGRAMS / "bin" / "claude",
        ("claude", "-p", "{prompt}", "--allowedTools", "Read"),
        _with("claude-code", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1"),
        "@anthropic-ai/claude-code",
    ),
    LabClient("Codex, WebSocket", _BIN / "codex", _CODEX, _with("codex"), "@openai/codex"),
    LabClient("Codex, HTTP", _BIN / "codex", _CODEX, ("--no-websocket", *_with("codex")), "@openai/codex"),
    LabClient(
        "gemini-cli",
        _BIN / "gemini",
        ("gemini", "--yolo", "--skip-trust", "-p", "{prompt}"),
        _with("gemini-cli"),
        "@google/gemini-cli",
    ),
    LabClient(
        "Qwen Code",
        _BIN / "qwen",
        ("qwen", "-y", "-p", "{prompt}"),
        _with("qwen-code", "QWEN_USAGE_STATISTICS_ENABLED=false", "QWEN_CODE_SKIP_UPDATE_CHECK_ONCE=1"),
        "@qwen-code/qwen-code",
    ),
    LabClient(
        "opencode",
        PROGRAMS / "bin" / "opencode",
        ("opencode", "run", "-m", "dragoman/{model}", "{prompt}"),
        _with(
            "opencode",
            "OPENCODE_DISABLE_AUTOUPDATE=1",
            "OPENCODE_DISABLE_MODELS_FETCH=1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
            "OPENCODE_DISABLE_SHARE=1",
        ),
        "opencode-ai",
    ),
    LabClient(
        "pi",
        _BIN / "pi",
        ("pi", "--provider", "dragoman", "--model", "{model}", "-p", "{prompt}"),
        _with("pi", "PI_OFFLINE=1"),
        "@mariozechner/pi-coding-agent",
    ),
    LabClient(
        "Continue",
        _BIN / "cn",
        ("sh", "-c", _CONTINUE, "sh", "{prompt}"),
        _with("continue", "CONTINUE_TELEMETRY_ENABLED=0"),
        "@continuedev/cli",
    ),
)
SDK: Final = (
    LabClient("anthropic", Path(SDKS), (SDKS,), code=ANTHROPIC),
    LabClient("google-genai", Path(SDKS), (SDKS,), code=GOOGLE),
)


def path_with(client: LabClient) -> tuple[str, ...]:
    """The folders in which the program of a client and this project's own are found."""
    return (str(client.program.parent), str(_BIN), str(Path(sys.executable).parent))
