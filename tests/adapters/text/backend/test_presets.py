"""Tests wires by name, with a base and without one, and the examples on their page."""

import json
import re
from typing import Any

import pytest

from adapters.text.backend.presets import PRESETS, find_preset
from gateway.core.conversation import Json, Sampling
from gateway.core.errors import SettingsError
from gateway.core.events import Finish, UsageReport
from gateway.registry import load_adapter
from gateway.settings import read_settings
from gateway.testing.events import fold
from gateway.tool_calls.parsers.formats import FORMATS
from tests.adapters.text.backend import answers
from tests.adapters.text.backend.encoded_request import adapter, conversation, sent
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "text-backends.md").read_text(encoding="utf-8")
SHOWN: list[Any] = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]
SMALL: dict[str, Json] = {"path": "/p", "request": {"p": "$prompt"}, "text": ["t"], "finish": ["f"]}


def test_the_page_lists_every_wire_and_every_key() -> None:
    rows = set(re.findall(r"^\| `([a-z_]+)`", PAGE, re.M))
    assert PRESETS.keys() <= rows
    keys = set(PRESETS["plain"].__struct_fields__)
    assert keys <= {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.M) for name in re.findall(r"`(\w+)`", row)}


def test_the_pages_list_every_format_of_calls() -> None:
    (row,) = re.findall(r"^\| `tool_format` \| .*$", (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"), re.M)
    assert re.findall(r"^\| `([a-z_]+)` \|", PAGE.partition("| `tool_format` |")[2].partition("\n\n")[0], re.M) == list(
        FORMATS
    )
    assert [name for name in re.findall(r"`([a-z_]+)`", row)[1:] if name in FORMATS] == list(FORMATS)


def test_the_entry_that_the_page_begins_with_is_one_for_settings_json() -> None:
    settings = read_settings(SHOWN[0])
    assert load_adapter("local", settings.backends["local"], 1 << 20).capabilities.continues_text


def test_a_wire_on_a_base_differs_where_it_says_so() -> None:
    options = SHOWN[1]
    body = sent(**options)
    assert body["options"] == {"num_ctx": 32768} and body["raw"] is True
    assert find_preset(options["wire"]).finish == PRESETS["ollama"].finish
    assert PRESETS["ollama"].request["options"]["num_ctx"] == 8192


def test_a_wire_written_in_settings_alone_is_asked_and_read() -> None:
    options = SHOWN[2]
    asked = conversation(sampling=Sampling(temperature=0.5, max_tokens=9), params={"voice": "calm"})
    body = sent(asked, **options, turn_stops=False)
    assert body == {
        "text": "User: Weather in Paris?\n\nAssistant:",
        "settings": {"limit": 9, "heat": 0.5, "voice": "calm"},
    }
    decoder = adapter(**options).decoder(conversation())
    wire = answers.sse({"delta": {"text": "Hi"}}, {"end": {"why": "full", "tokens_in": 2, "tokens_out": 1}})
    events = decoder.feed(wire)
    assert decoder.done and fold(events).text == "Hi"
    assert events[-2:] == [UsageReport(2, 1, 3), Finish("length", "full")]
    assert "voice" in adapter(**options).capabilities.supported_params


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("lama_cpp", "there is no wire 'lama_cpp'; did you mean 'llama_cpp'"),
        ("smoke", "there is no wire 'smoke'; there are llama_cpp, completions"),
        ({"base": "smoke"}, "there is no wire 'smoke'"),
        ({"base": 7}, "base must name a wire"),
        ({}, "missing required field `path`"),
        ({**SMALL, "txt": ["a"]}, "unknown setting 'backends.b.wire.txt'; did you mean 'text'"),
        (
            {**SMALL, "framing": "smoke"},
            "wire.framing must be one of 'sse', 'ndjson', 'json', 'sse_text', 'text'; it is 'smoke'",
        ),
        ({**SMALL, "path": "p"}, "must begin with /"),
        ({**SMALL, "request": {"p": "$promt"}}, r"the unknown value '\$promt'"),
        ({**SMALL, "request": {"p": "$prompt", "x": "$request."}}, r"the unknown value '\$request.'"),
        ({**SMALL, "request": {"p": "text"}}, r"must contain \$prompt"),
        ({**SMALL, "request": {"p": "$transcript"}}, r"has \$transcript, but no \$system"),
        ({**SMALL, "text": []}, "needs a path to the text"),
        ({**SMALL, "text": ["a..b"]}, "is not a path"),
        ({**SMALL, "finish": []}, "the end of the response is not defined"),
        ({**SMALL, "framing": "sse_text", "finish": []}, "the end of the response is not defined"),
        ({**SMALL, "reasons": {"x": "y"}}, "wire.reasons"),
        (
            {"base": "llama_cpp", "usage": {"promt": "x"}},
            "unknown setting 'backends.b.wire.usage.promt'; did you mean 'prompt'",
        ),
    ],
)
def test_a_wire_that_cannot_work_is_an_error_at_start(wire: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        adapter(wire=wire)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tool_format": "smoke"}, "there is no tool format 'smoke'; there are hermes_json"),
        ({"path": "p"}, "must begin with /"),
        ({"wires": "llama_cpp"}, "did you mean 'wire'"),
        ({"force_tools": "maybe"}, "backends.b.force_tools"),
    ],
)
def test_options_that_cannot_work_are_errors_at_start(options: dict[str, Json], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        adapter(**options)


@pytest.mark.parametrize("ends", [{"framing": "text", "ends": "close"}, {"framing": "sse_text", "last": "END"}])
def test_text_that_is_no_json_needs_no_places(ends: dict[str, Json]) -> None:
    wire: Json = {"path": "", "request": {"p": "$prompt"}, **ends}
    decoder = adapter(wire=wire).decoder(conversation())
    data = b"Hi" if ends["framing"] == "text" else b"data: Hi\n\ndata: END\n\n"
    assert fold([*decoder.feed(data), *decoder.close()]).text == "Hi"


def test_a_json_stream_may_end_with_its_body_when_the_wire_says_so() -> None:
    wire: Json = {**SMALL, "finish": [], "ends": "close"}
    decoder = adapter(wire=wire).decoder(conversation())
    events = [*decoder.feed(answers.sse({"t": "Hi"})), *decoder.close()]
    assert (fold(events).text, events[-1]) == ("Hi", Finish("stop"))
