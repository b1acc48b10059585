"""Law: any body of a request gives an answer of the contract or InvalidRequest, by every adapter and every policy."""

from typing import Any, Final

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.openai.client_errors import encode_error, encode_error_frame
from adapters.openai_chat.client.completion import encode_completion
from adapters.openai_chat.client.decode import decode
from adapters.openai_chat.client.request_models import ChatCompletionRequest
from adapters.openai_chat.client.stream import ChatStreamEncoder
from gateway.core.answer import read_answer
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.events import Event
from gateway.core.policy import Policy
from gateway.diagnostics.explain import explain
from gateway.diagnostics.lint import FORMATS, lint
from gateway.exchange import Exchange
from tests.fuzz.exchanges import ADAPTERS, LABEL, POLICIES, WIRES
from tests.fuzz.strategies import FIELDS, WILD, bodies, encoded, requests


def _read(body: bytes) -> Conversation | None:
    try:
        return decode(body)
    except InvalidRequest as error:
        assert 400 <= error.status < 500
        assert encode_error(error).body
        return None


@given(body=bodies())
@example(b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}')
@example(b'{"model":"m","messages":[{"role":"user","content":"x"}],"seed":' + b"9" * 5000 + b"}")
def test_any_body_is_a_conversation_or_an_invalid_request(body: bytes) -> None:
    conversation = _read(body)
    if conversation is not None:
        # What stands in it can be written again, whatever it is.
        assert msgspec.json.encode(conversation)


SOUND: Final = requests().map(encoded)


@given(body=SOUND | SOUND | bodies(), policy=POLICIES, name=st.sampled_from(list(ADAPTERS)), wire=WIRES)
def test_any_body_goes_all_the_way_or_is_refused(body: bytes, policy: Policy, name: str, wire: bytes) -> None:
    conversation = _read(body)
    if conversation is None:
        return
    try:
        exchange = Exchange(ADAPTERS[name], conversation, policy, label=LABEL)
    except InvalidRequest as error:
        assert 400 <= error.status < 500
        return
    for notice in exchange.notices:
        assert msgspec.json.encode(notice)
    assert ADAPTERS[name].describe(exchange.request.body) is not None
    _answer(exchange, wire)


def _answer(exchange: Exchange, wire: bytes) -> None:
    """Play any bytes as the backend's answer, and write what came for the client, both ways."""
    written = ChatStreamEncoder("id", 0, "model", include_usage=True, diagnostics=True)
    events: list[Event] = []
    try:
        for piece in (wire[:7], wire[7:]):
            if not exchange.done:
                events += exchange.feed(piece)
        events += exchange.close()
    except BackendError as error:
        assert encode_error_frame(error).startswith(b"data: ")
        written.feed(events)
        return
    written.feed(events)
    if exchange.finished:
        assert written.close().endswith(b"data: [DONE]\n\n")
        assert encode_completion(read_answer(events), id="id", created=0, model="model", diagnostics=True)


@given(body=SOUND | bodies(), policy=POLICIES, name=st.sampled_from(list(ADAPTERS)))
def test_any_conversation_can_be_explained(body: bytes, policy: Policy, name: str) -> None:
    conversation = _read(body)
    if conversation is not None:
        assert msgspec.json.encode(explain(conversation, policy, ADAPTERS[name], "backend"))


@given(body=bodies(), form=st.sampled_from(list(FORMATS)))
def test_any_file_can_be_linted_or_is_refused(body: bytes, form: str) -> None:
    try:
        findings = lint("file", body)
    except InvalidRequest:
        return
    FORMATS[form](findings).encode()


# Any: a header's value is text here, and nothing else is promised.
HEADERS: Final[st.SearchStrategy[dict[str, Any]]] = st.dictionaries(
    st.sampled_from(["content-type", "retry-after", "retry-after-ms", "x-should-retry"]),
    st.sampled_from(["1", "-1", "1e9", "Fri, 31 Dec 1999 23:59:59 GMT", "application/json", "a\r\nb: c"])
    | st.text(st.characters(max_codepoint=255), max_size=12),
)


@given(
    status=st.integers(100, 599),
    headers=HEADERS,
    body=WILD.map(encoded) | st.binary(max_size=60),
    name=st.sampled_from(list(ADAPTERS)),
)
def test_any_refusal_of_a_backend_is_an_error_for_the_client(
    status: int, headers: dict[str, str], body: bytes, name: str
) -> None:
    error = ADAPTERS[name].decode_error(status, headers, body)
    assert 400 <= error.status < 600
    assert encode_error(error).body
    for value in error.headers.values():
        assert "\r" not in value and "\n" not in value


def test_every_field_of_the_envelope_is_drawn() -> None:
    assert {"model", "messages", *FIELDS} == set(ChatCompletionRequest.__struct_fields__)
