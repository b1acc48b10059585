"""The README's table, the page and the runs name the same clients with the same configuration."""

import re
from typing import Final

import pytest

from gateway.connect.client import load_client
from gateway.connect.config_file import text_of
from gateway.connect.instructions import variables
from gateway.connect.target import Target
from tests.clients.page import advice
from tests.clients.test_clients import ALL, Client
from tests.paths import ROOT

TABLE: Final = (
    (ROOT / "README.md").read_text(encoding="utf-8").partition("\n| client | configuration |\n")[2].partition("\n\n")[0]
)
# The words for those that the page cannot name.
OTHERS: Final = "most tools"
# Clients with the same configuration share a row.
ROWS: Final = {
    name: configuration
    for names, configuration in re.findall(r"^\| ([^|]+?) \| (.+) \|$", TABLE, re.M)
    for name in names.split(", ")
    if name != OTHERS
}


def test_every_client_of_the_table_is_on_the_page_and_is_run() -> None:
    assert sorted(ROWS) == sorted(advice())
    assert list(advice()) == [client.name for client in ALL]


@pytest.mark.parametrize("name", ROWS)
def test_the_table_says_what_the_page_says(name: str) -> None:
    found = advice()[name]
    page = "\n".join((found.commands, *found.files, *found.files.values()))
    words = [word for code in re.findall(r"`([^`]+)`", ROWS[name]) for word in code.replace("...", "").split()]
    assert words
    assert [word for word in words if word.removeprefix("~/").removesuffix("=") not in page] == []


@pytest.mark.parametrize("client", ALL, ids=lambda client: client.name)
def test_the_page_shows_what_connect_writes_and_prints(client: Client) -> None:
    target = Target("http://127.0.0.1:8000", "demo-agent", ("demo-agent",))
    known, said = load_client(client.connect), advice()[client.name]
    shown = {f"{file.folders[-1]}/{file.name}".removeprefix("~/"): text_of(file, target) for file in known.files}
    assert said.files == shown
    assert said.commands.startswith(variables(known, target))
