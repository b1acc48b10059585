"""`dragoman schema`: what it prints, and its exit status."""

import json
from pathlib import Path

import pytest

from gateway.cli import main
from tests.adapters.proto.backend.mappings import SET, TALK
from tests.adapters.proto.backend.services import SOURCES
from tests.protobuf.schemas import ECHO, SHARED, descriptors


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["schema", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def settings(tmp_path: Path) -> str:
    backends = {
        "talk": {"adapter": "proto", "base_url": "http://127.0.0.1:9", **TALK},
        "chat": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"},
    }
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"backends": backends}))
    return str(path)


@pytest.mark.parametrize("source", [SET, str(SOURCES / "talk.proto"), "talk"])
def test_a_schema_comes_from_a_set_a_source_or_a_backend(
    source: str, settings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", source, "acme.talk.v1.Said", "--settings", settings) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("message acme.talk.v1.Said\n") and "  string so_far = 2\n" in shown


def test_schemas_that_differ_are_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = type(ECHO)()
    newer.CopyFrom(ECHO)
    newer.message_type[0].field[0].number = 12
    for name, file in (("old", ECHO), ("new", newer)):
        (tmp_path / f"{name}.pb").write_bytes(descriptors(file, SHARED).data)
    old, new = str(tmp_path / "old.pb"), str(tmp_path / "new.pb")
    assert (run("diff", old, old), capsys.readouterr().out) == (0, "")
    assert (run("diff", old, new), capsys.readouterr().out) == (1, "acme.Echo.text: renumbered: 1 -> 12\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "talc"], "there is no file and no backend 'talc'; did you mean 'talk'?"),
        (["show", "chat"], "backends.chat: its adapter has no protobuf schema"),
        (["show", "talk", "acme.talk.v1.Sayd"], "the schema has no symbol 'acme.talk.v1.Sayd'; did you mean"),
        (["show", "nowhere.proto"], "schema.files: there is no file 'nowhere.proto'"),
        (["diff", __file__, "talk"], "the file is not a FileDescriptorSet"),
    ],
)
def test_what_cannot_be_shown_is_an_error(
    arguments: list[str], message: str, settings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--settings", settings) == 2
    assert capsys.readouterr().err.startswith(f"dragoman: {message}")


@pytest.mark.parametrize("server", ["127.0.0.1:50051", "localhost:443", "api.example.org:443", "[::1]:50051"])
def test_a_server_without_a_scheme_is_told_that_one_is_missing(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "settings.json")
    assert run("fetch", server, "-o", str(tmp_path / "x.pb"), "--settings", missing) == 2
    assert capsys.readouterr().err == (
        f"dragoman: {server!r} has no scheme; write http://{server}, or with TLS https://{server}\n"
    )


def test_a_backend_whose_name_looks_like_a_server_is_a_backend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.json"
    entry = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1"}
    path.write_text(json.dumps({"backends": {"gpu:1": entry}}))
    assert run("fetch", "gpu:1", "-o", str(tmp_path / "x.pb"), "--settings", str(path)) == 2
    assert "scheme" not in capsys.readouterr().err
