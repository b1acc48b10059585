"""The tables on the page of promises are those of the tests."""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import pytest

from gateway.demo.faults.kinds import FAILURES, GRPC_FAILURES
from gateway.demo.faults.kinds import ODDITIES as KINDS
from tests.paths import ROOT
from tests.promises.table import GRPC_PROMISES, PROMISES, Promise
from tests.promises.test_oddities import ODDITIES, Oddity

PAGE: Final = ROOT / "docs" / "promises.md"

# The closed list of what else can go wrong: the client's doing, the operator's, the machine's, our own.
OTHERS: Final = (
    *("client_leaves", "slow_reader", "body_too_large", "bad_json", "media_type", "compressed_body"),
    *("bad_key", "unknown_path", "budget", "budget_store"),
    *(
        "framing_games",
        "slow_head",
        "slow_body",
        "socket_doors",
        "socket_frames",
        "socket_events",
        "socket_cut",
        "socket_end",
        "socket_steer",
        "many_idle",
        "overload",
        "many_streams",
        "descriptors",
        "for_long",
        "tool_call",
    ),
    *("stop", "bad_settings", "reload", "log_full", "collector", "clock", "store", "answer_store", "leaked_id"),
    *("worker_killed", "supervisor_killed", "all_killed", "backend_killed", "store_killed", "bug", "memory"),
    "loop",
)


def _faults(promises: Iterable[Promise], kinds: Mapping[str, str]) -> str:
    rows = ["| id | what the backend does | before the first text, and whole | after it |", "|---|---|---|---|"]
    return "\n".join([*rows, *(_fault(row, kinds[row.id]) for row in promises)])


def _fault(row: Promise, does: str) -> str:
    code = "with the backend's code" if row.early.code == "its_code" else f"`{row.early.code}`"
    early = f"{row.early.status} {code}"
    if row.early.type != "upstream_error":
        early += f" ({row.early.type})"
    early += "".join(f"; `{name}: {value}`" for name, value in row.early.headers.items() if value)
    early += "".join(f"; counted in `{name}`" for name in row.counted)
    early += "; an ERROR line" if row.level == "error" else ""
    late = f"frame `{row.late}`" if row.late else "-"
    return f"| {row.id} | {does} | {early} | {late} |"


def _oddities() -> str:
    rows = ["| id | what the backend does | what the gateway does |", "|---|---|---|"]
    return "\n".join([*rows, *(_oddity(odd) for odd in ODDITIES)])


def _oddity(odd: Oddity) -> str:
    counted = f"; counted in `{odd.counted}`" if odd.counted else ""
    return f"| {odd.id} | {KINDS[odd.id]} | {odd.does}{counted} |"


TABLES: Final = {
    "faults": _faults(PROMISES, FAILURES),
    "grpc": _faults(GRPC_PROMISES, GRPC_FAILURES),
    "oddities": _oddities(),
}


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_a_table_of_the_page_is_that_of_the_tests(name: str, table: str, rewrite_golden: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, mark, rest = page.partition(f"<!-- {name} -->\n")
    assert mark
    if rewrite_golden:
        _, end, after = rest.partition("<!-- end -->")
        PAGE.write_text(f"{before}{mark}{table}\n{end}{after}", encoding="utf-8")
    else:
        assert rest.partition("\n<!-- end -->")[0] == table


@cache
def _tests(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def _others() -> dict[str, list[str]]:
    rest = PAGE.read_text(encoding="utf-8").partition("<!-- others -->\n")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" |")] for line in rest.splitlines()[2:]]
    return {row[0]: re.findall(r"`(tests/[^`]+)`", row[3]) for row in rows}


def test_everything_else_stands_on_the_page_once() -> None:
    assert tuple(_others()) == OTHERS


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_is_proven_by_tests_that_exist(name: str) -> None:
    proofs = _others()[name]
    assert proofs
    for proof in proofs:
        path, _, test = proof.partition("::")
        assert test in _tests(path), proof
