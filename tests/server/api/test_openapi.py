"""The published document is complete and matches the responses (`make contract` tests a running gateway)."""

import re
from typing import Any, Final

import msgspec
import pytest

from adapters.openai.client_errors import ErrorBody, encode_error
from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_chat.response_models import ChatCompletion, ChatCompletionChunk
from gateway.core.backend_status import status_error
from gateway.registry import load_dialects
from gateway.server.api.app import create_app
from gateway.server.api.openapi import documented_routes
from gateway.settings import Settings
from gateway.testing.golden import Golden
from gateway.testing.golden_runner import play
from tests.test_golden import EVERY

# Any: an OpenAPI document is untyped.
DOCUMENT: Final[dict[str, Any]] = create_app(Settings()).load_routes().openapi()
OPERATIONS: Final = [(path, way) for path, ways in DOCUMENT["paths"].items() for way in ways.values()]
METHODS: Final = [(path, method) for path, ways in DOCUMENT["paths"].items() for method in ways]
CHATS: Final = [golden for golden in EVERY if golden.scenario.dialect == OpenAIChatDialect.name]


def test_every_route_is_told_and_no_other() -> None:
    shown = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert shown == documented_routes(load_dialects()).keys()


def test_every_reference_leads_somewhere_and_nothing_is_left_over() -> None:
    written = msgspec.json.encode(DOCUMENT).decode()
    named = set(re.findall(r"#/components/schemas/(\w+)", written))
    assert named == DOCUMENT["components"]["schemas"].keys()


@pytest.mark.parametrize(("path", "method"), METHODS)
def test_every_answer_has_a_schema_and_every_failure_the_error_object(path: str, method: str) -> None:
    served = load_dialects().find(method.upper(), path)
    shown = [one for one in (served, *served.marked) if one.route is None or one.route.operation is not None]
    failed = {one.dialect.error_type.__name__ for one in shown}
    for status, answer in DOCUMENT["paths"][path][method]["responses"].items():
        assert answer["content"] and answer["headers"]["x-request-id"]["required"]
        for media_type, content in answer["content"].items():
            assert content["schema"]
            if int(status) >= 400 and path != "/readyz":
                schemas = content["schema"].get("anyOf", [content["schema"]])
                named = {schema["$ref"].rpartition("/")[2] for schema in schemas}
                assert (media_type, named) == ("application/json", failed)


def test_only_the_routes_that_need_no_key_are_without_one() -> None:
    assert DOCUMENT["security"] == [{"bearer": []}]
    open_paths = {path for path, operation in OPERATIONS if operation.get("security") == []}
    assert open_paths == {path for path, way in OPERATIONS if "401" not in way["responses"]} == {"/healthz", "/readyz"}


def test_every_status_that_a_backends_failure_may_get_is_listed() -> None:
    listed = DOCUMENT["paths"]["/v1/chat/completions"]["post"]["responses"].keys()
    assert {str(status_error(status, {}).status) for status in range(100, 600)} <= listed


@pytest.mark.parametrize("golden", CHATS, ids=str)
def test_what_is_answered_is_what_the_document_says(golden: Golden) -> None:
    outcome = play(golden, [golden.wire])
    for event in outcome.stream.split(b"\n\n")[:-1]:
        data = event.removeprefix(b"data: ")
        if data != b"[DONE]":
            msgspec.json.decode(data, type=ErrorBody if data.startswith(b'{"error"') else ChatCompletionChunk)
    if outcome.completion:
        msgspec.json.decode(outcome.completion, type=ChatCompletion)
    if outcome.error is not None:
        msgspec.json.decode(encode_error(outcome.error).body, type=ErrorBody)
