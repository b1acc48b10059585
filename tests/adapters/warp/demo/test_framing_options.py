import httpx
import pytest

from adapters.warp.demo.framing_options import FRAMING_OPTIONS, FramingOptions, read_framing_options, write_frames
from adapters.warp.demo.request import read_agent
from adapters.warp.demo.scenarios import SCENARIOS
from adapters.warp.demo.steps import PRELUDE, ScenarioState
from gateway.demo.player.playback import Cut, Part, Wait
from gateway.demo.serve import serve_demo
from tests.demo.wires import data_of, messages_of, notation, post, question, read

SCENE = read_agent(question("hi"))
# Each knob turned, and a mark that only its bytes carry (None: the bytes are the same, their writes differ).
TURNED: dict[str, tuple[str, bytes | None]] = {
    "chunk": ("1", None),
    "delay_ms": ("1", None),
    "padding": ("0", None),
    "alphabet": ("standard", None),
    "quotes": ("1", b'data:"'),
    "space": ("1", b"data: C"),
    "newline": ("crlf", b"\r\n\r\n"),
    "name": ("0", None),
    "lines": ("3", None),
    "comments": ("1", ": läuft noch …\n\n".encode()),
    "batch": ("3", None),
    "done": ("1", b"data:[DONE]\n\n"),
}


def test_every_knob_is_described_and_turned_here() -> None:
    assert FRAMING_OPTIONS.keys() == TURNED.keys() == set(FramingOptions.__struct_fields__)


async def wire(options: str) -> bytes:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        answer = await post(client, f"{backend.base_url}/scenario/plain_text,{options}/ai/multi-agent", question("hi"))
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.mark.parametrize("name", [name for name in TURNED if name != "batch"])
async def test_a_knob_changes_the_framing_only(name: str) -> None:
    value, mark = TURNED[name]
    plain, turned = await wire("chunk=0"), await wire(f"{name}={value}")
    assert messages_of(turned) == messages_of(plain)
    if mark is not None:
        assert mark in turned and mark not in plain
    elif name not in ("chunk", "delay_ms", "alphabet"):
        assert turned != plain


async def test_the_other_newline_and_hex_and_both_spellings_of_a_knob() -> None:
    assert b"\n" not in await wire("newline=cr")
    assert read(messages_of(await wire("newline=cr"))).text == SCENARIOS["plain_text"].expect.text
    assert bytes.fromhex(data_of(await wire("alphabet=hex"))[-1].decode()) == b"\x1a\x02\x12\x00"
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        by_query = await post(client, f"{backend.base_url}/scenario/plain_text?quotes=1", question("hi"))
        by_marker = await post(
            client, f"{backend.base_url}/ai/multi-agent", question("hi [[scenario:plain_text quotes=1]]")
        )
        without = await post(client, f"{backend.base_url}/ai/multi-agent?quotes=1", question("hi"))
    assert all(b'data:"' in answer.content for answer in (by_query, by_marker, without))


async def test_batched_actions_share_events_and_say_the_same() -> None:
    plain, batched = messages_of(await wire("batch=1")), messages_of(await wire("batch=4"))
    assert len(batched) < len(plain)
    assert max(len(event.client_actions.actions) for event in batched) == 4
    assert notation(batched) == notation(plain)
    assert read(batched) == read(plain)


def parts(options: dict[str, str]) -> list[Part]:
    state = ScenarioState(SCENE, 1)
    return list(write_frames((frame for step in PRELUDE for frame in step(state)), read_framing_options(options)))


def test_chunks_are_writes() -> None:
    one = parts({})
    small = parts({"chunk": "1", "comments": "1"})
    assert all(isinstance(part, bytes) and part.endswith(b"\n\n") for part in one)
    assert all(isinstance(part, bytes) and len(part) == 1 for part in small)
    assert b"".join(part for part in small if isinstance(part, bytes)).replace(": läuft noch …\n\n".encode(), b"") == (
        b"".join(part for part in one if isinstance(part, bytes))
    )


def test_waits_and_cuts_pass_through() -> None:
    assert list(write_frames([Wait(1), Cut("end")], FramingOptions(batch=3))) == [Wait(1), Cut("end")]


@pytest.mark.parametrize("options", [{"chunk": "many"}, {"quotes": "perhaps"}, {"newline": "nl"}, {"colour": "red"}])
def test_an_unusable_knob_is_named(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        read_framing_options(options)


async def test_an_unusable_knob_or_an_unknown_scenario_is_refused() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        knob = await post(client, f"{backend.base_url}/scenario/plain_text?colour=red", question("hi"))
        name = await post(client, f"{backend.base_url}/scenario/nothing", question("hi"))
    assert (knob.status_code, name.status_code) == (400, 400)
    assert "colour" in knob.text and "there is no scenario 'nothing'" in name.json()["error"]
