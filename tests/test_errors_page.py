"""The page of error codes lists exactly the codes of the source."""

import ast
import re
from collections.abc import Iterator
from typing import Final, get_args

from gateway.core.errors import Kind
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
# Backends and clients of the demo and of tests say what they like.
FOREIGN: Final = {"demo", "testing", "local"}
# Kinds of errors stand beside codes in the tables.
KINDS: Final = set(get_args(Kind))
TABLES: Final = {"_Fault", "_Failure", "_callers", "Refusal"}
CODE: Final = re.compile(r"[a-z]+(?:_[a-z]+)+|conflict|overloaded")


def _places(node: ast.AST) -> list[ast.expr]:
    """The expressions of a node that hold codes."""
    match node:
        case ast.keyword(arg="code", value=value):
            return [value]
        case ast.Assign(targets=[ast.Name(id="code") | ast.Attribute(attr="code")], value=value):
            return [value]
        case ast.AnnAssign(target=ast.Name(id="code"), value=ast.expr() as value):
            return [value]
        case ast.Call(func=ast.Name(id=name), args=args) if name in TABLES:
            return args[:3]
        case _:
            return []


def _codes(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        for place in _places(node):
            for part in ast.walk(place):
                text = part.value if isinstance(part, ast.Constant) else None
                text = text.decode() if isinstance(text, bytes) else text
                if isinstance(text, str) and CODE.fullmatch(text):
                    yield text


def test_every_code_of_the_source_is_listed_and_no_other() -> None:
    files = (path for root in ("gateway", "adapters") for path in (ROOT / root).rglob("*.py"))
    own = [path for path in files if not FOREIGN & set(path.parts) and not path.stem.endswith("_pb2")]
    given = {code for path in own for code in _codes(path.read_text(encoding="utf-8"))} - KINDS
    table = PAGE.partition("<!-- codes -->")[2].partition("<!-- end -->")[0]
    rows = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert len(rows) == len(set(rows))
    behind = re.findall(r"`([a-z_]+)`", PAGE.partition("<!-- end -->")[2])
    assert given == {*rows, *behind[:2]}
