"""Tests the fields of backend entries, and the backend of each model name."""

from collections.abc import Mapping
from uuid import UUID

import msgspec
import pytest

from gateway.adapter import BackendRequest
from gateway.core.conversation import NO_REQUEST, Conversation, Json, Text, Turn
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.core.policy import Policy
from gateway.server.upstream.backends import Backend, Backends
from gateway.server.upstream.http1.request_head import Lines
from gateway.settings import read_settings
from gateway.testing.gateway import hello, running_gateway

PLAIN = "tests.server.plain:PlainAdapter"


def backends(entry: dict[str, Json], models: dict[str, Json] | None = None) -> Backends:
    complete: Json = {"adapter": PLAIN, "base_url": "http://127.0.0.1:1", **entry}
    return Backends(read_settings({"backends": {"b": complete}, "models": models or {}}))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"adapter": "plain"}, "there is no adapter 'plain' (a class is written module:Class); there are"),
        ({"adapter": "plain"}, "'openai_chat', 'openai_responses', 'proto', 'text', 'warp'"),
        ({"adapter": "openai"}, "; did you mean 'openai_chat'?"),
        ({"adapter": "no.such.module:X"}, "cannot be imported"),
        ({"adapter": "tests.server.plain:Plan"}, "there is no 'Plan'"),
        ({"adapter": "tests.server.plain:PlainDecoder"}, "is not an adapter"),
        ({"pth": "/x"}, "unknown setting 'backends.b.pth'; did you mean 'path'?"),
        ({"base_ulr": "/x"}, "did you mean 'base_url'?"),
        ({"path": 7}, "backends.b.path"),
        ({"base_url": "ftp://x"}, "must begin with http:// or https://"),
        ({"base_url": "http://"}, "name a host"),
        ({"base_url": "http://me:secret@x"}, "must not contain a credential"),
        ({"base_url": "http://x/v1?key=secret"}, "must not contain a query or a fragment"),
        ({"base_url": "http://[::1"}, "base_url must name a host that can be looked up and a port up to 65535"),
        ({"base_url": "http://[x]"}, "base_url must name a host that can be looked up and a port up to 65535"),
        ({"base_url": "http://x:port"}, "must name a host that can be looked up and a port"),
        ({"headers": {"x-team": "blue\r\nx-key: secret"}}, "'x-team'"),
        ({"headers": {"content-length": "1"}}, "'content-length'"),
        ({"api_key_header": "x key"}, "backends.b.api_key_header: 'x key' is not a header name that can be set"),
        *[
            ({"api_key_header": name}, f"backends.b.api_key_header: {name!r} is a header that the gateway sets")
            for name in ("content-type", "Accept", "host", "connection", "grpc-timeout", "connect-protocol-version")
        ],
        *[
            ({"api_key_header": name}, f"backends.b.api_key_header: {name!r} is not a header name that can be set")
            for name in ("content-length", "Transfer-Encoding", "te")
        ],
        ({"api_key_header": "x-key-Bin"}, "backends.b.api_key_header: 'x-key-Bin' is binary metadata of gRPC"),
        ({"base_url": "demo:none"}, "'demo:messages', 'demo:responses', 'demo:gemini', 'demo:text' and 'demo:grpc'"),
        ({"base_url": "demo:none?defect=no_done"}, "the demo backends are 'demo:agent'"),
        (
            {"base_url": "demo:chat?defect=none"},
            "the demo backend 'chat' has no defect 'none'; it has wrong_key_accepted,",
        ),
        ({"base_url": "demo:none?key=required"}, "the demo backends are 'demo:agent'"),
        ({"base_url": "demo:text?defect=no_done"}, "the demo backend 'text' has no defect 'no_done'"),
        ({"api_key_env": "NO_SUCH_VARIABLE_HERE"}, "NO_SUCH_VARIABLE_HERE"),
    ],
)
def test_wrong_entries_are_named(entry: dict[str, Json], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        backends(entry)
    assert said in caught.value.message
    assert "secret" not in caught.value.message


def http1_head(backend: Backend, request: BackendRequest, credential: Mapping[str, str]) -> Lines:
    head = backend.head(request, credential)
    assert isinstance(head, Lines)
    return head


def test_addresses_and_headers() -> None:
    entry: dict[str, Json] = {"base_url": "http://host/v1/", "headers": {"X-Team": "blue"}}
    _, backend = backends(entry, {"m": {"backend": "b"}}).route("m")
    assert str(backend.url("/chat")) == "http://host/v1/chat"
    assert backend.url("/chat") is backend.url("/chat")
    request = BackendRequest("/chat", {"accept": "a", "x-team": "red"}, b"", ())
    head = http1_head(backend, request, {"authorization": "k"})
    assert head.text.startswith(b"POST /v1/chat HTTP/1.1\r\nhost: host\r\nuser-agent: dragoman/")
    assert head.text.endswith(b"accept: a\r\nx-team: blue\r\nauthorization: k\r\ncontent-length: ")


def test_a_head_is_built_once_and_never_for_another_request_or_credential() -> None:
    _, backend = backends({"base_url": "http://host"}, {"m": {"backend": "b"}}).route("m")
    own, key = {"accept": "a"}, {"authorization": "secret-1"}
    asked = BackendRequest("/chat", own, b"one", ())
    head = http1_head(backend, asked, key)
    assert http1_head(backend, msgspec.structs.replace(asked, body=b"two", headers=dict(own)), dict(key)) is head
    for other in (
        BackendRequest("/other", own, b"", ()),
        BackendRequest("/chat", own, b"", (), method="GET"),
        *[BackendRequest("/chat", {**own, "x-number": str(number)}, b"", ()) for number in range(20)],
    ):
        text = http1_head(backend, other, key).text
        assert text.startswith(f"{other.method} {other.path} HTTP/1.1\r\n".encode())
        assert all(f"\r\n{name}: {value}\r\n".encode() in text for name, value in other.headers.items())
    # What a head was made of may be changed later, in place even.
    own["accept"] = "c"
    assert b"accept: c\r\n" in http1_head(backend, asked, key).text
    key["authorization"] = "secret-2"
    renewed = http1_head(backend, asked, key)
    assert b"secret-2" in renewed.text and b"secret-1" not in renewed.text
    assert "secret" not in repr(renewed)


def test_only_a_backend_whose_requests_hold_an_id_gets_a_new_one_for_each() -> None:
    asked = Conversation((Turn("user", (Text("Hi"),)),))
    models: dict[str, Json] = {"m": {"backend": "b"}}
    assert backends({}, models).route("m")[1].with_request_id(asked) is asked
    request: Json = {"id": "$request_id", "prompt": "$prompt"}
    wire: Json = {"path": "/x", "request": request, "framing": "text", "ends": "close"}
    _, backend = backends({"adapter": "text", "wire": wire}, models).route("m")
    sent = [backend.adapter.encode(backend.with_request_id(asked), Policy()).body for _ in range(3)]
    ids = [UUID(msgspec.json.decode(body)["id"]) for body in sent]
    assert len({*ids}) == 3 and {one.version for one in ids} == {4}
    assert msgspec.json.decode(backend.adapter.encode(asked, Policy()).body)["id"] == NO_REQUEST


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("m", "exact"),
        ("claude-haiku-5", "exact haiku"),
        ("claude-haiku-6", "long pattern"),
        ("claude-haiku-", "long pattern"),
        ("claude-opus", "short pattern"),
        ("my-claude-opus", None),
        ("CLAUDE-opus", None),
        ("other", None),
    ],
)
def test_models_are_routed_by_name_then_by_the_longest_pattern(model: str, name: str | None) -> None:
    entries: dict[str, Json] = {
        "*": {"backend": "b"},
        "claude-*": {"backend": "b", "name": "short pattern"},
        "claude-haiku-*": {"backend": "b", "name": "long pattern"},
        "m": {"backend": "b", "name": "exact"},
        "claude-haiku-5": {"backend": "b", "name": "exact haiku"},
    }
    known = backends({}, entries)
    assert known.route(model)[0].name == name
    assert known.models == ("m", "claude-haiku-5")


def test_a_name_that_fits_no_pattern_is_unknown() -> None:
    with pytest.raises(InvalidRequest) as caught:
        backends({}, {"claude-*": {"backend": "b"}}).route("gpt")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


def test_long_unknown_names_are_shortened() -> None:
    with pytest.raises(InvalidRequest) as caught:
        backends({}, {"m": {"backend": "b"}}).route("x" * 100_000)
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("kind", ["agent", "chat"])
async def test_demo_backends_run_inside_the_gateway(kind: str) -> None:
    adapter = {"agent": "adapters.warp.backend:WarpAdapter", "chat": "adapters.openai_chat.backend:OpenAIChatAdapter"}[
        kind
    ]
    settings: dict[str, Json] = {
        "backends": {"d": {"adapter": adapter, "base_url": f"demo:{kind}"}},
        "models": {"m": {"backend": "d"}},
    }
    async with running_gateway(settings) as gateway:
        whole = await gateway.chat()
        assert whole.json()["choices"][0]["message"]["content"]
        streamed = await gateway.client.post("/v1/chat/completions", json={**hello(), "stream": True})
        assert streamed.text.endswith("data: [DONE]\n\n")
