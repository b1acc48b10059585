"""The table of fields in docs/dialects/gemini.md says what the dialect does with every field of a request."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from adapters.gemini.client.dialect import GeminiDialect
from adapters.gemini.client.request_models import GenerateContentRequest
from adapters.gemini.table import (
    FunctionCallingConfig,
    FunctionToolConfig,
    GenerationConfig,
    ThinkingConfig,
)
from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.core.conversation import Conversation
from gateway.core.errors import Unsupported
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "gemini.md").read_text(encoding="utf-8")
ROWS: Final = dict(re.findall(r"^\| `([\w.]+)` \| (honoured|reported|refused) \|", PAGE, re.M))
NESTED: Final[dict[str, type[msgspec.Struct]]] = {
    "": GenerateContentRequest,
    "toolConfig": FunctionToolConfig,
    "toolConfig.functionCallingConfig": FunctionCallingConfig,
    "generationConfig": GenerationConfig,
    "generationConfig.thinkingConfig": ThinkingConfig,
}
# A value of each field that is reported or refused.
VALUES: Final[dict[str, Any]] = {
    "safetySettings": [{"category": "x"}],
    "serviceTier": "flex",
    "cachedContent": "cachedContents/1",
    "continuationToken": "abc",
    "generationConfig.logprobs": 2,
    "generationConfig.mediaResolution": "LOW",
    "generationConfig.responseFormat": [{}],
}
FLAGS: Final = re.compile("enable|audioTimestamp|responseLogprobs|stream|include")


def fields() -> Iterator[str]:
    for place, kind in NESTED.items():
        yield from (f"{place}.{name}".lstrip(".") for name in kind.__struct_encode_fields__)


def asked(path: str) -> Conversation:
    """The conversation of a request with this field."""
    value = VALUES.get(path, True if FLAGS.match(path.rpartition(".")[2]) else {"x": 1})
    for name in reversed(path.split(".")):
        value = {name: value}
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], **value}
    head = RequestHead("/v1beta/models/m:generateContent")
    return GeminiDialect().decode(Document(body), head).conversation


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert set(fields()) == ROWS.keys()


@pytest.mark.parametrize("path", [path for path, how in ROWS.items() if how == "refused"])
def test_a_refused_field_is_an_error_that_names_it_unless_the_backend_has_this_api(path: str) -> None:
    with pytest.raises(Unsupported) as caught:
        check_capabilities(asked(path), Capabilities())
    assert (caught.value.status, caught.value.param) == (400, path)
    assert check_capabilities(asked(path), Capabilities(passthrough="gemini")) == []


@pytest.mark.parametrize(
    "path", [*(path for path, how in ROWS.items() if how == "reported"), "news", "generationConfig.x"]
)
def test_a_reported_field_yields_a_notice_that_names_it(path: str) -> None:
    (notice,) = asked(path).notices
    assert (notice.stage, notice.action, notice.rule) == ("decode", "dropped", "FIELD_NOT_SENT")
    assert repr(path) in notice.detail
    assert not asked(path).params
