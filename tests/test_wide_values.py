"""A value with many fields is constructed by their names: only the first ones, which say themselves, stand by place."""

import ast
from typing import Final

import pytest

from tests.paths import ROOT

# The most arguments by place.
BY_PLACE: Final = {
    "BackendRequest": 3,
    "Conversation": 3,
    "Notice": 4,
    "Sampling": 1,
    "ToolResult": 3,
    "ToolSpec": 3,
    "Turn": 2,
    "Violation": 4,
}


@pytest.mark.parametrize("package", ["gateway", "adapters", "bench"])
def test_a_wide_value_is_constructed_by_names(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.stem.endswith("_pb2")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and len(node.args) > BY_PLACE.get(node.func.id, len(node.args))
    ]
    assert found == []
