"""State that one backend made reaches that backend alone, on all native wires, whole and streamed, over real sockets.

Each backend answers with states in the places where its API has them, and records what it gets.
"""

import base64
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, TypeAlias

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.core.provider_state import label_of
from gateway.testing.faulty import Connection, FaultyBackend, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

Body: TypeAlias = dict[str, Any]

# Valid in both alphabets of base64 and in one of them alone, with padding and without.
STATES: Final = ("RXFzdGF0ZQ==", "Cg+/c3RhdGUtdHdv", "Cg-_c3RhdGUtdGhyZWU", "ZW5jcnlwdGVk")
ARGUMENTS: Final = {"city": "Rome"}
WRITTEN: Final = '{"city":"Rome"}'
# Where states stand in the JSON of a client's answer.
FIELDS: Final = frozenset({"signature", "data", "thought_signature", "thoughtSignature", "encrypted_content"})


class Wire(msgspec.Struct, frozen=True):
    """An API: its path for whole answers and for streams, and the backend's whole answer."""

    adapter: str
    path: str
    stream_path: str
    whole: Body

    def history(self, states: Sequence[str]) -> Body:
        """A request that continues the answer with these states."""
        return _HISTORIES[self.adapter](*states)


def _chat_history(first: str, *_: str) -> Body:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": WRITTEN}}
    signed = {**call, "extra_content": {"google": {"thought_signature": first}}}
    return {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "So.", "tool_calls": [signed]},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        ]
    }


def _messages_history(first: str, second: str, *_: str) -> Body:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": first},
        {"type": "redacted_thinking", "data": second},
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "call_1", "name": "weather", "input": ARGUMENTS},
    ]
    return {
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}]},
        ],
    }


def _responses_history(first: str, second: str, *_: str) -> Body:
    return {
        "input": [
            {"role": "user", "content": "Weather?"},
            {"type": "compaction", "id": "cmp_1", "encrypted_content": first},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": second},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": WRITTEN},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        ]
    }


def _gemini_history(first: str, second: str, third: str, fourth: str) -> Body:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": first},
        {"text": "So.", "thoughtSignature": second},
        {"functionCall": {"id": "call_1", "name": "weather", "args": ARGUMENTS}, "thoughtSignature": third},
        {"text": "", "thoughtSignature": fourth},
    ]
    result = {"id": "call_1", "name": "weather", "response": {"output": "sunny"}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": parts},
            {"role": "user", "parts": [{"functionResponse": result}]},
        ]
    }


_HISTORIES: Final[Mapping[str, Callable[..., Body]]] = {
    "openai_chat": _chat_history,
    "anthropic_messages": _messages_history,
    "openai_responses": _responses_history,
    "gemini": _gemini_history,
}
_GEMINI: Final = "/v1beta/models/{model}:"
WIRES: Final = {
    wire.adapter: wire
    for wire in (
        Wire(
            "openai_chat",
            "/v1/chat/completions",
            "/v1/chat/completions",
            {
                "id": "c",
                "object": "chat.completion",
                "choices": [
                    {
                        "index": 0,
                        "message": _chat_history(*STATES)["messages"][1],
                        "finish_reason": "tool_calls",
                    }
                ],
            },
        ),
        Wire(
            "anthropic_messages",
            "/v1/messages",
            "/v1/messages",
            {
                "id": "msg",
                "type": "message",
                "role": "assistant",
                "model": "x",
                "stop_reason": "tool_use",
                "content": _messages_history(*STATES)["messages"][1]["content"],
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        ),
        Wire(
            "openai_responses",
            "/v1/responses",
            "/v1/responses",
            {
                "id": "resp",
                "object": "response",
                "status": "completed",
                "output": _responses_history(*STATES)["input"][1:4],
            },
        ),
        Wire(
            "gemini",
            _GEMINI + "generateContent",
            _GEMINI + "streamGenerateContent?alt=sse",
            {"candidates": [{"content": _gemini_history(*STATES)["contents"][1], "index": 0, "finishReason": "STOP"}]},
        ),
    )
}


def chat_events(whole: Body) -> Iterator[Body]:
    message = whole["choices"][0]["message"]
    (call,) = message["tool_calls"]
    for delta, finish in (
        ({"role": "assistant", "content": "So."}, None),
        ({"tool_calls": [{"index": 0, **call, "function": {"name": "weather", "arguments": ""}}]}, None),
        ({"tool_calls": [{"index": 0, "function": {"arguments": WRITTEN}}]}, None),
        ({}, "tool_calls"),
    ):
        yield {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def message_events(whole: Body) -> Iterator[Body]:
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        opened, deltas = block, []
        match block:
            case {"type": "thinking", "thinking": thinking, "signature": signature}:
                opened = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": thinking}]
                deltas.append({"type": "signature_delta", "signature": signature})
            case {"type": "text", "text": text}:
                opened, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": text}]
            case {"type": "tool_use"}:
                opened, deltas = {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": WRITTEN}]
            case _:
                pass
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def response_events(whole: Body) -> Iterator[Body]:
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    for index, item in enumerate(whole["output"]):
        # OpenAI sends some of the encrypted content with the beginning of an item, and all of it with the end.
        begun = {**item, "encrypted_content": "AAAA"} if "encrypted_content" in item else {**item, "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def chunk_events(whole: Body) -> Iterator[Body]:
    (candidate,) = whole["candidates"]
    *others, last = candidate["content"]["parts"]
    for part in others:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
    yield {"candidates": [{**candidate, "content": {"role": "model", "parts": [last]}}]}


EVENTS: Final = {
    "openai_chat": chat_events,
    "anthropic_messages": message_events,
    "openai_responses": response_events,
    "gemini": chunk_events,
}


# The backend of Messages answers this question with one piece of thinking.
ONE_THOUGHT: Final = "Weather, with one thought?"


async def provider(connection: Connection) -> None:
    """Answers in the API of the path, with states."""
    path = connection.head.split()[1].decode()
    marks = {"completions": "openai_chat", "messages": "anthropic_messages", "responses": "openai_responses"}
    wire = WIRES[next((name for mark, name in marks.items() if path.endswith(mark)), "gemini")]
    streams = "streamGenerateContent" in path or msgspec.json.decode(connection.body).get("stream")
    whole = wire.whole
    if wire.adapter == "anthropic_messages" and ONE_THOUGHT.encode() in connection.body:
        thinking, _, *others = whole["content"]
        whole = {**whole, "content": [thinking, *others]}
    if not streams:
        body, kind = msgspec.json.encode(whole), b"application/json"
    else:
        lines = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in EVENTS[wire.adapter](whole)]
        body, kind = b"".join(lines), b"text/event-stream"
    await connection.send(answer("200 OK", body, b"content-type: " + kind))


class Scene(msgspec.Struct):
    gateway: RunningGateway
    hosts: tuple[FaultyBackend, FaultyBackend]

    async def post(self, wire: Wire, model: str, body: Body, *, stream: bool = False) -> bytes:
        path = (wire.stream_path if stream else wire.path).format(model=model)
        fields = body if wire.adapter == "gemini" else {**body, "model": model, "stream": stream}
        response = await self.gateway.client.post(path, json=fields, headers={"x-dragoman-explain": "1"})
        assert response.status_code == 200, response.text
        return response.content

    async def states(self, wire: Wire, *, stream: bool) -> list[str]:
        """The states that a client of this API gets from the backend `a` of its API, in their order."""
        question = {"messages": [{"role": "user", "content": "Weather?"}], "max_tokens": 99}
        if wire.adapter == "openai_responses":
            question = {"input": "Weather?", "include": ["reasoning.encrypted_content"]}
        elif wire.adapter == "gemini":
            asked = [{"role": "user", "parts": [{"text": "Weather?"}]}]
            question = {"contents": asked, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
        said = await self.post(wire, f"a-{wire.adapter}", question, stream=stream)
        documents = said.split(b"\n") if stream else [b"data: " + said]
        read = [msgspec.json.decode(line[6:]) for line in documents if line.startswith(b"data: {")]
        # A client keeps an item as it ends.
        ended = [document for document in read if document.get("type") != "response.output_item.added"]
        return [*dict.fromkeys(state for document in ended for state in found_states(document))]

    async def sent(self, wire: Wire, model: str, body: Body) -> tuple[str, list[str]]:
        """What the backend of the model gets for a request, and the notices about state."""
        before = [len(host.seen) for host in self.hosts]
        answered = msgspec.json.decode(await self.post(wire, model, body))
        (got,) = [host.seen[-1][1] for host, count in zip(self.hosts, before, strict=True) if len(host.seen) > count]
        noted = [one["rule"] for one in answered["dragoman"]["diagnostics"] if one["stage"] == "state"]
        return got.decode(), noted


def found_states(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from found_states(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name in FIELDS and isinstance(one, str):
                yield from [one] if one else []
            else:
                yield from found_states(one)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def scene() -> AsyncIterator[Scene]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELS_TEST_KEY", "sk-the-first-of-two")
        patch.setenv("LABELS_TEST_OTHER_KEY", "sk-the-second-of-two")
        async with AsyncExitStack() as stack:
            hosts = [await stack.enter_async_context(faulty_backend(provider)) for _ in range(2)]

            def entries(adapter: str) -> dict[str, Json]:
                entry: dict[str, Json] = {
                    "adapter": adapter,
                    "base_url": hosts[0].base_url,
                    "api_key_env": "LABELS_TEST_KEY",
                }
                return {
                    f"a-{adapter}": entry,
                    f"same-{adapter}": {**entry, "max_history_messages": 90},
                    f"host-{adapter}": {**entry, "base_url": hosts[1].base_url},
                    f"key-{adapter}": {**entry, "api_key_env": "LABELS_TEST_OTHER_KEY"},
                }

            backends: dict[str, Json] = {name: entry for adapter in WIRES for name, entry in entries(adapter).items()}
            models: dict[str, Json] = {name: {"backend": name} for name in backends}
            for profile in ("openai", "mistral", "groq", "deepseek"):
                models[profile] = {"backend": "host-openai_chat", "profile": profile}
            models["google"] = {"backend": "a-openai_chat", "profile": "gemini"}
            running = await stack.enter_async_context(running_gateway({"backends": backends, "models": models}))
            yield Scene(running, (hosts[0], hosts[1]))


WAYS: Final = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH: Final = pytest.mark.parametrize("wire", WIRES.values(), ids=list(WIRES))


def carried(sent: str) -> list[str]:
    """The states in what a backend got, labelled or not."""
    return [state for state in STATES if state in sent]


@sample()
@WAYS
@EACH
async def test_state_returns_to_its_own_backend_as_it_was_made(scene: Scene, wire: Wire, stream: bool) -> None:
    states = await scene.states(wire, stream=stream)
    assert [state[len(label_of(state)) :] for state in states] == [*STATES[: len(states)]]
    assert all(label_of(state) for state in states)
    for model in ("a", "same"):
        sent, noted = await scene.sent(wire, f"{model}-{wire.adapter}", wire.history(states))
        assert [*found_states(msgspec.json.decode(sent))] == [*STATES[: len(states)]]
        assert noted == []


@sample()
@pytest.mark.parametrize("other", ["host", "key"])
@WAYS
@EACH
async def test_state_reaches_no_other_backend_of_its_api(scene: Scene, wire: Wire, stream: bool, other: str) -> None:
    states = await scene.states(wire, stream=stream)
    sent, noted = await scene.sent(wire, f"{other}-{wire.adapter}", wire.history(states))
    assert carried(sent) == []
    assert "Dragoman" not in sent
    assert "STATE_FOREIGN" in noted
    # What the model said and what the tool returned is still there.
    assert "sunny" in sent
    assert "Rome" in sent


@sample()
@pytest.mark.parametrize("adapter", WIRES)
@WAYS
@EACH
async def test_state_reaches_no_backend_of_another_api(scene: Scene, wire: Wire, stream: bool, adapter: str) -> None:
    if adapter == wire.adapter:
        pytest.skip("the same API")
    body = wire.history(await scene.states(wire, stream=stream))
    if wire.adapter == "openai_responses":
        del body["input"][1]  # no other API has a compaction
    sent, noted = await scene.sent(wire, f"a-{adapter}", body)
    assert carried(sent) == []
    assert "Dragoman" not in sent
    assert "STATE_FOREIGN" in noted


@sample()
@pytest.mark.parametrize("adapter", WIRES)
@EACH
async def test_state_without_a_label_reaches_the_api_that_the_client_speaks(
    scene: Scene, wire: Wire, adapter: str
) -> None:
    body = wire.history(STATES)
    count = len([*found_states(body)])
    if adapter == wire.adapter:
        for model in ("a", "host", "key"):
            sent, noted = await scene.sent(wire, f"{model}-{adapter}", body)
            assert [*found_states(msgspec.json.decode(sent))] == [*STATES[:count]]
            assert noted == []
        return
    if wire.adapter == "openai_responses":
        del body["input"][1]
    sent, noted = await scene.sent(wire, f"a-{adapter}", body)
    assert carried(sent) == []
    assert noted == ["STATE_UNLABELLED"]


@sample()
@pytest.mark.parametrize("profile", ["openai", "mistral", "groq", "deepseek"])
async def test_a_signature_of_google_reaches_no_other_provider_of_chat_completions(scene: Scene, profile: str) -> None:
    wire = WIRES["openai_chat"]
    states = await scene.states(wire, stream=False)
    sent, noted = await scene.sent(wire, profile, wire.history(states))
    assert "extra_content" not in sent
    assert noted == ["STATE_FOREIGN"]
    back, noted = await scene.sent(wire, "google", wire.history(states))
    assert [*found_states(msgspec.json.decode(back))] == [STATES[0]]
    assert noted == []


@pytest.mark.parametrize("wire", ["openai_chat", "gemini"])
@pytest.mark.parametrize("word", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])
async def test_a_word_that_google_documents_for_an_absent_signature_passes(scene: Scene, wire: str, word: str) -> None:
    sent, noted = await scene.sent(WIRES[wire], f"a-{wire}", WIRES[wire].history([word] * 4))
    assert {*found_states(msgspec.json.decode(sent))} == {word}
    assert noted == []


@pytest.mark.parametrize("adapter", ["openai_chat", "anthropic_messages", "gemini"])
async def test_a_chat_client_carries_the_state_of_any_api_back_to_its_backend(scene: Scene, adapter: str) -> None:
    """Encrypted content is not among it: no chat client asks for it."""
    question = {"messages": [{"role": "user", "content": ONE_THOUGHT}]}
    chat = WIRES["openai_chat"]
    whole = msgspec.json.decode(await scene.post(chat, f"a-{adapter}", question))
    message = whole["choices"][0]["message"]
    if adapter == "gemini":
        # The signatures beside text have no place in a message of this API.
        del message["extra_content"]
    (state,) = found_states(message)
    assert label_of(state)
    tool = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
    body = {"messages": [*question["messages"], message, tool]}
    sent, noted = await scene.sent(chat, f"a-{adapter}", body)
    assert carried(sent) == [state[len(label_of(state)) :]]
    assert "Dragoman" not in sent
    assert noted == []
    for other in [f"key-{adapter}", *(f"a-{name}" for name in WIRES if name != adapter)]:
        sent, noted = await scene.sent(chat, other, body)
        assert carried(sent) == []
        assert "Dragoman" not in sent
        assert noted == ["STATE_FOREIGN"]


@WAYS
async def test_a_client_that_keeps_signatures_as_bytes_returns_them(scene: Scene, stream: bool) -> None:
    """google-genai decodes base64 of both alphabets and encodes the URL-safe one."""
    wire = WIRES["gemini"]
    states = await scene.states(wire, stream=stream)
    kept = [base64.urlsafe_b64decode(padded(state.replace("+", "-").replace("/", "_"))) for state in states]
    back = [base64.urlsafe_b64encode(data).decode() for data in kept]
    sent, noted = await scene.sent(wire, "a-gemini", wire.history(back))
    found = [*found_states(msgspec.json.decode(sent))]
    assert [decoded(state) for state in found] == [decoded(state) for state in STATES]
    assert noted == []


def padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)


def decoded(state: str) -> bytes:
    return base64.urlsafe_b64decode(padded(state.replace("+", "-").replace("/", "_")))


@EACH
async def test_a_forged_label_gains_nothing(scene: Scene, wire: Wire) -> None:
    """The label of a backend before invented state: the backend gets what was invented, and judges it."""
    states = await scene.states(wire, stream=False)
    forged = [label_of(state) + "Zm9yZ2Vk" for state in states]
    sent, _ = await scene.sent(wire, f"a-{wire.adapter}", wire.history(forged))
    assert {*found_states(msgspec.json.decode(sent))} == {"Zm9yZ2Vk"}
    sent, noted = await scene.sent(wire, f"host-{wire.adapter}", wire.history(forged))
    assert "Zm9yZ2Vk" not in sent
    assert "STATE_FOREIGN" in noted
    # A label alone is no state.
    sent, _ = await scene.sent(wire, f"a-{wire.adapter}", wire.history([label_of(state) for state in states]))
    assert [*found_states(msgspec.json.decode(sent))] == []


async def test_a_stored_response_keeps_the_labels_of_its_state(scene: Scene) -> None:
    wire = WIRES["openai_responses"]
    asked = {"input": "Weather?", "include": ["reasoning.encrypted_content"], "store": True}
    stored = msgspec.json.decode(await scene.post(wire, "a-openai_responses", asked))
    output = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    body = {"previous_response_id": stored["id"], "input": [output]}
    sent, noted = await scene.sent(wire, "a-openai_responses", body)
    assert carried(sent) == [STATES[0], STATES[1]]
    assert noted == []
    sent, noted = await scene.sent(wire, "key-openai_responses", body)
    assert carried(sent) == []
    assert "STATE_FOREIGN" in noted
