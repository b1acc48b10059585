"""The names that few wires have: formats, ids of requests, failures, speakers, details of images, and wrapper types."""

import copy
import json
import re
from typing import Any, Final

import pytest

from adapters.proto.backend.schema import Schema, message_class
from adapters.proto.backend.template_keys import joined_fields
from gateway.core.conversation import (
    NO_REQUEST,
    Conversation,
    Image,
    Json,
    JsonObject,
    NamedTool,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import OptionError, Unsupported
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.adapters.proto.backend.grpc_server import sends
from tests.adapters.proto.backend.mappings import FORMS, LISTS, RELAY, SINGLE, TALK, TENSORS, Entry
from tests.adapters.proto.backend.services import ANSWERS, METHODS
from tests.adapters.proto.backend.test_encode import USER, adapter, sent
from tests.adapters.proto.backend.test_grpc import HELLO, served
from tests.adapters.proto.backend.test_mistakes import refusal

SHAPE: Final[JsonObject] = {"type": "object", "properties": {"at": {"type": "string"}}}


def written(entry: Entry, **keys: Any) -> Entry:
    """The mapping with other fields in its template. (Any: JSON.)"""
    return {**entry, "request": {**copy.deepcopy(entry["request"]), **keys}}


def rules(entry: Entry, conversation: Conversation) -> list[str]:
    """The notices of a whole exchange."""
    return [f"{one.rule}: {one.detail}" for one in Exchange(adapter(entry), conversation, Policy()).notices]


def shaped(kind: str) -> Conversation:
    described: Json = {"name": "n", "schema": dict(SHAPE)}
    shape: Json = {"type": kind, "json_schema": described} if kind == "json_schema" else {"type": kind}
    return Conversation((USER,), params={"response_format": shape})


def test_an_object_is_told_from_a_schema() -> None:
    assert "response_format" in adapter(LISTS).capabilities.supported_params
    any_object, by_schema, text = (
        sent("lists", LISTS, shaped(kind)) for kind in ("json_object", "json_schema", "text")
    )
    assert [one.WhichOneof("format") for one in (any_object, by_schema, text)] == ["json_object", "json_schema", None]
    assert any_object.json_object and by_schema.json_schema.schema["type"] == "object"


@pytest.mark.parametrize(
    ("known", "refused"), [("json_object", "json_schema"), ("json_schema", "json_object"), ("json_schema", "grammar")]
)
def test_a_format_without_a_word_is_refused_by_name_and_alone(known: str, refused: str) -> None:
    entry = copy.deepcopy(LISTS)
    del entry["request"]["json_object" if known == "json_schema" else "json_schema"]
    assert sent("lists", entry, shaped(known)).WhichOneof("format") == known
    with pytest.raises(Unsupported) as told:
        sent("lists", entry, shaped(refused))
    said = f"response_format {refused!r} is not supported: this model's backend has only {known!r}."
    assert (told.value.message, told.value.param) == (said, "response_format")


def test_a_schema_alone_takes_any_object_as_before() -> None:
    assert sent("forms", FORMS, shaped("json_object")).shape.struct_value["type"] == "object"


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_tool_says_whether_it_is_strict(strict: bool | None) -> None:
    tool = ToolSpec("look", parameters=SHAPE, strict=strict)
    asked = Conversation((USER,), (tool,))
    assert sent("lists", LISTS, asked).tools[0].function.strict is (strict is True)
    assert rules(LISTS, asked) == []
    assert "strict" in adapter(LISTS).capabilities.carries
    unsaid = [one for one in rules(SINGLE, asked) if "strict" in one]
    assert bool(unsaid) is (strict is not None)


def failed(is_error: bool) -> Conversation:
    call = Turn("assistant", (ToolCall("c1", "look", "{}"),), index=1)
    result = Turn("tool", (ToolResult("c1", (Text("No."),), is_error),), index=2)
    return Conversation((USER, call, result), (ToolSpec("look", parameters=SHAPE),), model="m")


@pytest.mark.parametrize("is_error", [True, False])
def test_a_result_says_whether_it_is_a_failure(is_error: bool) -> None:
    result = json.loads(sent("single", SINGLE, failed(is_error)).messages[-1].content)
    assert result == {"result": "No.", **({"failed": True} if is_error else {})}
    assert "is_error" in adapter(SINGLE).capabilities.carries
    assert not [one for one in rules(SINGLE, failed(is_error)) if "is_error" in one]
    assert bool([one for one in rules(LISTS, failed(is_error)) if "is_error" in one]) is is_error


def test_a_failure_may_choose_between_two_values() -> None:
    content = {"$with": "$is_error", "role": "function", "content": "$text", "name": "failed"}
    fine = {"$without": "$is_error", "role": "function", "content": "$text", "name": "$name"}
    entry = copy.deepcopy(SINGLE)
    entry["request"]["messages"]["tool"] = [content, fine]
    assert [sent("single", entry, failed(one)).messages[-1].name for one in (True, False)] == ["failed", "look"]


def test_a_speaker_has_a_name_and_one_without_a_place_is_told() -> None:
    turns = (Turn("user", (Text("Hi"),), name="Ann"), Turn("assistant", (Text("Ho"),), name="Bob"), USER)
    asked = Conversation(turns)
    assert [one.name for one in sent("single", SINGLE, asked).messages] == ["Ann", "", ""]
    told = [one for one in rules(SINGLE, asked) if "name" in one]
    assert told == ["FIELD_NOT_SENT: the backend has no field for name (1) of messages"]
    assert "name (2)" in " ".join(rules(LISTS, asked))


def with_detail(form: Json) -> Entry:
    """The mapping of `forms` with this form of an image's type."""
    entry = copy.deepcopy(FORMS)
    entry["request"]["entries"]["user"]["blocks"]["image"] = {"media": {"type": form, "data": "$bytes"}}
    return entry


def pictured(detail: str | None) -> Conversation:
    extra: JsonObject = {} if detail is None else {"detail": detail}
    return Conversation((Turn("user", (Text("See"), Image("data:image/png;base64,aW1hZ2U=", extra))),))


def test_the_detail_of_an_image_is_text_or_a_case() -> None:
    def typed(entry: Entry, detail: str | None) -> str:
        return str(sent("forms", entry, pictured(detail)).entries[0].blocks[1].media.type)

    plain, cases = with_detail("$detail"), with_detail({"$case": "$detail", "high": "fine"})
    assert [typed(plain, one) for one in ("low", "other", None)] == ["low", "other", ""]
    assert [typed(cases, one) for one in ("high", "low", "auto", None)] == ["fine", "", "", ""]
    assert adapter(cases).capabilities.carries >= {"detail"}
    assert rules(plain, pictured("low")) == rules(cases, pictured("auto")) == rules(cases, pictured(None)) == []
    assert rules(cases, pictured("low")) == ["FIELD_NOT_SENT: the backend has no field for detail (1) of messages"]
    assert rules(FORMS, pictured("low")) == ["FIELD_NOT_SENT: the backend has no field for detail (1) of messages"]


UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


async def test_every_request_has_an_id_of_its_own_in_its_message_and_its_metadata() -> None:
    own = {"x-request-id": "$request_id", "x-model": "$model of $request_id"}
    async with served("lists", sends(ANSWERS["lists"]), metadata=own) as (gateway, backend):
        for _ in range(3):
            assert (await gateway.chat(stream=True, messages=HELLO)).status_code == 200
    made = message_class(METHODS["lists"].request)
    asked: list[Any] = [made.FromString(request) for request in backend.requests]
    ids = [one.options.trace.value for one in asked]
    assert len({*ids}) == 3 and all(UUID.fullmatch(one) for one in ids)
    assert [one["x-request-id"] for one in backend.metadata] == ids
    assert [one["x-model"] for one in backend.metadata] == [f"m of {one}" for one in ids]


@pytest.mark.parametrize(
    ("entry", "has"),
    [
        (LISTS, True),
        (SINGLE, True),
        (FORMS, False),
        (written(TALK, engine="$request_id"), True),
        (TALK, False),
    ],
)
def test_only_a_mapping_with_the_name_has_an_id_for_each_request(entry: Entry, has: bool) -> None:
    assert adapter(entry).capabilities.request_id is has


def test_a_request_that_is_not_sent_has_the_id_of_none() -> None:
    assert sent("talk", written(TALK, engine="$request_id"), Conversation((USER,))).engine == NO_REQUEST


WRAPPED: Final = {
    "temperature": "DoubleValue",
    "max_tokens": "Int64Value",
    "trace": "StringValue",
    "one_call": "BoolValue",
}


def options(**fields: Json) -> Any:
    """The options of a request whose template has these. (Any: its class exists only at run time.)"""
    asked = Conversation(
        (USER,), sampling=Sampling(temperature=0.0, max_tokens=7), model="m", params={"parallel_tool_calls": False}
    )
    return sent("lists", written(LISTS, options=dict(fields)), asked).options


def test_wrappers_are_written_by_themselves() -> None:
    names: dict[str, Json] = {
        "temperature": "$temperature",
        "max_tokens": "$max_tokens",
        "trace": "of $model",
        "one_call": "$request.parallel_tool_calls",
    }
    made = options(**names)
    assert all(made.HasField(name) for name in WRAPPED)
    assert (made.temperature.value, made.max_tokens.value, made.trace.value) == (0.0, 7, "of m")
    assert made.one_call.value is False
    constants = options(temperature=0.5, max_tokens=9, trace="x", one_call=True)
    found = [getattr(constants, name).value for name in WRAPPED]
    assert found == [0.5, 9, "x", True]
    assert options(trace={"$json": {"at": "$max_tokens"}}).trace.value == '{"at":7}'
    assert options(max_tokens={"value": "$max_tokens"}).max_tokens.value == 7
    assert options(one_call={"$case": "$choice", "auto": True}).one_call.value is True
    assert not options(stream=True, max_tokens="$seed").HasField("max_tokens")


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapper_refuses_what_its_value_cannot_be(name: str) -> None:
    wrong: Json = 7 if name == "trace" else "x"
    place = f"backends.x.request.options.{name}: {json.dumps(wrong)} is no value of google.protobuf.{WRAPPED[name]}"
    assert refusal(written(LISTS, options={name: wrong})).startswith(place)


def tensor(content: Json) -> Entry:
    """The mapping of `tensors` with a tensor of parameters."""
    made = {"name": "parameters", "datatype": "BYTES", "shape": [1], "contents": {"bytes_contents": [content]}}
    return written(TENSORS, inputs=[*TENSORS["request"]["inputs"], made])


def test_json_of_an_object_whose_names_have_no_value_is_an_empty_object() -> None:
    """A tensor of shape 1 has one element, also for a request without parameters."""
    entry = tensor({"$json": {"seed": "$seed", "deep": {"top_p": "$top_p"}}})
    (_, _, parameters) = sent("tensors", entry, Conversation((USER,))).inputs
    assert [*parameters.contents.bytes_contents] == [b"{}"]
    (_, _, parameters) = sent("tensors", entry, Conversation((USER,), sampling=Sampling(seed=0))).inputs
    assert [*parameters.contents.bytes_contents] == [b'{"seed":0}']
    without: list[Json] = [{"$with": "$seed", "seed": "$seed"}, "$schema"]
    for left_out in without:
        (_, _, parameters) = sent("tensors", tensor({"$json": left_out}), Conversation((USER,))).inputs
        assert [*parameters.contents.bytes_contents] == []


def in_json(shape: Json) -> Entry:
    """The mapping of `lists` with JSON of this shape in a text."""
    return written(LISTS, model={"$json": shape})


@pytest.mark.parametrize(
    ("shape", "made"),
    [
        ({"m": "models/$model", "price": "US$5"}, '{"m":"models/m","price":"US$5"}'),
        ({"$case": "$choice", "auto": {"seed": "$seed"}}, "{}"),
        ({"$with": "$model", "as": {"seed": "$seed"}}, "{}"),
        ({"inner": {"seed": "$seed"}}, "{}"),
        ({"$each": "$tools", "as": "$name"}, ""),
    ],
)
def test_json_has_names_behind_a_text_and_is_an_empty_object_without_values(shape: Json, made: str) -> None:
    asked = Conversation((USER,), model="m")
    assert sent("lists", in_json(shape), asked).model == made


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"m": "the $model of it"}, "$json.m: a name cannot stand inside a text, other than at its end"),
        ({"m": "of $stop"}, "$json.m: text stands before a text only; $stop is a list"),
        ({"m": "of $modl"}, "$json.m: there is no name '$modl' here; did you mean '$model'?"),
        ({"m": {"$json": "$model"}}, "$json.m: $json cannot stand in JSON, where a value stands for itself"),
    ],
)
def test_a_name_that_json_cannot_hold_is_told(shape: Json, said: str) -> None:
    assert refusal(in_json(shape)).startswith(f"backends.x.request.model.{said}")


def test_a_struct_has_names_behind_a_text() -> None:
    parameters: Json = {"of": "tool $name", "schema": "$parameters"}
    tools: Json = {"$each": "$tools", "as": {"function": {"name": "$name", "parameters": parameters}}}
    made = sent("lists", written(LISTS, tools=tools), Conversation((USER,), (ToolSpec("look"),)))
    assert dict(made.tools[0].function.parameters) == {"of": "tool look"}


def test_a_field_of_the_client_has_a_value_beside_its_request_as_json() -> None:
    entry = {**RELAY, "request": {**RELAY["request"], "engine": "$request.user"}}
    assert sent("relay", entry, Conversation((USER,), params={"user": "ann"})).engine == "ann"


def test_images_are_sent_as_their_bytes_or_by_their_url_where_both_have_a_place() -> None:
    entry = copy.deepcopy(FORMS)
    entry["request"]["entries"]["user"]["blocks"]["image"] = [
        {"$with": "$bytes", "media": {"data": "$bytes"}},
        {"$without": "$bytes", "media": {"url": "$url"}},
    ]
    assert adapter(entry).capabilities.remote_images
    images = (Image("data:image/png;base64,aW1hZ2U="), Image("https://host/x.png"))
    blocks = sent("forms", entry, Conversation((Turn("user", images),))).entries[0].blocks
    assert [(one.media.data, one.media.url) for one in blocks] == [(b"image", ""), (b"", "https://host/x.png")]


def test_a_chosen_tool_needs_the_word_that_gives_it_a_value() -> None:
    said = "backends.x.request: $chosen has a value only with the word 'named' of $choice, which is missing"
    assert refusal(written(LISTS, choice={"function_name": "$chosen"})) == said


def test_cases_exclude_each_other_under_a_condition_too() -> None:
    def where(word: str, value: str) -> Json:
        return {"$with": "$tools", "as": {"$case": "$choice", word: value}}

    entry = written(LISTS, choice={"mode": where("auto", "AUTO"), "function_name": where("named", "$chosen")})
    made = sent("lists", entry, Conversation((USER,), (ToolSpec("look"),), NamedTool("look")))
    assert made.choice.function_name == "look"
    both = written(LISTS, choice={"mode": where("named", "AUTO"), "function_name": where("named", "$chosen")})
    assert "'mode' and 'function_name' are of one oneof" in refusal(both)


def test_a_repeated_field_says_what_can_stand_there() -> None:
    results: Json = {"name": "$name", "content": "$text"}
    entry = copy.deepcopy(LISTS)
    entry["request"]["messages"]["tool"]["result_list"]["results"] = results
    said = "the field is repeated; write a list, $each, $case, or $with and 'as'"
    assert refusal(entry) == f"backends.x.request.messages.tool.result_list.results: {said}"


def test_a_map_is_no_list_in_which_neighbours_are_joined() -> None:
    calls: JsonObject = {"$each": "$turns", "by": "$role", "together": "fields", "user": {}, "assistant": {}}
    fields = Schema(adapter(FORMS).schema).method(FORMS["method"]).request.fields_by_name["entries"].message_type
    call = fields.fields_by_name["blocks"].message_type.fields_by_name["call"]
    with pytest.raises(OptionError, match="'fields' is a map; neighbours are joined in a list"):
        joined_fields(calls, call, "request")


def test_the_places_of_texts_that_are_joined_are_told() -> None:
    said: Json = {"name": "$text", "contents": {"bytes_contents": "$stop"}}
    turns = dict.fromkeys(("system", "user", "assistant"), said)
    inputs: Json = {"$each": "$turns", "by": "$role", "together": "contents.bytes_contents", **turns}
    asked = Conversation((USER, USER), sampling=Sampling(stop=("a", "b")))
    places = adapter(written(TENSORS, inputs=inputs)).field_places(asked, Policy())
    found = [(one.field.rpartition(".")[2], one.value) for one in places if "bytes_contents" in one.field]
    assert found == [(f"bytes_contents[{n}]", word) for n, word in enumerate("abab")]
