"""A law over random conversations, candidates and faults: the models are asked in the order of what their plans lose,
the client gets the answer of one of them, each event once and nothing of the others, and all tries have one time
limit."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.requirements import REQUIREMENTS, broken
from gateway.core.tokens import prompt_tokens
from gateway.exchange import Exchange
from gateway.server.api.endpoint import GenerateEndpoint
from gateway.server.api.gateway_state import GatewayState
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk
from tests.server.api.candidate_gateway import ROLE, Play, candidates_gateway, chunks, said, says, sse

PICTURE: Final[Json] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TOOL: Final[Json] = {"type": "function", "function": {"name": "look.up", "parameters": {"type": "object"}}}
WORDS: Final = 3
OVERFLOW: Final = "prompt is too long: 200 tokens > 100 maximum"
PROFILES: Final[dict[str, Json]] = {
    "renaming": {
        "base": "openai",
        "call_id": {"characters": "a-z0-9", "longest": 9},
        "tool_names": {"characters": "a-z0-9"},
    },
    "dropping": {"base": "openai", "reasoning": "drop"},
}
# What the entry of a model has, beside its backend. A text backend loses most.
KINDS: Final[dict[str, dict[str, Json]]] = {
    "plain": {},
    "renaming": {"profile": "renaming"},
    "dropping": {"profile": "dropping"},
    "small": {"context_length": 5},
    "text": {"images": "placeholder"},
    "refusing": {"images": "refuse"},
}
TEXT: Final = ("text", "refusing")
# The faults before an answer begins, with whether another model is asked behind them.
FAULTS: Final[dict[str, bool]] = {
    "429": True,
    "500": True,
    "503": True,
    "overflow": True,
    "closed": True,
    "cut": True,
    "error": True,
    "400": False,
    "404": False,
}
STATUSES: Final = {"429": "429 Too Many Requests", "500": "500 Oh", "503": "503 Oh", "400": "400 Bad", "404": "404 No"}


class Case(msgspec.Struct, frozen=True):
    """`models` are kinds and what becomes of a request there: a fault, `good`, or `broken` behind the first word."""

    models: tuple[tuple[str, str], ...]
    body: dict[str, Any]


def _bodies() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(_body, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["c1", "c.-1"]))


def _body(stream: bool, picture: bool, effort: bool, state: bool, call_id: str) -> dict[str, Any]:
    call: dict[str, Json] = {"id": call_id, "type": "function", "function": {"name": "look.up", "arguments": "{}"}}
    assistant: dict[str, Json] = {"role": "assistant", "content": None, "tool_calls": [call]}
    if state:
        assistant["reasoning_content"] = "I think"
    content: Json = [{"type": "text", "text": "Hello there, what is that?"}, *([PICTURE] if picture else [])]
    messages: list[Json] = [
        {"role": "user", "content": content},
        assistant,
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]
    return {
        "model": "m0",
        "messages": messages,
        "tools": [TOOL],
        "stream": stream,
        **({"reasoning_effort": "high"} if effort else {}),
    }


def _cases() -> st.SearchStrategy[Case]:
    outcome = st.sampled_from([*FAULTS, *FAULTS, "good", "good", "broken"])
    model = st.tuples(st.sampled_from([*KINDS]), outcome)
    return st.builds(Case, st.lists(model, min_size=2, max_size=5).map(tuple), _bodies())


def _words(name: str) -> list[str]:
    return [f"{name}w{at}-" for at in range(WORDS)]


def _text_piece(text: str, *, stop: bool = False) -> bytes:
    return sse({"content": text, "stop": stop, **({"stop_type": "eos"} if stop else {})})


def _play(name: str, kind: str, outcome: str, order: list[str]) -> Play:
    words = _words(name)
    text = kind in TEXT

    async def play(connection: Connection) -> None:
        order.append(name)
        piece = _text_piece if text else said
        stream = json.loads(connection.body).get("stream")
        if outcome in STATUSES or outcome == "overflow":
            message = {"400": "no", "404": f"model {name} not found", "overflow": OVERFLOW}.get(outcome, "no")
            body = json.dumps({"error": {"message": message, "code": None, "type": "x"}}).encode()
            status = STATUSES.get(outcome, "400 Bad")
            await connection.send(answer(status, body, b"content-type: application/json"))
        elif outcome == "closed":
            connection.reset()
        elif not stream and outcome == "good":
            await _whole(connection, words, text=text)
        elif not stream:
            await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")
            connection.reset()
        elif outcome == "cut":
            await connection.send(HEAD, chunk(b": wait\n\n" if text else ROLE))
            connection.reset()
        elif outcome == "error":
            await connection.send(HEAD, chunk(sse({"error": {"message": "busy", "code": 503}})), END)
        elif outcome == "broken":
            await connection.send(HEAD, chunk(piece(words[0])))
            connection.reset()
        else:
            last = _text_piece("", stop=True) if text else said("", "stop") + b"data: [DONE]\n\n"
            await connection.send(HEAD, *[chunk(piece(word)) for word in words], chunk(last), END)

    return play


async def _whole(connection: Connection, words: list[str], *, text: bool) -> None:
    if not text:
        await says(" ".join(words))(connection)
        return
    body = json.dumps({"content": "".join(words), "stop": True, "stop_type": "eos"}).encode()
    await connection.send(answer("200 OK", body, b"content-type: application/json"))


Key = tuple[bool, int, tuple[int, ...], int, int]


def _keys(case: Case, names: list[str], state: GatewayState) -> dict[str, Key]:
    """What each plan loses, in the words of docs/candidates.md; a model that refuses the request has none."""
    conversation = decode(json.dumps(case.body).encode())
    keys: dict[str, Key] = {}
    for at, name in enumerate(names):
        entry, backend = state.backends.route(name)
        asked = msgspec.structs.replace(conversation, model=name)
        window = entry.context_length
        try:
            exchange = Exchange(backend.adapter, asked, entry.policy, None, backend.state_label, window)
        except InvalidRequest:
            continue
        over = window is not None and prompt_tokens(exchange.conversation) > window
        words = {word for notice in exchange.notices for word in broken(notice)}
        lost = [one for one in exchange.notices if broken(one) or one.action in ("dropped", "shortened")]
        keys[name] = (over, len(words), tuple(int(word in words) for word in REQUIREMENTS), len(lost), at)
    return keys


def _expected(case: Case, names: list[str], keys: Mapping[str, Key], state: GatewayState) -> tuple[list[str], str]:
    """The models that are asked, in order, and what becomes of the last one."""
    current = names[0]
    if current not in keys:
        return [], "refused"
    asked = [current]
    while True:
        outcome = case.models[names.index(current)][1]
        # A whole answer has not begun before its end.
        before = FAULTS.get(outcome, outcome == "broken" and not case.body["stream"])
        if outcome == "good" or not before:
            return asked, outcome
        left = [name for name in keys if name not in asked]
        if outcome == "overflow":
            window = state.backends.route(current)[0].context_length
            left = [name for name in left if _is_longer(state.backends.route(name)[0].context_length, window)]
        if not left or len(asked) == 3:
            return asked, "failed"
        current = min(left, key=lambda name: keys[name])
        asked.append(current)


def _is_longer(window: int | None, other: int | None) -> bool:
    return window is None or other is None or window > other


async def _run(case: Case, limits: list[float]) -> None:
    names = [f"m{at}" for at in range(len(case.models))]
    order: list[str] = []
    plays = {name: _play(name, *case.models[at], order) for at, name in enumerate(names)}
    models = {name: KINDS[kind] for name, (kind, _) in zip(names, case.models, strict=True)}
    text: dict[str, Json] = {"adapter": "text", "wire": "llama_cpp"}
    backends = {name: text for name, (kind, _) in zip(names, case.models, strict=True) if kind in TEXT}
    profiles: Json = PROFILES
    async with candidates_gateway(plays, models=models, backends=backends, profiles=profiles) as (gateway, running):
        state = gateway.app.gateway_state
        keys = _keys(case, names, state)
        expected, outcome = _expected(case, names, keys, state)
        limits.clear()
        response = await gateway.client.post("/v1/chat/completions", json=case.body)
        sent = {name: len(backend.seen) for name, backend in running.items()}
    assert order == expected, (keys, response.text)
    assert sent == {name: int(name in expected) for name in names}
    assert len({*limits}) <= 1 and len(limits) == len(expected)
    _check_answer(response.status_code, response.text, case, outcome, expected)


def _check_answer(status: int, got: str, case: Case, outcome: str, asked: list[str]) -> None:
    begun = outcome == "broken" and case.body["stream"]
    words = _words(asked[-1]) if asked else []
    shown = words if outcome == "good" else words[:1] if begun else []
    assert (status == 200) == (outcome == "good" or begun), got
    if status == 200 and case.body["stream"]:
        choices = [choice for one in chunks(got) for choice in one.get("choices", ())]
        deltas = [choice["delta"] for choice in choices]
        assert [delta["content"] for delta in deltas if delta.get("content")] == shown
        assert len([delta for delta in deltas if "role" in delta]) == 1
        assert len({one["id"] for one in chunks(got) if "id" in one}) == 1
        assert (
            len([choice for choice in choices if choice["finish_reason"] is not None])
            == got.count("[DONE]")
            == int(outcome == "good")
        )
    elif status == 200:
        assert json.loads(got)["choices"][0]["message"]["content"] == "".join(shown)


def _recording(limits: list[float], send: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    def record(self: GenerateEndpoint, context: Any, backend: Any, request: Any, deadlines: Any, *rest: Any) -> Any:
        limits.append(deadlines.total_due)
        sent: Awaitable[Any] = send(self, context, backend, request, deadlines, *rest)
        return sent

    return record


@given(_cases())
def test_the_models_are_asked_in_the_order_of_their_losses_and_one_of_them_answers(case: Case) -> None:
    limits: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GenerateEndpoint, "_send", _recording(limits, GenerateEndpoint._send))
        asyncio.run(_run(case, limits))
