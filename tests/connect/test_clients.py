"""What `dragoman connect` says of each client: its golden text, its addresses, and no key."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.connect.client import Client, client_names, load_client
from gateway.connect.instructions import instructions
from gateway.connect.target import Target
from gateway.registry import load_dialect
from tests.paths import ROOT

GOLDEN: Final = Path(__file__).parent / "golden"
TARGET: Final = Target("http://127.0.0.1:8000", "demo-agent", ("demo-agent", "demo-chat"))
KNOWN: Final = {"url", "model", "each_model", "key", "context_length", "max_output"}
# Clients of these add the version of the API to the address themselves.
WITHOUT_VERSION: Final = ("anthropic_messages", "gemini", "ollama")


def told(client: Client, target: Target = TARGET) -> str:
    return instructions(client, target, [f"{file.folders[-1]}/{file.name}" for file in client.files])


@pytest.mark.parametrize("name", client_names())
def test_what_a_client_needs_is_the_golden_text(name: str, rewrite_golden: bool) -> None:
    file = GOLDEN / f"{name}.txt"
    if rewrite_golden:
        file.write_text(told(load_client(name)), encoding="utf-8")
    assert told(load_client(name)) == file.read_text(encoding="utf-8"), "make golden writes it anew"


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway.example.org",
        "https://localhost:8000",
        "https://127.0.0.1",
        "https://192.168.1.5:8443",
        "https://100.64.0.1",
        "https://[::1]",
        "https://[fd00::1]",
        "https://gateway",
        "https://gateway.local",
    ],
)
def test_an_address_that_a_client_of_the_internet_cannot_ask_is_warned_of(url: str) -> None:
    assert "Warning: the address below is not a public HTTPS one, and Warp refuses it." in told(
        load_client("warp"), Target(url, "m", ("m",))
    )
    assert "Warning" not in told(load_client("codex"), Target(url, "m", ("m",)))


@pytest.mark.parametrize("url", ["https://gateway.example.org", "https://8.8.8.8:8443", "https://[2606:4700::1111]"])
def test_a_public_address_is_not_warned_of(url: str) -> None:
    text = told(load_client("warp"), Target(url, "m", ("m",)))
    assert "Warning" not in text and f"{url}/v1" in text


def test_a_client_that_takes_no_empty_key_is_told_to_enter_one() -> None:
    [line] = [line for line in told(load_client("warp")).splitlines() if "API key " in line]
    assert line.split("  ")[-1].strip() == "one of your client keys"


def test_there_is_no_golden_text_of_another_client() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(client_names())


@pytest.mark.parametrize("name", client_names())
def test_the_address_has_the_path_of_the_clients_dialect(name: str) -> None:
    client = load_client(name)
    assert load_dialect(client.dialect).name == client.dialect
    found = re.findall(r"http://127\.0\.0\.1:8000([\w/]*)", told(client))
    version = "" if client.dialect in WITHOUT_VERSION else "/v1"
    assert found and found[0].startswith(version) and (version or not found[0])


@pytest.mark.parametrize("name", client_names())
def test_every_placeholder_is_known_and_no_key_is_a_literal(name: str) -> None:
    text = (ROOT / "gateway" / "connect" / "clients" / f"{name}.toml").read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![$\w{])\{(\w+)(?::d)?\}", text)) <= KNOWN
    for key, value in _leaves(tomllib.loads(text)):
        if re.fullmatch(r"api_?key", key, re.I):
            assert re.fullmatch(r"\$\{\{ secrets\.DRAGOMAN_KEY }}|\$?\{?(env:)?DRAGOMAN_KEY}?", value), (key, value)


def _leaves(tree: Any, key: str = "") -> list[tuple[str, str]]:
    """The texts of JSON with their keys. (Any: JSON.)"""
    if isinstance(tree, dict):
        return [leaf for name, value in tree.items() for leaf in _leaves(value, name)]
    if isinstance(tree, list):
        return [leaf for item in tree for leaf in _leaves(item, key)]
    return [(key, tree)] if isinstance(tree, str) else []
