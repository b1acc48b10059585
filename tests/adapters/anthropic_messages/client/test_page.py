"""The page of the dialect says of every field, block and tool what the code does."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from adapters.anthropic_messages.client.client_tools import client_tool
from adapters.anthropic_messages.client.content import BLOCK_TYPES
from adapters.anthropic_messages.client.decode import decode_document
from adapters.anthropic_messages.client.routes import ROUTES
from adapters.anthropic_messages.table import MessagesFields
from gateway.adapter import Capabilities
from gateway.capabilities.request_fields import check_capabilities
from gateway.core.errors import Unsupported
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from tests.adapters.anthropic_messages.client.requests import conversation
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "dialects" / "anthropic_messages.md").read_text(encoding="utf-8")

# A value of every field on the page that is not one of `request` itself.
VALUES: Final[Mapping[str, Any]] = {
    "system": "You are brief.",
    "stream": True,
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 40,
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_config": {"effort": "low"},
    "output_format": {"type": "json_schema", "schema": {"type": "object"}},
    "metadata": {"user_id": "u"},
    "thread": {"type": "create"},
    "compaction": {"type": "summarize"},
    "mcp_servers": [{"type": "url", "url": "https://localhost"}],
    "container": "container_1",
    "cache_control": {"type": "ephemeral"},
    "context_management": {"edits": []},
    "service_tier": "auto",
    "inference_geo": "eu",
    "any other": True,
}


def rows(section: str) -> dict[str, str]:
    """The second cell of each row of a section, by the name in its first one."""
    table = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (?:`([^`]+)`|(any other))(?: or none)? \| ([^|]+) \|", table, re.M)
    return {name or other: cell for name, other, cell in found}


FIELDS: Final = rows("Fields") | {"any other": re.findall(r"^Any other field is (\w+)", PAGE, re.M)[0]}


def with_outcome(*outcomes: str) -> list[str]:
    return sorted(name for name, outcome in FIELDS.items() if outcome in outcomes)


def test_every_field_has_a_row() -> None:
    assert {*MessagesFields.__struct_fields__, "messages", "any other"} <= FIELDS.keys()
    assert set(FIELDS.values()) == {"honoured", "emulated", "reported", "refused"}
    assert VALUES.keys() | {"model", "max_tokens", "messages"} == FIELDS.keys()


@pytest.mark.parametrize("name", with_outcome("refused"))
def test_a_refused_field_is_a_400_that_names_it_unless_the_backend_has_this_api(name: str) -> None:
    asked = conversation(**{name: VALUES[name]})
    with pytest.raises(Unsupported) as caught:
        check_capabilities(asked, Capabilities())
    assert (caught.value.status, caught.value.param) == (400, name)
    assert check_capabilities(asked, Capabilities(passthrough="anthropic_messages")) == []


@pytest.mark.parametrize("name", with_outcome("reported"))
def test_a_reported_field_yields_a_notice_that_names_it(name: str) -> None:
    (notice,) = conversation(**{name: VALUES[name]}).notices
    assert (notice.stage, notice.action, notice.rule) == ("decode", "dropped", "FIELD_NOT_SENT")
    assert name in notice.detail


@pytest.mark.parametrize("name", sorted({*with_outcome("honoured", "emulated")} & VALUES.keys() - {"compaction"}))
def test_a_field_that_has_an_effect_changes_the_conversation(name: str) -> None:
    plain, asked = conversation(), conversation(**{name: VALUES[name]})
    assert [notice.rule for notice in asked.notices if notice.action == "dropped"] == []
    keys = ("turns", "tools", "tool_choice", "params", "stream", "sampling")
    assert [key for key in keys if getattr(asked, key) != getattr(plain, key)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("compaction", VALUES["compaction"]), ("context_management", {"edits": [{"type": "compact_20260112"}]})],
)
def test_a_compaction_is_asked_for_in_two_ways(name: str, value: Any) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], name: value}
    request = decode_document(Document(body), RequestHead("/v1/messages"))
    assert request.compacts is not None and request.conversation.notices == ()


def test_the_blocks_of_the_page_are_those_that_are_read() -> None:
    assert rows("Content blocks").keys() - {"any other"} == set(BLOCK_TYPES)


def test_the_tools_of_the_page_are_those_that_the_client_runs() -> None:
    families = {name.removesuffix("_*") for name in rows("Tools") if name.endswith("_*")}
    assert all(client_tool(f"{family}_20250124") for family in families)
    assert len(families) == 4
    assert client_tool("web_search_20250305") is client_tool("bash") is client_tool("custom") is None


def test_the_page_names_every_route() -> None:
    routes = PAGE.partition("## Routes\n")[2].partition("\n## ")[0]
    for route in ROUTES:
        stem = route.path.partition("/{")[0]
        assert stem in routes or (route.kind == "refused" and stem.rpartition("/")[2] in routes.lower()), route.path
