"""docs/dialects/openai_completions.md says of every field of a request what the dialect does with it."""

import re
from typing import Any, Final

import pytest

from adapters.openai_completions.client.decode import decode
from adapters.openai_completions.table import FIELDS, CompletionFields
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.dialects.document import Document
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "openai_completions.md").read_text(encoding="utf-8")
ROWS: Final = dict(re.findall(r"^\| `(\w+)` \| (honoured|refused) \|", PAGE, re.M))
BASE: Final[dict[str, Any]] = {"model": "m", "prompt": "Hello"}
# A value of each field that asks for something, and is not the default.
VALUES: Final[dict[str, Any]] = {
    "model": "other",
    "prompt": "Bye",
    "max_tokens": 7,
    "temperature": 0.5,
    "top_p": 0.5,
    "stop": "x",
    "seed": 7,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "stream": True,
    "stream_options": {"include_usage": True},
    "user": "u",
    "n": 2,
    "best_of": 2,
    "suffix": "x",
    "echo": True,
    "logprobs": 0,
    "logit_bias": {"1": 1},
}


def read(**fields: Any) -> Conversation:
    return decode(Document({**BASE, **fields}))


def test_every_field_has_a_row() -> None:
    assert ROWS.keys() == set(CompletionFields.__struct_fields__) == VALUES.keys()
    assert {field for field, handling in ROWS.items() if handling == "refused"} == FIELDS.reasons.keys()


@pytest.mark.parametrize("field", [field for field in ROWS if ROWS[field] == "honoured"])
def test_an_honoured_field_changes_the_conversation(field: str) -> None:
    conversation = read(**{field: VALUES[field]})
    assert conversation.notices == ()
    assert conversation != read()


@pytest.mark.parametrize("field", FIELDS.reasons)
def test_a_refused_field_is_a_400_that_names_it(field: str) -> None:
    with pytest.raises(Unsupported) as caught:
        read(**{field: VALUES[field]})
    assert (caught.value.status, caught.value.param) == (400, field)


@pytest.mark.parametrize(
    ("field", "value"),
    [("n", 1), ("best_of", 1), ("suffix", ""), ("echo", False), ("logprobs", None), ("logit_bias", {}), ("n", None)],
)
def test_a_refused_field_that_asks_for_nothing_is_read(field: str, value: Any) -> None:
    assert read(**{field: value}) == read()


@pytest.mark.parametrize("prompt", [[], ["a", "b"], [1, 2], [[1, 2]], None, 3, {"x": 1}])
def test_a_prompt_that_is_not_one_text_is_refused(prompt: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(prompt=prompt)
    assert (caught.value.status, caught.value.param) == (400, "prompt")


def test_a_list_of_one_text_is_that_text() -> None:
    assert read(prompt=["Hello"]) == read()


def test_the_limit_of_the_api_applies() -> None:
    conversation = read()
    assert (conversation.sampling.max_tokens, conversation.params["max_tokens"]) == (16, 16)


def test_fields_that_need_messages_are_dropped_with_a_notice() -> None:
    names = set(re.findall(r"`(\w+)`", PAGE.partition("only beside messages (")[2].partition(")")[0]))
    for name in names:
        (notice,) = read(**{name: [1]} if name != "max_completion_tokens" else {name: 5}).notices
        assert (notice.rule, notice.level) == ("FIELD_NOT_SENT", "warning") and repr(name) in notice.detail
    assert len(names) == 7
