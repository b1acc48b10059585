"""No adapter loses a word on thinking: what a client asks for changes the request or is told, and of two efforts that
are sent as one, one is told at least."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.decode import decode_document as decode_messages
from adapters.openai_chat.client.decode import decode_document as decode_chat
from gateway.adapter import Adapter
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.providers.request_rules import EFFORTS
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from tests.tiers import sample

HELLO: Final[Json] = [{"role": "user", "content": "hi"}]
PRESETS: Final = ("demo", "gemini_grpc", "vertex_grpc", "xai", "sglang", "localai")
WIRES: Final[Mapping[str, tuple[str, dict[str, Json]]]] = {
    "chat": ("openai_chat", {}),
    "Responses": ("openai_responses", {}),
    "Messages": ("anthropic_messages", {}),
    "Messages, budget": ("anthropic_messages", {"thinking": "budget"}),
    "Gemini": ("gemini", {}),
    "text": ("text", {"wire": "llama_cpp"}),
    "Warp": ("warp", {"encoding": "structured"}),
    **{preset: ("proto", {"preset": preset}) for preset in PRESETS},
}
# Each is of a model that the wire knows, or of one that nothing is known of.
MODELS: Final = ("m", "gpt-5", "gemini-2.5-pro", "gemini-3-flash")


def load(wire: str) -> Adapter:
    adapter, options = WIRES[wire]
    return load_adapter(adapter, BackendSettings(adapter, "http://host", options=options), 1 << 20)


def sent(adapter: Adapter, model: str, fields: Mapping[str, Any], *, messages: bool = False) -> tuple[bytes, bool]:
    """The body, and whether anything about the fields was told."""
    document = Document({"messages": HELLO, "model": model, "max_tokens": 50_000, **fields})
    decoded = decode_messages(document, RequestHead("")).conversation if messages else decode_chat(document)
    exchange = Exchange(adapter, decoded, Policy())
    told = ("EFFORT_", "FIELD_NOT_SENT", "REQUEST_FIELD_")
    return exchange.request.body, any(notice.rule.startswith(told) for notice in exchange.notices)


@sample()
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wire", WIRES)
def test_each_effort_is_sent_or_told(wire: str, model: str) -> None:
    adapter = load(wire)
    plain, _ = sent(adapter, model, {})
    found = {effort: sent(adapter, model, {"reasoning_effort": effort}) for effort in EFFORTS}
    assert [effort for effort, (body, told) in found.items() if body == plain and not told] == []
    untold = Counter(body for body, told in found.values() if not told)
    assert [effort for effort, (body, told) in found.items() if untold[body] > 1 and not told] == []


@sample()
@pytest.mark.parametrize("kind", ["adaptive", "disabled"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wire", WIRES)
def test_the_thinking_of_a_client_of_messages_is_sent_or_told(wire: str, model: str, kind: str) -> None:
    adapter = load(wire)
    plain, _ = sent(adapter, model, {}, messages=True)
    body, told = sent(adapter, model, {"thinking": {"type": kind}}, messages=True)
    assert body != plain or told
