"""A gateway with the state cache in front of a scripted provider, over real sockets."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import httpx
import msgspec

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway
from tests.server.backend import Connection, FaultyBackend, Script, answer
from tests.server.samples import total

Message: TypeAlias = dict[str, Any]
# The other profiles whose providers want the text of the reasoning, and how many of the turns with calls before and
# behind the last question get it back.
PLAIN: Final[Mapping[str, int]] = {"kimi-thinking": 1, "glm": 1, "minimax": 2}
ASK: Final[Message] = {"role": "user", "content": "Weather in Rome?"}
LOST: Final = "STATE_MISSING"


def call(call_id: str = "call_1", arguments: str = '{"city": "Rome"}', **extra: Any) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}, **extra}


def said(*calls: Message, content: str | None = None, **fields: Any) -> Message:
    return {"role": "assistant", "content": content, **({"tool_calls": [*calls]} if calls else {}), **fields}


def results(*call_ids: str, content: str = "sunny") -> list[Message]:
    return [{"role": "tool", "tool_call_id": call_id, "content": content} for call_id in call_ids]


def dropped(message: Message) -> Message:
    """The message as most clients keep it: role, text and calls, without any other field."""
    calls = [{name: one[name] for name in ("id", "type", "function")} for one in message.get("tool_calls", ())]
    return said(*calls, content=message["content"])


class Provider:
    """Answers with the messages that it is given, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Message] = []
        self.finish = ""
        self.refusal = ""
        self.script: Script | None = None

    async def __call__(self, connection: Connection) -> None:
        if self.script is not None:
            await self.script(connection)
            return
        if self.refusal:
            body = msgspec.json.encode({"error": {"message": self.refusal, "type": "invalid_request_error"}})
            await connection.send(answer("400 Bad Request", body, b"content-type: application/json"))
            return
        message = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        finish = self.finish or ("tool_calls" if "tool_calls" in message else "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = msgspec.json.encode({"id": "c", "object": "chat.completion", "choices": [choice]})
        await connection.send(answer("200 OK", body, b"content-type: application/json"))


class Scene:
    """A gateway in front of the provider. The model `m` has the profile of DeepSeek, `g` that of Gemini, `o` that of
    OpenRouter; `m2` and `g2` are other models of the same backends, `other` has another credential."""

    def __init__(self, provider: Provider, backend: FaultyBackend, gateway: RunningGateway) -> None:
        self.provider = provider
        self.backend = backend
        self.gateway = gateway

    async def ask(
        self, *messages: Message, model: str = "m", headers: Mapping[str, str] | None = None, stream: bool = False
    ) -> httpx.Response:
        return await self.gateway.client.post(
            "/v1/chat/completions",
            json={"model": model, "messages": [*messages], "stream": stream},
            headers={"x-dragoman-explain": "1", **(headers or {})},
        )

    async def answered(self, message: Message, *messages: Message, **how: Any) -> None:
        """The provider answers with this message."""
        self.provider.answers = [message]
        response = await self.ask(*(messages or (ASK,)), **how)
        assert response.status_code == 200, response.text

    async def sent(self, *messages: Message, **how: Any) -> tuple[list[Message], list[str]]:
        """The messages of the assistant as the provider gets them, and the notices about state."""
        self.provider.answers = [said(content="done")]
        response = await self.ask(*messages, **how)
        body = msgspec.json.decode(self.backend.seen[-1][1])
        noted = response.json().get("dragoman", response.json().get("error", {})).get("diagnostics", [])
        rules = [notice["rule"] for notice in noted if notice["stage"] == "state"]
        return [message for message in body["messages"] if message["role"] == "assistant"], rules

    async def outcomes(self, outcome: str) -> float:
        text = (await self.gateway.client.get("/metrics")).text
        return total(text, f'gateway_replays_total{{outcome="{outcome}"}}')


def settings(base_url: str, **more: Json) -> dict[str, Json]:
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": base_url}
    deepseek: dict[str, Json] = {**entry, "profile": "thinking", "api_key_env": "KEEPER_TEST_KEY"}
    return {
        "keeper": {"enabled": True},
        # A busy machine must not look like a slow store.
        "state": {"deadline_ms": 5000},
        "profiles": {"thinking": {"base": "deepseek-thinking", "reasoning_missing": None}},
        "backends": {
            "m": deepseek,
            "other": {**deepseek, "api_key_env": "KEEPER_TEST_OTHER_KEY"},
            "g": {**entry, "profile": "gemini"},
            "o": {**entry, "profile": "openrouter"},
            **{name: {**entry, "profile": name} for name in PLAIN},
        },
        "models": {
            "m": {"backend": "m"},
            "m2": {"backend": "m"},
            "other": {"backend": "other", "name": "m"},
            "g": {"backend": "g"},
            "g2": {"backend": "g"},
            "o": {"backend": "o"},
            **{name: {"backend": name} for name in PLAIN},
            "off": {"backend": "m", "name": "m", "keeper": {"enabled": False}},
        },
        **more,
    }


Start: TypeAlias = Callable[..., Any]
THOUGHT: Final = said(call(), content="", reasoning_content="Rome it is.")
SIGNED: Final = said(call(extra_content={"google": {"thought_signature": "sig"}}), content="")
