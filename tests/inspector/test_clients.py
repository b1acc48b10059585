"""The program of a client by its user agent, which is any text."""

from importlib.metadata import version

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.inspector.clients import LONGEST, client_name
from tests.recording.redact.canaries import CANARIES


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("codex_cli_rs/0.169.0 (Ubuntu 26.04; x86_64) unknown (codex_exec; 0.169.0)", "Codex 0.169.0"),
        ("codex_exec/0.169.0 (Ubuntu 26.04; x86_64)", "Codex 0.169.0"),
        ("codex-tui/0.170.1", "Codex 0.170.1"),
        ("claude-cli/2.1.330 (external, cli)", "Claude Code 2.1.330"),
        ("GeminiCLI/0.9.0/gemini-3-pro (linux; x64)", "Gemini CLI 0.9.0"),
        ("GeminiCLI/v0.9.0 (linux; x64)", "Gemini CLI 0.9.0"),
        ("opencode/1.18.31 ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14", "opencode 1.18.31"),
        ("ai-sdk/openai-compatible/2.0.47 ai-sdk/provider-utils/4.0.27 runtime/node.js/24", "AI SDK 2.0.47"),
        ("OpenAI/Python 2.8.0", "openai SDK (Python) 2.8.0"),
        ("AsyncOpenAI/Python 2.8.0", "openai SDK (Python) 2.8.0"),
        ("OpenAI/JS 6.9.1", "openai SDK (JS) 6.9.1"),
        ("OpenAI/Go 3.1.0", "openai SDK 3.1.0"),
        ("Anthropic/JS 0.71.0", "anthropic SDK (JS) 0.71.0"),
        ("curl/8.5.0", "curl 8.5.0"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "a browser"),
        ("MyTool/3.1", "MyTool"),
        ("Zedlike/1.0", "Zedlike"),
        ("", ""),
        ("   ", ""),
        ("<img src=x onerror=alert(1)>", ""),
        ("a" * 41, ""),
        ("\u202enoitcejni", ""),
    ],
)
def test_a_program_is_named(user_agent: str, name: str) -> None:
    assert client_name(user_agent.encode()) == name


def test_the_names_are_those_that_the_libraries_send() -> None:
    with httpx.Client() as client:
        assert client_name(client.headers["user-agent"].encode()) == f"httpx {version('httpx')}"
    agent = openai.OpenAI(api_key="-").user_agent
    assert client_name(agent.encode()) == f"openai SDK (Python) {version('openai')}"


@pytest.mark.parametrize("canary", CANARIES)
def test_a_secret_is_no_name(canary: str) -> None:
    for text in (CANARIES[canary], f"curl/{CANARIES[canary]}", f"OpenAI/Python {CANARIES[canary]}"):
        assert client_name(text.encode()) in ("", "curl", "openai SDK (Python)"), text


def test_nor_is_a_configured_one() -> None:
    assert client_name(b"my-own-key-17", ("my-own-key-17",)) == ""
    assert client_name(b"curl/17.17.17", ("17.17.17",)) == "curl"


@given(st.binary(max_size=300))
def test_any_bytes_give_a_short_word(user_agent: bytes) -> None:
    name = client_name(user_agent)
    assert len(name) <= LONGEST and name.isprintable() and "<" not in name
