"""The tutorials of docs/proto-backends.md and docs/proto-tutorial.md run, command by command, and the backend of the
first one answers. That of the second one is in `tests.adapters.proto.public_services`."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.proto.backend.schema import Schema, message_class
from gateway.core.conversation import Json
from gateway.demo.player.playback import Response
from gateway.settings.descriptor_files import read_descriptor_set
from gateway.testing.gateway import running_gateway
from tests.adapters.proto.backend.services import grpc_web
from tests.adapters.proto.backend.test_over_http import serving
from tests.paths import ROOT

# By the page: the headings at which it begins, and before which it ends.
_SECTIONS: Final = {
    "proto-backends": ("## A tutorial", "## Learning a mapping"),
    "proto-tutorial": ("## Save the schema", "## A service with one call a message"),
}
# A file that is to be saved, by the name before its block; or the commands of a console.
BLOCK: Final = re.compile(
    r"(?:[Ss]ave (?:[\w ]+ )?as `(?P<name>[\w.]+)`:\s+)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL
)
COMMAND: Final = re.compile(r"^\$ (?P<command>.+)\n(?P<printed>(?:(?!\$ ).*\n)*)", re.MULTILINE)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """The files and the commands in their order: the name of a file or a command, and its text or what it prints."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    begin, end = _SECTIONS[page]
    for block in BLOCK.finditer(text[text.index(begin) : text.index(end)]):
        if block["kind"] == "console":
            yield from ((found["command"], found["printed"]) for found in COMMAND.finditer(block["text"]))
        else:
            assert block["name"], f"the block {block['text'][:40]!r} names no file"
            yield block["name"], block["text"]


def done(page: str, folder: Path) -> Path:
    """The folder, with what is in it after the tutorial, as far as that needs no compared output."""
    for name, content in _files(page).items():
        (folder / name).write_bytes(content)
    return folder


@functools.cache
def _files(page: str) -> dict[str, bytes]:
    """Does the tutorial once for all its tests, and returns the files that it leaves."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for name, text in steps(page):
            if re.fullmatch(r"[\w.]+", name):
                (folder / name).write_text(text)
            elif not is_compared(name):
                run(name, folder)
        return {file.name: file.read_bytes() for file in folder.iterdir()}


def is_compared(step: str) -> bool:
    """Whether it is a command of the gateway."""
    return "dragoman " in step


def run(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")} | {"PATH": path}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


COMMANDS: Final = [(page, *step) for page in _SECTIONS for step in steps(page) if is_compared(step[0])]


def pattern(line: str) -> str:
    """What a line of the page stands for: `...` alone for any lines, at the end of a line for the rest of it."""
    if line == "...":
        return r"(?:.*\n)*?"
    return re.escape(line.removesuffix(" ...")) + ("" if not line.endswith(" ...") else " .*") + r"\n"


@pytest.mark.parametrize(
    ("page", "command", "printed"), COMMANDS, ids=[f"{page}: {step}" for page, step, _ in COMMANDS]
)
def test_a_command_prints_what_the_page_shows(page: str, command: str, printed: str, tmp_path: Path) -> None:
    assert printed
    # No page has spaces at the end of a line.
    found = re.sub(r" +$", "", run(command, done(page, tmp_path)), flags=re.MULTILINE)
    assert re.fullmatch("".join(map(pattern, printed.splitlines())), found), found


def test_every_tool_for_a_mapping_is_in_the_tutorial() -> None:
    used = {" ".join(command.split()[1:3]) for _, command, _ in COMMANDS}
    assert {"schema show", "map check", "map try"} <= used
    assert any(command.startswith("dragoman explain ") for _, command, _ in COMMANDS)


async def test_the_backend_of_the_tutorial_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = done("proto-backends", tmp_path)
    monkeypatch.chdir(folder)
    settings: Any = json.loads((folder / "settings.json").read_text())
    entry = settings["backends"]["echo"]
    method = Schema(read_descriptor_set(entry["schema"], "schema")).method(entry["method"])
    echo: Any = message_class(method.response)
    wire = grpc_web([m.SerializeToString() for m in (echo(text="He"), echo(text="Hello", tokens=2, ending=1))])
    response = Response((wire,), headers={"content-type": "application/grpc-web+proto"})
    async with serving(method.path, response) as (base_url, backend):
        entry["base_url"] = base_url
        async with running_gateway(settings) as gateway:
            messages: list[Json] = [{"role": "user", "content": "Hello?"}]
            answered = await gateway.chat(model="echo", messages=messages, max_tokens=5)
    said = answered.json()
    assert (said["choices"][0]["message"]["content"], said["choices"][0]["finish_reason"]) == ("Hello", "stop")
    assert said["usage"]["completion_tokens"] == 2
    sent: Any = message_class(method.request).FromString(backend.bodies[0][5:])
    assert (sent.model, sent.limit) == ("echo", 5) and "Hello?" in sent.text
