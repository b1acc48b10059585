"""What the items that change the answers behind them are decoded to.

The forms are those of OpenAI's SDK (`ResponseConfigurationUpdateItemParam`).
"""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Directive, EffortChange, FormatChange
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.directives import in_force
from tests.adapters.openai_responses.client.requests import read, refused
from tests.test_stable_prefix import ADAPTERS

USER: Final[dict[str, Any]] = {"role": "user", "content": "Hi"}
SAID: Final[dict[str, Any]] = {"role": "assistant", "content": "Hm."}
SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"at": {"type": "string"}}}
JSON: Final[dict[str, Any]] = {"type": "json_schema", "name": "place", "schema": SCHEMA}
ASKED: Final[dict[str, Any]] = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}


def update(**fields: Any) -> dict[str, Any]:
    return {"type": "configuration_update", **fields}


@pytest.mark.parametrize(
    ("item", "directives"),
    [
        (update(reasoning={"effort": "low"}), (EffortChange(1, "low"),)),
        (update(id="cu_1", text={"format": JSON}), (FormatChange(1, ASKED, JSON),)),
        (update(text={"format": {"type": "text"}}), (FormatChange(1, None, {"type": "text"}),)),
        (
            update(reasoning={"effort": "xhigh"}, text={"format": {"type": "text"}}),
            (EffortChange(1, "xhigh"), FormatChange(1, None, {"type": "text"})),
        ),
        (update(), ()),
        (update(reasoning=None, text=None), ()),
        (update(reasoning={"effort": None}), ()),
    ],
)
def test_an_update_is_read_as_its_directives(item: dict[str, Any], directives: tuple[Directive, ...]) -> None:
    found = read([USER, item])
    assert found.directives == directives
    assert [notice.rule for notice in found.notices] == []
    assert [turn.role for turn in found.turns] == ["user"]


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (update(reasoning=1), "input[1].reasoning"),
        (update(reasoning={"effort": 1}), "input[1].reasoning.effort"),
        (update(text={"format": {}}), "input[1].text.format.type"),
        (update(text={"format": "json"}), "input[1].text.format"),
    ],
)
def test_an_update_of_a_wrong_form_is_refused_at_its_place(item: dict[str, Any], param: str) -> None:
    assert refused([USER, item]).param == param


@pytest.mark.parametrize(
    "items",
    [
        [update(reasoning={"effort": "low"}), USER],
        [USER, update(reasoning={"effort": "low"})],
        [USER, SAID, update(reasoning={"effort": "low"}), USER],
        [USER, update(reasoning={"effort": "high"}), SAID, update(reasoning={"effort": "low"}), USER],
    ],
)
def test_an_update_holds_for_every_response_behind_it(items: list[Any]) -> None:
    found = read(items)
    state = in_force(found)
    assert state.effort is not None and state.effort.effort == "low"
    (body,) = [json.loads(Exchange(ADAPTERS["chat"], found, Policy()).request.body)]
    plain = read([item for item in items if "role" in item], reasoning={"effort": "low"})
    assert body == json.loads(Exchange(ADAPTERS["chat"], plain, Policy()).request.body)


def test_a_plain_text_takes_the_format_of_the_request_away() -> None:
    found = read([USER, update(text={"format": {"type": "text"}})], text={"format": JSON})
    body = json.loads(Exchange(ADAPTERS["chat"], found, Policy()).request.body)
    assert "response_format" not in body
    changed = read([USER, update(text={"format": JSON})])
    assert json.loads(Exchange(ADAPTERS["chat"], changed, Policy()).request.body)["response_format"] == ASKED


def test_a_backend_of_the_same_api_gets_updates_as_they_are() -> None:
    items = [USER, update(reasoning={"effort": "high"}), SAID, update(id="cu_1", text={"format": JSON}, x=1), USER]
    assert json.loads(Exchange(ADAPTERS["Responses"], read(items), Policy()).request.body)["input"] == items


def test_an_update_that_a_limit_takes_out_is_in_the_fields() -> None:
    items = [USER, SAID, update(reasoning={"effort": "low"}, text={"format": JSON}), USER, SAID, USER, SAID, USER]
    found = read(items, reasoning={"effort": "high", "summary": "auto"})
    exchange = Exchange(ADAPTERS["Responses"], found, Policy(max_history_messages=1))
    body = json.loads(exchange.request.body)
    assert all(item.get("type") != "configuration_update" for item in body["input"])
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["text"] == {"format": JSON}
    assert [notice.index for notice in exchange.notices if notice.rule == "DIRECTIVE_APPLIED"] == [2, 2]
