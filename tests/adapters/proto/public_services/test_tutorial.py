"""The entry that docs/proto-tutorial.md makes passes the scenarios, and what it shows of a preset is in the preset."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.adapters.openai_chat.client.test_conformance import CASE as CHAT
from tests.adapters.proto.backend.test_tutorial import done
from tests.adapters.proto.public_services.playing import KEY_VARIABLE, cancel, pass_scenario, possible
from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.service import KEY, running_service
from tests.adapters.proto.public_services.test_scenarios import METHODS
from tests.adapters.proto.public_services.yandex import Yandex
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "proto-tutorial.md"
PLAYED: Final = [name for name, scenario in SCENARIOS.items() if possible(Yandex(), CHAT, scenario)]


@pytest.fixture
def mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yandex:
    """The service behind the entry of the page."""
    monkeypatch.chdir(done("proto-tutorial", tmp_path))
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    entry: dict[str, Any] = json.loads((tmp_path / "yandex.json").read_text(encoding="utf-8"))
    return Yandex({name: value for name, value in entry.items() if name != "base_url"})


@pytest.mark.parametrize("name", PLAYED)
async def test_the_entry_of_the_page_passes_a_scenario(name: str, mapped: Yandex) -> None:
    method = METHODS[mapped.name]
    with running_service(mapped, method.request, method.response) as backend:
        await pass_scenario(mapped, backend, CHAT, SCENARIOS[name], stream=True)


async def test_the_service_of_the_page_learns_that_a_client_has_left(mapped: Yandex) -> None:
    method = METHODS[mapped.name]
    with running_service(mapped, method.request, method.response) as backend:
        await cancel(mapped, backend, CHAT, SCENARIOS["plain"])


def test_the_template_and_the_rules_of_the_second_service_are_those_of_its_preset() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## A service with one call a message")[2]
    messages, rules = re.findall(r"```json\n(.+?)```", page, re.DOTALL)
    preset = json.loads((ROOT / "adapters" / "proto" / "presets" / "gigachat.json").read_text(encoding="utf-8"))
    assert json.loads(messages) == preset["request"]["messages"]
    assert json.loads(rules) == preset["read"]
