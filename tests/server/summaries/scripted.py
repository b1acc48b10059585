"""An agent whose history grows, and a chat backend that answers it and writes summaries as a script says."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.memory.summaries.job_request import INSTRUCTIONS
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

# In tokens: small, so that the histories of tests are small. 12,000 begin a summary, 6,000 are left.
WINDOW: Final = 20_000
# What a backend reports for a request; the scripts measure it as four bytes a token.
BYTES_A_TOKEN: Final = 4
PATIENCE_S: Final = 30

Messages = list[Json]
# Makes the text of a summary from the lines of the job's request.
Summarise = Callable[[list[dict[str, Any]]], str]


def summarise(lines: list[dict[str, Any]]) -> str:
    """Returns a sound summary of these turns, with every path in them."""
    first = next((line["n"] for line in lines if "n" in line), 1)
    paths = sorted(set(re.findall(r"/srv/app/\w+\.py", json.dumps(lines))))
    items = [{"text": f"The agent reads {path}.", "from": [first]} for path in paths[:40]]
    goal = {"text": "Find out why the service fails at its start.", "from": [first]}
    return json.dumps({"goal": [goal], "files": items})


class ScriptedModel:
    """A chat backend. `answered` and `summarised` hold the bodies of its requests.

    It writes no summary while `gate` is not set, and reports no tokens where `counts` is False.
    """

    def __init__(self) -> None:
        self.answered: list[dict[str, Any]] = []
        self.summarised: list[dict[str, Any]] = []
        self.summarise: Summarise = summarise
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        self.finish = "stop"
        self.refusal = b""
        # The bytes that the job gets instead of a summary; none at all: its connection is closed.
        self.summary_fault: bytes | None = None
        self.bodies: list[bytes] = []
        self.counts = True
        self.base_url = ""

    async def script(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        if body["messages"][0].get("content") == INSTRUCTIONS:
            self.summarised.append(body)
            self.begun.set()
            await self.gate.wait()
            if self.summary_fault is not None:
                await connection.send(self.summary_fault)
                connection.close()
                return
            lines = [json.loads(line) for line in body["messages"][1]["content"].split("\n")]
            text, finish = self.summarise(lines), self.finish
        else:
            self.answered.append(body)
            self.bodies.append(connection.body)
            text, finish = "Noted.", "stop"
            if self.refusal:
                await connection.send(self.refusal)
                return
        if body.get("stream"):
            await connection.send(streamed(text))
            return
        await connection.send(completion(text, finish, len(connection.body) // BYTES_A_TOKEN if self.counts else None))

    async def has_begun(self) -> None:
        """Waits until a summary is asked for."""
        async with asyncio.timeout(PATIENCE_S):
            await self.begun.wait()

    @property
    def sent(self) -> Messages:
        """The messages of the newest request that was no summary."""
        messages: Messages = self.answered[-1]["messages"]
        return messages


def completion(text: str, finish: str = "stop", prompt_tokens: int | None = None) -> bytes:
    """Returns the response of a chat backend."""
    usage = {} if prompt_tokens is None else {"usage": _usage(prompt_tokens, len(text) // BYTES_A_TOKEN)}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    body = json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], **usage}).encode()
    return answer("200 OK", body, b"content-type: application/json")


def streamed(text: str) -> bytes:
    """Returns the response of a chat backend as a stream, without usage."""

    def event(delta: Json, finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
        return b"data: %s\n\n" % json.dumps(body).encode()

    body = event({"role": "assistant", "content": text}, None) + event({}, "stop") + b"data: [DONE]\n\n"
    return answer("200 OK", body, b"content-type: text/event-stream")


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def agent_history(rounds: int, question: str = "Why does the service fail at its start?") -> Messages:
    """Returns the history of an agent after so many rounds, of about 400 tokens each."""
    messages: Messages = [
        {"role": "system", "content": "You are an agent. Today is Monday."},
        {"role": "user", "content": question},
    ]
    for number in range(rounds):
        messages += agent_round(number)
    return messages


def agent_round(number: int) -> Messages:
    """Returns one round: an assistant turn with a call, its result, and a remark."""
    call: Json = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps({"path": f"/srv/app/module_{number}.py"})},
    }
    lines = "\n".join(f"    value_{number}_{line} = load(setting_{number}, {line})" for line in range(40))
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"def step_{number}():\n{lines}"},
        {"role": "assistant", "content": f"The file /srv/app/module_{number}.py defines step_{number}, which is fine."},
    ]


def compress_settings(base_url: str, **compress: Json) -> dict[str, Json]:
    """Returns settings with a model `m` whose histories are summarised."""
    return {
        "compress": {"enabled": True, **compress},
        # A busy machine must not look like a slow store.
        "state": {"deadline_ms": 10_000},
        "backends": {"b": {"adapter": "openai_chat", "base_url": base_url}},
        "models": {"m": {"backend": "b", "context_length": WINDOW}},
    }


@asynccontextmanager
async def compressing_gateway(
    more: Mapping[str, Json] = {}, **compress: Json
) -> AsyncIterator[tuple["Agent", ScriptedModel]]:
    """Runs a gateway that summarises, and the backend behind it. `more` are further settings."""
    model = ScriptedModel()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        model.base_url = backend.base_url
        settings = {**compress_settings(backend.base_url, **compress), **more}
        gateway = await stack.enter_async_context(running_gateway(settings))
        yield Agent(gateway), model


class Agent:
    """A client of the gateway that sends its whole history each time."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.gateway = gateway

    async def post(self, messages: Messages, headers: Mapping[str, str] = {}, **fields: Json) -> httpx.Response:
        """Sends a history. Returns the response."""
        body = {"model": "m", "messages": messages, **fields}
        return await self.gateway.client.post("/v1/chat/completions", json=body, headers=headers)

    async def ask_only(self, messages: Messages, **fields: Json) -> str:
        """Sends a history. Returns the answer's text, while anything may still follow from the history."""
        return _text(await self.post(messages, {}, **fields))

    async def ask(self, messages: Messages, **headers: str) -> str:
        """Sends a history. Returns the answer's text, once what follows from the history is done."""
        text = _text(await self.post(messages, headers))
        await self.settled()
        return text

    async def metrics(self) -> str:
        """Returns the metrics as text."""
        return (await self.gateway.client.get("/metrics")).text

    async def settled(self) -> None:
        """Waits until nothing of compression runs."""
        summaries = self.gateway.app.gateway_state.summaries
        while summaries is not None and (running := summaries.running):
            await asyncio.wait(running)


def _text(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def rules_told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns the rules of stage `state` in the log, in order."""
    return re.findall(r"state (?:messages\[\d+\] )?([A-Z_]+):", caplog.text)
