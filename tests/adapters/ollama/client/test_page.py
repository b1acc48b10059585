"""docs/dialects/ollama.md says of every field of a request what the dialect does with it."""

import re
from typing import Any, Final

import msgspec
import pytest

from adapters.ollama.client.dialect import OllamaDialect
from adapters.ollama.table import FIELDS, ChatFields, GenerateFields, OllamaOptions
from gateway.core.errors import InvalidRequest
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects.document import Document
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "ollama.md").read_text(encoding="utf-8")
ROWS: Final = dict(re.findall(r"^\| `([\w.]+)` \| (honoured|reported|refused) \|", PAGE, re.M))
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CHAT: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
GENERATE: Final[dict[str, Any]] = {"model": "m", "prompt": "Hello"}
TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {}}}
# A value of each field that asks for something, and is not the default.
VALUES: Final[dict[str, Any]] = {
    "model": "other",
    "messages": [{"role": "user", "content": "Bye"}],
    "tools": [TOOL],
    "stream": False,
    "format": "json",
    "think": "high",
    "options": {"seed": 7},
    "keep_alive": "5m",
    "truncate": True,
    "shift": True,
    "logprobs": True,
    "top_logprobs": 2,
    "_debug_render_only": True,
    "prompt": "Bye",
    "system": "Be brief.",
    "images": [PIXEL],
    "suffix": "x",
    "template": "{{ .Prompt }}",
    "raw": True,
    "context": [1],
    "width": 64,
    "height": 64,
    "steps": 4,
    "options.temperature": 0.5,
    "options.top_p": 0.5,
    "options.top_k": 4,
    "options.min_p": 0.5,
    "options.seed": 7,
    "options.num_predict": 7,
    "options.stop": ["x"],
    "options.repeat_penalty": 1.5,
    "options.frequency_penalty": 0.5,
    "options.presence_penalty": 0.5,
    "options.num_ctx": 4096,
}
CHAT_FIELDS: Final = {"messages", *ChatFields.__struct_encode_fields__}
# Each field with a request that may have it.
CASES: Final = [(field, CHAT if field.partition(".")[0] in CHAT_FIELDS else GENERATE) for field in ROWS]


def decode(fields: dict[str, Any]) -> ClientRequest:
    path = "/api/chat" if "messages" in fields else "/api/generate"
    return OllamaDialect().decode(Document(fields), RequestHead(path))


def with_field(base: dict[str, Any], field: str) -> dict[str, Any]:
    name, _, option = field.partition(".")
    return {**base, name: {option: VALUES[field]} if option else VALUES[field]}


def test_every_field_has_a_row() -> None:
    fields = CHAT_FIELDS | set(GenerateFields.__struct_encode_fields__)
    options = {f"options.{name}" for name in OllamaOptions.__struct_encode_fields__}
    assert ROWS.keys() == fields | options | {"options.num_ctx"} == VALUES.keys()


def test_the_page_says_what_the_tables_say() -> None:
    refused = {name for section in FIELDS.values() for name in section.reasons}
    reported = {name for section in FIELDS.values() for name in section.reported}
    assert {field for field, handling in ROWS.items() if handling == "refused"} == refused
    assert {field for field, handling in ROWS.items() if handling == "reported"} == reported | {"options.num_ctx"}


@pytest.mark.parametrize(("field", "base"), [case for case in CASES if ROWS[case[0]] == "honoured"])
def test_an_honoured_field_changes_the_conversation(field: str, base: dict[str, Any]) -> None:
    request = decode(with_field(base, field))
    assert request.conversation.notices == ()
    assert request.conversation != decode(base).conversation


@pytest.mark.parametrize(("field", "base"), [case for case in CASES if ROWS[case[0]] == "reported"])
def test_a_reported_field_changes_nothing_and_is_named(field: str, base: dict[str, Any]) -> None:
    conversation = decode(with_field(base, field)).conversation
    (notice,) = conversation.notices
    assert (notice.stage, notice.action, notice.rule) == ("decode", "dropped", "FIELD_NOT_SENT")
    assert repr(field) in notice.detail
    assert msgspec.structs.replace(conversation, notices=()) == decode(base).conversation


@pytest.mark.parametrize(("field", "base"), [case for case in CASES if ROWS[case[0]] == "refused"])
def test_a_refused_field_is_a_400_that_names_it(field: str, base: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(with_field(base, field))
    assert (caught.value.status, caught.value.param) == (400, field)
    assert caught.value.message.startswith(field)


def test_a_field_that_is_not_listed_is_reported() -> None:
    (notice,) = decode({**CHAT, "mystery": 1}).conversation.notices
    assert "'mystery'" in notice.detail
    (notice,) = decode({**GENERATE, "tools": [TOOL]}).conversation.notices
    assert "'tools'" in notice.detail


def test_the_page_names_every_refused_route() -> None:
    sentence = PAGE.partition("Not served, a 501: ")[2].partition("\n\n")[0]
    refused = {route.path for route in OllamaDialect.routes if route.kind == "refused"}
    assert set(re.findall(r"`(/[^`]+)`", sentence)) == refused
