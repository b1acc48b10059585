"""What the real clients make of the gateway's lists of models: Codex reads its catalogue, Claude Code discovers models,
and the SDKs read sizes and capabilities."""

import json
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import CLIENTS, PROGRAMS, SDKS, LoggedGateway
from tests.clients.scratch import Scratch, printed_by
from tests.paths import ROOT

WINDOW: Final = 40_000
LONGEST: Final = 8_000
FACTS: Final = {
    "display_name": "Ours",
    "max_output": LONGEST,
    "images": False,
    "efforts": ["low", "high"],
    "default_effort": "low",
    "apply_patch": "freeform",
}
# Codex uses so much of a window, in percent.
USED: Final = 95
_BIN: Final = PROGRAMS / "node_modules" / ".bin"
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def catalogue(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoggedGateway]:
    """A gateway with a described model, `ours`, and one of which nothing is known, `plain`."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = json.loads((ROOT / "settings.json").read_bytes())
    models = {
        "ours": {"backend": "demo-responses", "context_length": WINDOW, "facts": FACTS},
        "plain": {"backend": "demo-chat"},
    }
    settings |= {"server": {**settings.get("server", {}), "claude_ids": True}, "models": models}
    async with gateway_command(folder, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
        await command.wait_ready()
        yield LoggedGateway(folder, command.base_url.removeprefix("http://"))


def run(program: Path | str, gateway: LoggedGateway, scratch: Scratch, commands: str, **environ: str) -> str:
    return printed_by(program, scratch, commands, {"GATEWAY": f"http://{gateway.address}", **environ})


def codex(gateway: LoggedGateway, scratch: Scratch, command: str, model: str = "ours") -> str:
    settings = ROOT / "settings.json"
    connect = f"dragoman connect codex --write --settings {settings} --model demo-agent --url $GATEWAY >/dev/null"
    named = f"sed -i 's/^model = .*/model = \"{model}\"/' ~/.codex/config.toml"
    return run(
        _BIN / "codex", gateway, scratch, f"{connect}\n{named}\ncodex {command}", DRAGOMAN_KEY="k", RUST_LOG="error"
    )


def own_models(printed: str) -> dict[str, Any]:  # Any: JSON
    catalogue = json.loads(printed[printed.index('{"models"') :])
    return {model["slug"]: model for model in catalogue["models"] if model["slug"] in ("ours", "plain")}


def test_codex_takes_the_models_into_its_catalogue(catalogue: LoggedGateway, tmp_path: Path) -> None:
    models = own_models(codex(catalogue, Scratch(tmp_path), "debug models"))
    assert models.keys() == {"ours"}, "a model without a window is never compacted, so that it is not described"
    ours = models["ours"]
    assert (ours["display_name"], ours["context_window"], ours["input_modalities"]) == ("Ours", WINDOW, ["text"])
    assert ours["auto_compact_token_limit"] == WINDOW - LONGEST
    assert [level["effort"] for level in ours["supported_reasoning_levels"]] == FACTS["efforts"]
    assert (ours["default_reasoning_level"], ours["apply_patch_tool_type"]) == ("low", "freeform")


def test_codex_works_with_the_window_of_the_model(catalogue: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    printed = codex(catalogue, scratch, "exec --dangerously-bypass-approvals-and-sandbox 'Say hello'")
    assert "metadata" not in printed, printed
    rollouts = [path.read_text() for path in scratch.home.glob(".codex/sessions/**/*.jsonl")]
    assert rollouts and f'"model_context_window":{WINDOW * USED // 100}' in rollouts[0]
    assert "You are a coding agent." in rollouts[0]


def test_claude_code_discovers_the_models(catalogue: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    run(
        PROGRAMS / "bin" / "claude",
        catalogue,
        scratch,
        "claude -p hello --model claude-dragoman-ours",
        ANTHROPIC_BASE_URL=f"http://{catalogue.address}",
        ANTHROPIC_API_KEY="unused",
        ANTHROPIC_DEFAULT_HAIKU_MODEL="plain",
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY="1",
        DISABLE_AUTOUPDATER="1",
        IS_SANDBOX="1",
    )
    found = json.loads((scratch.home / ".claude" / "cache" / "gateway-models.json").read_bytes())
    assert [(model["id"], model["display_name"]) for model in found["models"]] == [
        ("claude-dragoman-ours", "Ours"),
        ("claude-dragoman-plain", "plain"),
    ]


SDK_PROGRAMS: Final = {
    "anthropic": """
import os, anthropic
model = anthropic.Anthropic(base_url=os.environ["GATEWAY"], api_key="k").models.list(limit=1000).data[0]
print(model.id, model.display_name, model.max_input_tokens, model.max_tokens, model.capabilities.image_input.supported,
      model.capabilities.effort.high.supported, model.capabilities.effort.max.supported)
""",
    "google-genai": """
import os
from google import genai
client = genai.Client(api_key="k", http_options={"base_url": os.environ["GATEWAY"]})
model = client.models.list()[0]
print(model.name, model.display_name, model.input_token_limit, model.output_token_limit)
""",
    "ollama": """
import os, ollama
client = ollama.Client(os.environ["GATEWAY"])
model = client.show("ours")
print(client.list().models[0].model, model.capabilities, model.modelinfo["dragoman.context_length"], model.parameters)
""",
}
SDK_SAYS: Final = {
    "anthropic": f"claude-dragoman-ours Ours {WINDOW} 8000 False True False",
    "google-genai": f"models/ours Ours {WINDOW} 8000",
    "ollama": f"ours:latest ['completion', 'tools', 'thinking'] {WINDOW} num_ctx {WINDOW} num_predict 8000",
}


@pytest.mark.parametrize("sdk", SDK_PROGRAMS)
def test_an_sdk_reads_what_the_model_is_like(sdk: str, catalogue: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.write("ask.py", SDK_PROGRAMS[sdk])
    assert " ".join(run(SDKS, catalogue, scratch, f"{SDKS} ~/ask.py").split()) == SDK_SAYS[sdk]
