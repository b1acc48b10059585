"""Every kind of demo backend is in order, and the questions are no more than was told."""

import pytest

from gateway.core.conversation import Json
from gateway.demo.player.key_check import RIGHT_KEY
from gateway.diagnostics.doctor.examination import PROBES
from tests.server.backend import Connection, answer, faulty_backend
from tests.server.doctor.examined import ENTRIES, examined, findings

# What the wires do not have. No demo model gives logprobs or several choices, or writes for long.
SKIPPED = {
    "agent": {"D212", "D238", "D239", "D271", "D273", "D274"},
    "grpc": {"D212", "D271", "D273", "D276"},
    "messages": {"D273"},
    "responses": {"D273"},
    "text": {"D276"},
}


@pytest.mark.parametrize("kind", ENTRIES)
async def test_a_healthy_backend_has_no_finding(kind: str) -> None:
    found = (await examined(kind)).section
    assert {one.id: one.finding.verdict for one in found.having("todo", "broken", "crashed")} == {}
    assert {one.id for one in found.having("skipped")} == {"D275", "D277", "D283"} | SKIPPED.get(kind, set())
    assert [one.id for one in found.findings] == [probe.id for probe in PROBES]
    assert "tools" in found.can
    assert not found.cannot
    assert not found.suggestions


@pytest.mark.parametrize("kind", ENTRIES)
async def test_a_backend_that_needs_its_key_is_in_order_with_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_KEY", RIGHT_KEY)
    url = f"demo:{kind}?key=required"
    with_key = (await examined(kind, url, slow=False, entry={"api_key_env": "DOCTOR_KEY"})).section
    assert with_key.having("todo", "broken", "crashed") == ()
    assert findings(with_key)["D211"].detail == "the key is accepted, and a wrong one refused"
    without = findings((await examined(kind, url, slow=False)).section)
    assert (without["D211"].verdict, without["D211"].advice) == ("broken", "set api_key_env")


async def test_the_questions_are_no_more_than_was_told() -> None:
    asked = (await examined("chat")).interactions
    assert 0 < len(asked) <= sum(probe.questions for probe in PROBES)


async def test_without_slow_and_with_only_a_part_is_asked() -> None:
    brief = (await examined("chat", slow=False)).section
    assert {one.id for one in brief.findings} == {probe.id for probe in PROBES if not probe.slow}
    part = (await examined("chat", only=("D25", "D271"))).section
    assert {one.id for one in part.findings} == {probe.id for probe in PROBES if probe.id.startswith(("D25", "D271"))}
    assert {one.finding.verdict for one in part.findings} == {"ok"}


async def test_a_backend_that_is_not_there_is_found_once() -> None:
    found = findings((await examined("chat", "http://127.0.0.1:1", slow=False)).section)
    assert found.pop("D201").verdict == "ok"
    assert found.pop("D202").verdict == "broken"
    assert {finding.verdict for finding in found.values()} == {"skipped"}


async def test_a_model_that_needs_reasoning_back_gets_a_profile_that_was_tried() -> None:
    section = (await examined("chat", model="demo-chat-strict")).section
    assert [one.id for one in section.having("todo", "broken")] == ["D212", "D241"]
    assert findings(section)["D241"].evidence == (
        "The reasoning_content in the thinking mode must be passed back to the API."
    )
    (profile, name) = section.suggestions
    assert profile.path == ("profiles", "b")
    assert profile.value == {
        "base": "none",
        "reasoning": "echo_all_tool_turns",
        "reasoning_field": "reasoning_content",
        "reasoning_missing": "",
    }
    assert (name.path, name.value) == (("backends", "b", "profile"), "b")


@pytest.mark.parametrize(("kind", "check"), [("gemini", "D242"), ("responses", "D241")])
async def test_a_model_that_needs_its_state_back_is_told_once(kind: str, check: str) -> None:
    section = (await examined(kind, model=f"demo-{kind}-strict", slow=False)).section
    assert [one.id for one in section.having("todo", "broken")] == ["D212", check]
    assert '"keeper": {"enabled": true}' in findings(section)[check].advice


async def test_a_user_and_a_password_are_checked_like_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_KEY", "user:dragoman-password")

    async def guard(connection: Connection) -> None:
        right = b"authorization: Basic dXNlcjpkcmFnb21hbi1wYXNzd29yZA==\r\n" in connection.head
        keys.append(connection.head)
        await connection.send(answer("200 OK", b'{"data": [{"id": "m"}]}') if right else answer("401 x", b"no"))

    keys: list[bytes] = []
    async with faulty_backend(guard) as backend:
        entry: dict[str, Json] = {"api_key_env": "DOCTOR_KEY", "api_key_scheme": "Basic"}
        found = findings((await examined("chat", backend.base_url, only=("D211",), entry=entry)).section)
    assert found["D211"].detail == "the key is accepted, and a wrong one refused"
    assert sum(b"authorization: Basic " in head for head in keys) == len(keys) >= 2
