"""The lists of models."""

from typing import Any, Final

import httpx
import pytest

from gateway.demo.serve import serve_demo

KINDS: Final = ("chat", "messages", "responses", "gemini", "text")
CASES: Final = [(name, kind) for name in ("models_missing", "models_empty", "models_wrong_name") for kind in KINDS]


async def listed(kind: str, defect: str | None) -> tuple[int, list[str]]:
    """The status and the names of the list."""
    async with serve_demo(kind, defect=defect) as backend, httpx.AsyncClient(trust_env=False) as client:
        found = await client.get(backend.base_url + ("/v1/models" if kind in ("messages", "text") else "/models"))
    body: Any = found.json()
    models = body.get("data", body.get("models", []))
    return found.status_code, [model.get("id") or model["name"].removeprefix("models/") for model in models]


@pytest.mark.parametrize(("name", "kind"), CASES)
async def test_the_list_is_wrong(name: str, kind: str) -> None:
    expected = {
        "models_missing": (404, []),
        "models_empty": (200, []),
        "models_wrong_name": (200, [f"other-{kind}"]),
    }
    assert await listed(kind, None) == (200, [f"demo-{kind}"])
    assert await listed(kind, name) == expected[name]
