"""The files of clients: what they hold stays, each change is undone, and what cannot be read is refused."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gateway.connect.client import ClientFile, load_client
from gateway.connect.config_file import apply, locate, plan_change, undo
from gateway.connect.formats import FORMATS, plain
from gateway.connect.merge import merge, take_out
from gateway.connect.target import Target
from gateway.core.errors import SettingsError

TARGET: Final = Target("http://127.0.0.1:8000", "demo-agent", ("demo-agent", "demo-chat"))
CODEX: Final = load_client("codex").files[0]
CONTINUE: Final = load_client("continue").files[0]
OPENCODE: Final = load_client("opencode").files[0]

CONFIG: Final = """# mine
model = "gpt-5" # the large one

[model_providers.other]
base_url = "https://host/v1" # keep

[profiles.x]
model = "o3"
"""


def written(path: Path, file: ClientFile, target: Target = TARGET) -> tuple[str, ...]:
    change = plan_change(path, file, target)
    apply(change)
    return change.replaced


def test_a_toml_file_keeps_its_comments_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    assert written(path, CODEX) == ("model",)
    text = path.read_text()
    for kept in ("# mine", "# the large one", 'base_url = "https://host/v1" # keep', "[profiles.x]"):
        assert kept in text
    found = tomllib.loads(text)
    assert (found["model"], found["model_provider"], found["profiles"]) == (
        "demo-agent",
        "dragoman",
        {"x": {"model": "o3"}},
    )
    assert found["model_providers"]["dragoman"]["base_url"] == "http://127.0.0.1:8000/v1"


def test_a_yaml_file_keeps_its_comments_its_indentation_and_its_own_models(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "name: Mine # my own\nversion: 9.0.0\nmodels:\n- name: other\n  provider: 'ollama'\n- name: demo-chat\n"
    )
    assert written(path, CONTINUE) == ()
    text = path.read_text()
    assert text.startswith("name: Mine # my own\nversion: 9.0.0\nmodels:\n- name: other\n  provider: 'ollama'\n")
    found = YAML(typ="safe").load(text)
    assert [entry["name"] for entry in found["models"]] == ["other", "demo-chat", "demo-agent"]
    assert found["models"][1]["apiBase"] == "http://127.0.0.1:8000/v1" and found["schema"] == "v1"


def test_a_json_file_keeps_its_order_and_indentation(tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    path.write_text('{\n    "theme": "dark",\n    "provider": {"mine": {"npm": "é"}}\n}\n')
    written(path, OPENCODE)
    text = path.read_text()
    assert text.startswith('{\n    "theme": "dark",\n    "provider": {\n        "mine"') and "é" in text
    assert list(json.loads(text)["provider"]["dragoman"]["models"]) == ["demo-agent", "demo-chat"]


def test_what_is_already_there_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    written(path, CODEX)
    stamp = path.stat().st_mtime_ns
    assert apply(plan_change(path, CODEX, TARGET)) is None
    assert path.stat().st_mtime_ns == stamp and len(list(tmp_path.iterdir())) == 3


def test_changes_are_undone_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.toml"
    written(path, CODEX)
    first = path.read_bytes()
    written(path, CODEX, Target("http://gw", "other", ("other",)))
    assert undo(path) == "restored" and path.read_bytes() == first
    assert undo(path) == "removed"
    assert list(path.parent.iterdir()) == []
    with pytest.raises(SettingsError, match="there is nothing to undo"):
        undo(path)


@pytest.mark.parametrize("name", ["config.yaml", "config.toml", "opencode.json"])
def test_an_empty_file_is_restored_as_one(name: str, tmp_path: Path) -> None:
    file = {"opencode.json": OPENCODE, "config.toml": CODEX, "config.yaml": CONTINUE}[name]
    path = tmp_path / name
    path.write_bytes(b"")
    written(path, file)
    assert undo(path) == "restored" and path.read_bytes() == b""
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["# name: Mine\n# models:\n", "\ufeff# mine", "---\r\n# mine\r\n"])
def test_the_comments_of_a_sample_file_stay_above_what_is_added(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    before = text.encode()
    path.write_bytes(before)
    assert written(path, CONTINUE) == ()
    found = path.read_bytes().decode()
    assert found.startswith(text.removeprefix("\ufeff").rstrip())
    assert [entry["name"] for entry in YAML(typ="safe").load(found)["models"]] == ["demo-agent", "demo-chat"]
    assert ("\r\n" in text) == ("\r\n" in found)
    assert apply(plan_change(path, CONTINUE, TARGET)) is None
    assert undo(path) == "restored" and path.read_bytes() == before


def test_a_key_without_a_value_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("name: Mine\nmodels:\n")
    written(path, CONTINUE)
    assert len(YAML(typ="safe").load(path.read_text())["models"]) == 2


def rewritten(path: Path, **more: Any) -> None:
    """What a client does with its JSON file: it reads it, adds keys of its own and writes it in its own form."""
    path.write_text(json.dumps({**more, **json.loads(path.read_text())}, indent=4), encoding="utf-8")


@pytest.mark.parametrize(
    ("client", "added"),
    [
        ("opencode", {"$schema": "https://opencode.ai/config.json"}),
        ("qwen-code", {"$version": 3, "ide": {"hasSeenNudge": True}}),
        ("claude-code", {"$schema": "x"}),
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "{}",
        '{"theme": "dark", "provider": {"other": {"name": "x"}}, "model": "mine"}',
        '{"env": {"MINE": "1"}, "model": {"name": "mine", "size": 3}, "modelProviders": {"openai": [{"id": "mine"}]}}',
    ],
)
def test_what_was_added_is_taken_out_of_a_file_that_the_client_has_rewritten(
    client: str, added: dict[str, Any], before: str | None, tmp_path: Path
) -> None:
    (file,) = load_client(client).files
    path = tmp_path / file.name
    if before is not None:
        path.write_text(before)
    try:
        written(path, file)
    except SettingsError:
        pytest.skip("the file does not fit this client")
    rewritten(path, **added)
    assert undo(path) == "taken out"
    assert json.loads(path.read_text()) == {**json.loads(before or "{}"), **added}
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(SettingsError, match="there is nothing to undo"):
        undo(path)


def test_a_new_file_from_which_everything_is_taken_out_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    written(path, OPENCODE)
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert undo(path) == "removed" and list(tmp_path.iterdir()) == []


def test_what_a_person_has_changed_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    written(path, CODEX)
    text = path.read_text().replace('model = "demo-agent"', 'model = "newer" # chosen since')
    path.write_text(text + "\n[notes]\nmine = 1\n")
    assert undo(path) == "taken out"
    found = path.read_text()
    assert tomllib.loads(found) == {**tomllib.loads(CONFIG), "model": "newer", "notes": {"mine": 1}}
    assert "# chosen since" in found and "# keep" in found and "# mine" in found


# As `dragoman connect` wrote it before Codex was to ask for the models.
OLDER: Final = """\
[model_providers.dragoman] # mine
name = "Dragoman"
env_key = "DRAGOMAN_KEY"
"""


@pytest.mark.parametrize("changed", [False, True])
def test_a_key_that_the_client_refuses_beside_the_content_is_removed_and_comes_back(
    tmp_path: Path, changed: bool
) -> None:
    """Codex: "provider auth cannot be combined with env_key"."""
    path = tmp_path / "config.toml"
    path.write_text(OLDER)
    assert "model_providers.dragoman.env_key" in written(path, CODEX)
    provider = tomllib.loads(path.read_text())["model_providers"]["dragoman"]
    assert provider["auth"]["command"] == "printenv" and "env_key" not in provider
    if changed:
        path.write_text(path.read_text() + "\n[notes]\nmine = 1\n")
    assert undo(path) == ("taken out" if changed else "restored")
    more = {"notes": {"mine": 1}} if changed else {}
    assert tomllib.loads(path.read_text()) == {**tomllib.loads(OLDER), **more}


def test_a_rewritten_file_is_brought_back_change_by_change(tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    path.write_text('{"theme": "dark"}')
    written(path, OPENCODE)
    written(path, OPENCODE, Target("http://gw", "other", ("other",)))
    rewritten(path, **{"$schema": "x"})
    assert undo(path) == "taken out"
    assert json.loads(path.read_text())["provider"]["dragoman"]["options"]["baseURL"] == "http://127.0.0.1:8000/v1"
    assert undo(path) == "taken out"
    assert json.loads(path.read_text()) == {"theme": "dark", "$schema": "x"}


@pytest.mark.parametrize("text", ["{", '{"a": 1} // x', "[]", "3"])
def test_a_file_that_can_no_longer_be_read_stays(text: str, tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    path.write_text('{"theme": "dark"}')
    written(path, OPENCODE)
    path.write_text(text)
    with pytest.raises(SettingsError, match=r"opencode\.json: .*copy back .* opencode\.json\.dragoman-\w{12}\.bak"):
        undo(path)
    assert path.read_text() == text


def test_a_file_of_an_older_version_that_was_changed_since_is_not_restored(tmp_path: Path) -> None:
    """It has no copy of what was written."""
    path = tmp_path / "config.toml"
    path.write_text(CONFIG)
    written(path, CODEX)
    (new,) = tmp_path.glob("*.new")
    new.unlink()
    with path.open("a") as file:
        file.write("\n[notes]\nmine = 1\n")
    with pytest.raises(SettingsError, match=r"changed since; copy back .* config\.toml\.dragoman-\w{12}\.bak"):
        undo(path)
    assert "mine = 1" in path.read_text()


def test_mode_links_and_line_ends_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "config.toml", tmp_path / "config.toml"
    real.parent.mkdir()
    real.write_bytes(CONFIG.replace("\n", "\r\n").encode())
    real.chmod(0o640)
    link.symlink_to(real)
    written(link, CODEX)
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes().count(b"\n") == real.read_bytes().count(b"\r\n") > 5
    assert undo(link) == "restored" and real.read_bytes() == CONFIG.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("opencode.json", b'{"a": 1,}', "line 1, column 9: remove the comma before this }"),
        ("opencode.json", b'{\n  // mine\n  "a": 1\n}', "line 2, column 3: JSON has no comments: remove this one"),
        ("opencode.json", b'{"a": 1, "a": 2}', "set twice"),
        ("opencode.json", b"[]", "the file must be an object; it is a list"),
        ("opencode.json", b'{"provider": []}', "provider must be an object; it is a list"),
        ("opencode.json", b'{"provider": {"dragoman": 3}}', "provider.dragoman must be an object"),
        ("opencode.json", b"\xff\xfe{}", "not UTF-8"),
        ("opencode.json", b"null", "it is written in a way|nothing may follow"),
        ("opencode.json", b'{"a":' + b"[" * 9000 + b"]" * 9000 + b"}", "nested too deep"),
        ("config.toml", b"a = \n", "line 1"),
        ("config.toml", b"model_providers = 3\n", "model_providers must be an object"),
        ("config.yaml", b"a: [1\nb: 2\n", "line 2"),
        ("config.yaml", b"a: 1\na: 2\n", "line 2"),
        ("config.yaml", b"--- 1\n--- 2\n", "line"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_or_does_not_fit_is_refused_and_stays(
    name: str, text: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    file = {"opencode.json": OPENCODE, "config.toml": CODEX, "config.yaml": CONTINUE}[name]
    with pytest.raises(SettingsError, match=f"(?s){name}: .*{words}.*Nothing was changed"):
        plan_change(path, file, TARGET)
    assert path.read_bytes() == text and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="the owner of the machine may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SettingsError, match="cannot be written"):
        written(tmp_path / "config.toml", CODEX)


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        plan_change(tmp_path, CODEX, TARGET)


def test_the_first_folder_whose_variables_are_set_is_taken() -> None:
    file = load_client("llm").files[0]
    home = Path("~").expanduser()
    assert locate(file, {"LLM_USER_PATH": "/l", "XDG_CONFIG_HOME": "/x"}) == Path("/l/extra-openai-models.yaml")
    assert locate(file, {"XDG_CONFIG_HOME": "/x"}, "linux") == Path("/x/io.datasette.llm/extra-openai-models.yaml")
    assert locate(file, {}, "linux") == home / ".config/io.datasette.llm/extra-openai-models.yaml"
    assert locate(file, {}, "darwin").parts[-3:-1] == ("Application Support", "io.datasette.llm")


NAMES = st.sampled_from(["a", "b", "model", "provider", "model_providers", "dragoman", "options"])
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text("aé \"'#:{}\n", max_size=5)
TREES: st.SearchStrategy[Any] = st.recursive(
    VALUES, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3), max_leaves=8
)


@given(st.dictionaries(NAMES, TREES, max_size=4), st.sampled_from([".json", ".yaml"]))
def test_merging_loses_nothing_and_merging_again_changes_nothing(before: dict[str, Any], suffix: str) -> None:
    form = FORMATS[suffix]
    text = form.write(before, "")
    tree = form.read(text)
    wanted = TARGET.fill_tree(OPENCODE.content)
    try:
        replaced = tuple(merge(tree, wanted))
    except SettingsError:
        return
    after = plain(form.read(form.write(tree, text)))
    assert after == plain(tree)
    assert list(merge(after, wanted)) == []
    for path in _paths(before):
        assert _at(after, path) == _at(before, path) or ".".join(path) in replaced


@given(st.dictionaries(NAMES, TREES, max_size=4), st.sampled_from([".json", ".yaml"]), TREES)
def test_what_was_merged_is_taken_out_again(before: dict[str, Any], suffix: str, more: Any) -> None:
    form = FORMATS[suffix]
    text = form.write(before, "")
    tree = form.read(text)
    try:
        list(merge(tree, TARGET.fill_tree(OPENCODE.content)))
    except SettingsError:
        return
    added = plain(tree)
    tree["added since"] = more
    take_out(tree, added, before)
    assert plain(tree) == {**before, "added since": more}


def _paths(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(tree, dict) and tree:
        return [found for key, value in tree.items() for found in _paths(value, (*path, key))]
    return [path] if path and tree != {} else []


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree
