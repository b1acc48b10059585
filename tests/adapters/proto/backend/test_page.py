"""docs/proto-backends.md: its tables list what the code has."""

import json
import re
from typing import Final, get_args

import pytest

from adapters.proto.backend.carriers import CARRIERS
from adapters.proto.backend.options import CallRule, ErrorRule, FinishRule, ProtoOptions, ReadRule, StartRule, UsageRule
from adapters.proto.backend.rpc_status import STATUSES, grpc_error
from adapters.proto.backend.template_keys import KEYS
from adapters.proto.backend.template_names import STRUCTURED, TEXT
from gateway.settings.descriptor_files import DescriptorFiles
from tests.adapters.proto.backend.mappings import LISTS, TALK
from tests.adapters.proto.backend.test_mistakes import refusal, rule
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "proto-backends.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> list[str]:
    """The first cells of the table whose first heading this is."""
    (table,) = re.findall(rf"^\| {heading} \|.*\n\| ---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [row.split("|")[1].strip() for row in table.splitlines()]


def names(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("`carrier`", [*CARRIERS]),
        ("`ends`", [*get_args(ProtoOptions.__annotations__["ends"])]),
        ("form", [f'"{key}"' for key in KEYS]),
    ],
)
def test_a_table_lists_what_there_is(heading: str, known: list[str]) -> None:
    assert names(" ".join(first_cells(heading))) == set(known)


def test_the_table_of_rules_lists_every_key() -> None:
    assert {cell.strip("`") for cell in first_cells("key")} == set(ReadRule.__struct_fields__)
    for kind in (CallRule, FinishRule, UsageRule, ErrorRule, StartRule):
        assert {f for f in kind.__struct_fields__ if f"`{f}`" not in PAGE} == set()


def test_the_names_of_a_template_are_on_the_page() -> None:
    turns = STRUCTURED.items["$turns"]
    scopes = [STRUCTURED, TEXT, *turns.scopes.values()]
    scopes += [
        scope for turn in turns.scopes.values() for item in turn.items.values() for scope in item.scopes.values()
    ]
    known = {name for scope in scopes for name in scope.names()}
    text_names = {"$prompt", "$system", "$transcript", "$schema"}
    assert {name for name in known - text_names if f"`{name}`" not in PAGE} == set()
    assert "`$prompt`" in PAGE and "`$transcript`" in PAGE


def test_the_template_of_several_messages_is_that_of_a_service_which_is_tested() -> None:
    (written,) = re.findall(r"```json\n(\{\n  \"\$each\": .+?)```", PAGE, re.DOTALL)
    assert json.loads(written) == LISTS["request"]["messages"]


def test_the_files_of_a_schema_are_on_the_page() -> None:
    assert {name for name in DescriptorFiles.__struct_fields__ if f'"{name}"' not in PAGE} == set()


def test_each_status_is_in_the_row_of_its_error() -> None:
    (table,) = re.findall(r"^\| status \| client receives \|\n\| ---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    listed: set[int] = set()
    for row in table.splitlines():
        _, codes, received, _ = row.split("|")
        for code in map(int, re.findall(r"\d+", codes)):
            error = grpc_error({"grpc-status": str(code)})
            assert error is not None and error.status == int(received.split(",")[0].split()[0]), code
            assert error.code in (*names(received), "invalid_value")
            listed.add(code)
    assert listed == set(STATUSES)


def test_the_error_on_the_page_is_the_one_that_is_raised() -> None:
    (told,) = re.findall(r"nearest name: `(.+?)`\.?$", PAGE, re.MULTILINE)
    wrong = rule(TALK, 1, text="sofar")
    assert told == refusal({**wrong, "read": wrong["read"][1:]})
