"""Every preset is loaded by its name alone, conforms, and answers over the carrier that it names."""

import json
import re
from typing import Any, Final
from uuid import UUID

import pytest
from google.protobuf.json_format import ParseDict

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.backend.schema import Schema, message_class
from gateway.core.conversation import Conversation, Json, Sampling, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.registry import load_adapters
from gateway.settings import check_options, read_settings
from gateway.testing.conformance import CHECKS, Case, Check
from gateway.testing.events import fold
from gateway.testing.gateway import running_gateway
from gateway.testing.golden import Golden, read_all
from tests.adapters.proto.backend.grpc_server import grpc_backend, sends
from tests.adapters.proto.backend.mappings import SET
from tests.adapters.proto.backend.services import grpc
from tests.adapters.proto.backend.test_conformance import TOOLS
from tests.golden_wires import READERS, preset_messages
from tests.paths import ROOT
from tests.promises.wire_gateway import frames, text_of
from tests.tiers import sample

FOLDER: Final = ROOT / "adapters" / "proto" / "presets"
# The demo backend has tests of its own.
PRESETS: Final = [path.stem for path in sorted(FOLDER.glob("*.json")) if path.stem != "demo"]
GOLDENS: Final[dict[str, Golden]] = {
    golden.folder.name.removeprefix("proto_"): golden
    for golden in read_all(ROOT / "tests" / "golden", READERS)
    if golden.scenario.options.get("preset") in PRESETS
}
OVER_GRPC: Final = [name for name in PRESETS if name != "warp"]


def options(name: str, **own: Json) -> ProtoOptions:
    return check_options({"preset": name, **own}, ProtoOptions, "options")


def case(name: str) -> Case:
    golden = GOLDENS[name]
    capabilities = ProtoAdapter(options(name), 1 << 20).capabilities
    structured = capabilities.tools and not capabilities.text_only
    turns = (Turn("user", (Text("Where?"),), index=0),)
    conversation = Conversation(turns, TOOLS if structured else (), model="model", stream=True)
    return Case(name, ProtoAdapter, golden.wire, conversation=conversation, options=golden.scenario.options)


def test_every_preset_has_a_golden_scenario() -> None:
    assert sorted(GOLDENS) == PRESETS
    assert all(golden.scenario.options["preset"] == name for name, golden in GOLDENS.items())


@pytest.mark.parametrize("name", ["gemini_grpc", "vertex_grpc"])
def test_five_stop_sequences_are_sent_to_gemini_and_all_are_watched_for(name: str) -> None:
    made = ProtoAdapter(options(name), 1 << 20)
    stops = tuple(f"stop {count}" for count in range(7))
    asked = Conversation((Turn("user", (Text("Where?"),), index=0),), model="m", sampling=Sampling(stop=stops))
    described = str(made.describe(made.encode(asked, Policy()).body))
    assert [stop for stop in stops if stop in described] == [*stops[:5]]
    assert "stop" not in made.capabilities.supported_params


def test_the_warp_preset_allows_no_tool_of_the_wire() -> None:
    """An empty list allows every tool, whose calls a mapping cannot read."""
    made = ProtoAdapter(options("warp"), 1 << 20)
    asked = Conversation((Turn("user", (Text("Where?"),), index=0),), model="m")
    described: Any = made.describe(made.encode(asked, Policy()).body)
    assert described["settings"]["supported_tools"] == ["TOOL_CALL_MCP_TOOL"]


CANDIDATES: Final[dict[str, tuple[str, dict[str, Json], dict[str, Json]]]] = {
    "gemini_grpc": ("candidates", {"content": {"parts": [{"text": "a"}]}}, {"finishReason": "STOP"}),
    "vertex_grpc": ("candidates", {"content": {"parts": [{"text": "a"}]}}, {"finishReason": "STOP"}),
    "xai": ("outputs", {"delta": {"content": "a"}}, {"finishReason": "REASON_STOP"}),
}
_GOOGLE: Final = {"promptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 100, "totalTokenCount": 112}
USAGE: Final[dict[str, dict[str, Json]]] = {
    "gemini_grpc": {"usageMetadata": {**_GOOGLE}},
    "vertex_grpc": {"usageMetadata": {**_GOOGLE}},
    "xai": {"usage": {"promptTokens": 7, "completionTokens": 5, "reasoningTokens": 100, "totalTokens": 112}},
}


def answered(name: str, *messages: dict[str, Json]) -> list[Event]:
    """What these messages of the preset's backend become."""
    made = ProtoAdapter(options(name), 1 << 20)
    response = message_class(Schema(made.schema).method(options(name).method).response)
    decoder = made.decoder(Conversation((Turn("user", (Text("Where?"),), index=0),)))
    found = decoder.feed(grpc([ParseDict(message, response()).SerializeToString() for message in messages]))
    return [*found, *decoder.trailers({"grpc-status": "0"}), *decoder.close()]


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_completion_has_the_tokens_of_the_reasoning_as_it_has_on_the_json_wires(name: str) -> None:
    """xAI and Google count the reasoning apart: xAI, "Consumption and rate limits"; `UsageMetadata` of both Geminis."""
    field, text, finish = CANDIDATES[name]
    found = answered(name, {field: [{**text, **finish}], **USAGE[name]})
    details: dict[str, Json] = {"completion_tokens_details": {"reasoning_tokens": 100}}
    assert fold(found).usage == UsageReport(7, 105, 112, extra=details)


@pytest.mark.parametrize("name", CANDIDATES)
def test_late_text_and_other_choices_are_told_and_dropped(name: str) -> None:
    field, text, finish = CANDIDATES[name]
    other = {**text, "index": 1}
    found = answered(name, {field: [text, other]}, {field: [finish]}, {field: [text]})
    assert fold(found).text == "a"
    assert [event.rule for event in found if isinstance(event, Notice)] == ["OTHER_CHOICE", "LATE_CONTENT"]


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"type": "json_object"}, {"format_type": "FORMAT_TYPE_JSON_OBJECT"}),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
            {"format_type": "FORMAT_TYPE_JSON_SCHEMA", "schema": '{"type":"object"}'},
        ),
        ({"type": "text"}, None),
    ],
)
def test_xai_gets_json_objects_apart_from_schemas(asked: Json, sent: Json) -> None:
    """Source: xai-sdk 1.21, `FormatType`."""
    made = ProtoAdapter(options("xai"), 1 << 20)
    turns = (Turn("user", (Text("Where?"),), index=0),)
    described: Any = made.describe(
        made.encode(Conversation(turns, model="m", params={"response_format": asked}), Policy()).body
    )
    assert described.get("response_format") == sent


GOOGLE_ENDS: Final[dict[str, dict[str | int, str]]] = {
    "gemini_grpc": {
        **dict.fromkeys(
            ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "content_filter"
        ),
        **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"),
        **dict.fromkeys(("OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "failure"),
        **dict.fromkeys(("IMAGE_OTHER", "NO_IMAGE"), "failure"),
    },
    "vertex_grpc": {
        **dict.fromkeys(
            ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"), "content_filter"
        ),
        **dict.fromkeys(("OTHER", "MALFORMED_FUNCTION_CALL"), "failure"),
        # IMAGE_SAFETY, IMAGE_PROHIBITED_CONTENT, IMAGE_RECITATION; IMAGE_OTHER, UNEXPECTED_TOOL_CALL, NO_IMAGE
        **dict.fromkeys((11, 12, 13), "content_filter"),
        **dict.fromkeys((14, 15, 16), "failure"),
    },
}


@pytest.mark.parametrize(("name", "word"), [(name, word) for name, words in GOOGLE_ENDS.items() for word in words])
def test_each_end_of_a_gemini_is_what_it_is_on_the_json_wire(name: str, word: str | int) -> None:
    """Sources: the packages that requirements/grpc/schemas.txt pins; of the numbers, which the one of Vertex lacks, the
    client of aiplatform v1 in Google's command line (`gapic_clients/aiplatform_v1/types/content.py`)."""
    told = GOOGLE_ENDS[name][word]
    message: dict[str, Json] = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": word}]}
    if told == "failure":
        with pytest.raises(BackendError) as failed:
            answered(name, message)
        assert failed.value.code == "upstream_stream_truncated"
        return
    answer = fold(answered(name, message))
    assert answer.finish is not None and (answer.finish.reason, answer.text) == (told, "a")


@pytest.mark.parametrize("word", ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"])
def test_a_prompt_that_gemini_blocks_is_an_answer_that_a_filter_ended(word: str) -> None:
    answer = fold(answered("gemini_grpc", {"promptFeedback": {"blockReason": word}}))
    assert answer.finish is not None and answer.finish.reason == "content_filter"


@pytest.mark.parametrize(
    ("effort", "config", "told"),
    [
        ("none", {"include_thoughts": True, "thinking_level": "LOW"}, ["EFFORT_CHANGED"]),
        ("minimal", {"include_thoughts": True, "thinking_level": "LOW"}, ["EFFORT_CHANGED"]),
        ("low", {"include_thoughts": True, "thinking_level": "LOW"}, []),
        ("medium", {"include_thoughts": True, "thinking_level": "MEDIUM"}, []),
        ("high", {"include_thoughts": True, "thinking_level": "HIGH"}, []),
        ("xhigh", {"include_thoughts": True, "thinking_level": "HIGH"}, ["EFFORT_CHANGED"]),
        (None, None, []),
    ],
)
def test_gemini_3_gets_the_effort_as_a_level_and_what_changes_is_told(
    effort: str | None, config: Json, told: list[str]
) -> None:
    """Source: Vertex AI, "Thinking": Gemini 3 takes a level and cannot be switched off, and LOW is the least level that
    each of its models has."""
    made = ProtoAdapter(options("vertex_grpc_level"), 1 << 20)
    params: dict[str, Json] = {} if effort is None else {"reasoning_effort": effort}
    asked = Conversation((Turn("user", (Text("Where?"),), index=0),), model="m", params=params)
    request = made.encode(asked, Policy())
    described: Any = made.describe(request.body)
    assert described.get("generation_config", {}).get("thinking_config") == config
    assert [notice.rule for notice in request.notices] == told


def test_the_presets_of_vertex_differ_in_the_effort_alone() -> None:
    budget, level = [
        json.loads((FOLDER / f"{name}.json").read_bytes()) for name in ("vertex_grpc", "vertex_grpc_level")
    ]
    configs = [entry["request"]["generation_config"].pop("thinking_config") for entry in (budget, level)]
    assert budget == level and configs[0] != configs[1]


def test_a_failure_of_dynamo_beside_a_status_of_success_is_an_error() -> None:
    """Source: its frontend sends `error_message` and goes on (`model_stream_infer` of lib/llm/src/grpc/service)."""
    with pytest.raises(BackendError) as failed:
        answered("dynamo", {"errorMessage": "a worker left"})
    assert (failed.value.status, failed.value.code, failed.value.words) == (502, "upstream_error", "a worker left")


def test_dynamos_frontend_gets_no_tensor_that_it_refuses() -> None:
    """Source: `openai.rs` beside it refuses any other input than `text_input` and `streaming` (or `stream`)."""
    made = ProtoAdapter(options("dynamo"), 1 << 20)
    sampling = Sampling(max_tokens=9, temperature=0.5, stop=("END",))
    asked = Conversation((Turn("user", (Text("Where?"),), index=0),), TOOLS, model="m", sampling=sampling)
    described = made.describe(made.encode(asked, Policy()).body)
    assert isinstance(described, dict) and isinstance(inputs := described["inputs"], list)
    assert [one["name"] for one in inputs if isinstance(one, dict)] == ["text_input", "streaming"]
    assert not {"max_tokens", "temperature"} & made.capabilities.supported_params


@sample()
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", PRESETS)
def test_presets_conform(name: str, check: Check) -> None:
    check(case(name))


@pytest.mark.parametrize("name", OVER_GRPC)
async def test_a_preset_answers_over_its_own_carrier(name: str) -> None:
    chosen = options(name)
    assert chosen.carrier == "grpc"
    text = (GOLDENS[name].folder / "backend_wire.preset").read_text(encoding="utf-8")
    _, messages, _ = preset_messages(text)
    with grpc_backend(f"/{chosen.method}", sends(messages), "server stream") as backend:
        settings: dict[str, Json] = {
            "backends": {"b": {"adapter": "proto", "preset": name, "base_url": backend.base_url}},
            "models": {"m": {"backend": "b"}},
        }
        tools: list[Json] = [{"type": "function", "function": {"name": "look"}}]
        async with running_gateway(settings) as gateway:
            asked: list[Json] = [{"role": "user", "content": "Hello"}]
            response = await gateway.chat(stream=True, messages=asked, tools=tools)
    assert response.status_code == 200, response.text
    *data, done = frames(response.text)
    assert (text_of(data) in ("Good morning.", "I look again. "), done) == (True, "[DONE]")
    for key, value in chosen.metadata.items():
        sent = backend.metadata[0][key]
        assert sent == (str(UUID(sent)) if value == "$request_id" else value.replace("$model", "m"))


@pytest.mark.parametrize("name", ["gemini_grpc", "vertex_grpc"])
async def test_the_state_cache_keeps_the_signature_of_a_call(name: str) -> None:
    method = Schema(options(name).schema).method(options(name).method)
    part = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2lnbmVk"}
    answer = ParseDict(
        {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}, message_class(method.response)()
    )
    with grpc_backend(method.path, sends([answer.SerializeToString()])) as backend:
        settings: dict[str, Json] = {
            "backends": {"b": {"adapter": "proto", "preset": name, "base_url": backend.base_url}},
            "models": {"m": {"backend": "b"}},
            "keeper": {"enabled": True},
        }
        tools: list[Json] = [{"type": "function", "function": {"name": "look"}}]
        async with running_gateway(settings) as gateway:
            asked: list[Json] = [{"role": "user", "content": "Hello"}]
            said = (await gateway.chat(messages=asked, tools=tools)).json()["choices"][0]["message"]
            call = {key: said["tool_calls"][0][key] for key in ("id", "type", "function")}
            asked.append({"role": "assistant", "content": None, "tool_calls": [call]})
            asked.append({"role": "tool", "tool_call_id": call["id"], "content": "A door."})
            await gateway.chat(messages=asked, tools=tools)
    sent: Any = message_class(method.request).FromString(backend.requests[1])
    (found,) = sent.contents[1].parts
    assert (found.function_call.name, found.thought_signature) == ("look", b"signed")


def test_the_keys_of_the_entry_win() -> None:
    own = options("xai", max_tokens=7, schema={"set": SET}, carrier="connect")
    assert (own.max_tokens, own.carrier, own.schema.source) == (7, "connect", SET)
    assert (own.method, own.request) == (options("xai").method, options("xai").request)


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_has_a_page_whose_entry_is_loaded(name: str) -> None:
    page = (ROOT / "docs" / "proto" / f"{name}.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"```json\n(.+?)```", page, re.DOTALL)
    settings = read_settings({"backends": {"b": json.loads(written)}})
    assert settings.backends["b"].options["preset"] == name
    load_adapters(settings)
    for place in ("docs/index.md", "docs/proto-backends.md"):
        assert f"proto/{name}.md" in (ROOT / place).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["gigachat", "yandex"])
def test_a_missing_id_is_no_mistake_where_the_mapping_reads_none(name: str) -> None:
    text = (GOLDENS[name].folder / "backend_wire.preset").read_text(encoding="utf-8")
    _, messages, _ = preset_messages(text)
    made = ProtoAdapter(options(name), 1 << 20)
    decoder = made.decoder(Conversation((Turn("user", (Text("Where?"),), index=0),)))
    found = [notice for event in decoder.feed(grpc(messages)) if isinstance(notice := event, Notice)]
    found += [event for event in decoder.trailers({"grpc-status": "0"}) if isinstance(event, Notice)]
    assert {(notice.rule, notice.level) for notice in found} == {("CALL_ID_ADDED", "debug")}
