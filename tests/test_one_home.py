"""What several rooms need stands once: a copy in another module is found, as each copy came to differ a little."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

# A function, and the module in which alone it may stand.
HOMES = {
    "is_system": "gateway/core/conversation.py",
    "index_of": "gateway/core/conversation.py",
    "system_prefix": "gateway/history/classify.py",
    "text_in": "gateway/wires/json_body.py",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in ("gateway", "adapters"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.stem.endswith("_pb2"):
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def work(function: ast.FunctionDef) -> str:
    """What a function does, without its name, its description and the names of its arguments."""
    body = ast.Module(function.body if ast.get_docstring(function) is None else function.body[1:], [])
    names = {argument.arg: f"argument {at}" for at, argument in enumerate(function.args.args)}
    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.dump(body)


@pytest.mark.parametrize("name", HOMES)
def test_a_function_that_many_need_has_no_copy(name: str) -> None:
    home = ast.parse((ROOT / HOMES[name]).read_text(encoding="utf-8"))
    (wanted,) = (work(one) for one in functions(home) if one.name == name)
    assert [path for path, tree in modules() for one in functions(tree) if work(one) == wanted] == [HOMES[name]]


def test_the_roles_of_system_text_are_listed_once() -> None:
    found = [path for path, tree in modules() for node in ast.walk(tree) if _lists_system_roles(node)]
    assert found == ["gateway/core/conversation.py"]


def _lists_system_roles(node: ast.AST) -> bool:
    """A type has them in the other order: the value of a setting."""
    if not isinstance(node, ast.Tuple | ast.Set | ast.List):
        return False
    return [one.value for one in node.elts if isinstance(one, ast.Constant)] == ["system", "developer"]


def test_what_is_reported_once_is_remembered_in_one_way() -> None:
    """`Reported.is_new` asks and remembers; a set beside it would be asked and then told."""
    found = [
        path
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and _asks_and_adds(node) and "Notice(" in ast.unparse(node)
    ]
    assert found == []


def _asks_and_adds(node: ast.If) -> bool:
    first = ast.unparse(node.body[0])
    sets = {ast.unparse(one.comparators[0]) for one in ast.walk(node.test) if isinstance(one, ast.Compare)}
    return any(first.startswith((f"{one}.add(", f"{one} |= ")) for one in sets)


def test_a_copy_is_seen(tmp_path: Path) -> None:
    copy = ast.parse('def _text(said):\n    "Any."\n    return said if isinstance(said, str) and said else None')
    home = ast.parse((ROOT / HOMES["text_in"]).read_text(encoding="utf-8"))
    assert [work(one) for one in functions(copy)] == [work(one) for one in functions(home) if one.name == "text_in"]
