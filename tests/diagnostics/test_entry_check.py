"""Every fault of an entry is reported, once, and nothing that only follows from another fault."""

import copy
import json
from typing import Any, Final

import pytest

from gateway.diagnostics.entry_check import entry_faults
from gateway.settings import parse_settings
from tests.adapters.proto.backend.mappings import DELTAS, PARTS, SINGLE, TALK, Entry

URL: Final = {"adapter": "proto", "base_url": "http://127.0.0.1:9"}


def changed(mapping: Entry, *changes: tuple[str, str]) -> Entry:
    """The mapping with words of its JSON replaced; each must occur."""
    text = json.dumps(mapping)
    for before, after in changes:
        assert f'"{before}"' in text, before
        text = text.replace(f'"{before}"', f'"{after}"')
    made: Entry = json.loads(text)
    return made


def faults(mapping: Entry) -> list[str]:
    entry = parse_settings(json.dumps({"backends": {"x": {**URL, **mapping}}})).backends["x"]
    before = copy.deepcopy(dict(entry.options))
    found = [fault.removeprefix("backends.x.") for fault in entry_faults("x", entry, 1 << 20)]
    assert entry.options == before
    return found


@pytest.mark.parametrize("mapping", [TALK, PARTS, DELTAS])
def test_an_entry_without_a_fault_has_none(mapping: Entry) -> None:
    assert faults(mapping) == []


def test_all_misspelt_names_are_reported_with_the_nearest() -> None:
    wrong = changed(
        TALK,
        ("carrier", "carier"),
        ("acme.talk.v1.Talk/Speak", "acme.talk.v1.Tolk/Speak"),
        ("engine", "engin"),
        ("$prompt", "$promt"),
        ("most_tokens", "most_token"),
        ("so_far", "sofar"),
        ("ENDING_FULL", "ENDING_FUL"),
        ("ENDING_BROKEN", "ENDING_BROKE"),
        ("failure.sentence", "failure.sentense"),
    )
    found = faults(wrong)
    places = {fault.removeprefix("unknown setting 'backends.x.").partition(":")[0].partition("'")[0] for fault in found}
    assert places == {
        "carier",
        "method",
        "request.engin",
        "request.text",
        "request.limits.most_token",
        "read[0].error.message",
        "read[1].text",
        "read[1].finish.reasons",
        "read[1].finish.failures",
    }
    assert len(found) == len(places) and all("did you mean" in fault for fault in found)


def test_a_misspelt_key_of_every_backend_is_one_fault() -> None:
    entry = parse_settings(
        '{"backends": {"x": {"adapter": "text", "base_url": "http://h", "api_key_enf": "K"}}}'
    ).backends
    assert entry_faults("x", entry["x"], 1 << 20) == (
        "unknown setting 'backends.x.api_key_enf'; did you mean 'api_key_env'?",
    )


def test_a_misspelt_path_of_a_condition_is_one_fault() -> None:
    found = faults(changed(PARTS, ("ended.crash", "ended.crush"), ("fully", "fuly")))
    assert [fault.partition(":")[0] for fault in found] == [
        "read[0].error.when.ended.crush",
        "read[4].finish.reasons",
    ]


def test_a_value_of_a_wrong_type_does_not_hide_the_others() -> None:
    wrong: Any = copy.deepcopy(DELTAS)
    wrong["request"]["max_tokens"] = "$model"
    wrong["read"][1]["text"] = "outputs"
    wrong["read"][2]["usage"]["completion"] = "problem"
    found = faults(wrong)
    places = [fault.partition(":")[0] for fault in found]
    assert places == ["read[1].text", "read[2].usage.completion", "request.max_tokens"]


def test_what_follows_from_a_fault_is_not_reported() -> None:
    wrong: Any = copy.deepcopy(TALK)
    wrong["read"][1]["text"] = "ending"
    assert [fault.partition(":")[0] for fault in faults(wrong)] == ["read[1].text"]


def template(mapping: Entry, **fields: Any) -> Entry:
    """The mapping with other fields in its template."""
    made: Entry = copy.deepcopy(mapping)
    made["request"].update(fields)
    return made


@pytest.mark.parametrize(
    ("mapping", "fault"),
    [
        (
            template(DELTAS, model="$calls"),
            "request.model: $calls cannot stand here: it belongs inside the items of $turns; here stand $model,",
        ),
        (
            template(DELTAS, model="$text"),
            "request.model: $text cannot stand here: it belongs inside the items of $turns and $parts; here stand",
        ),
        (
            template(DELTAS, model="$prompt"),
            "request.model: $prompt cannot stand here: it belongs in a template without $turns, of one text; here",
        ),
        (
            template(TALK, engine="$choice"),
            "request.engine: $choice cannot stand here: it belongs in a template with $turns; here stand",
        ),
        (
            template(DELTAS, model={"$each": "$turns", "as": "$text"}),
            "request.model: $each cannot stand here: it gives several items, and the field is of one string; write",
        ),
        (
            template(PARTS, choice={"$each": "$turns", "as": {}}),
            "request.choice: $each cannot stand here: it gives several items, and the field is of one",
        ),
        (
            template(PARTS, choice={"$json": "$schema"}),
            "request.choice: $json cannot stand here: JSON is text, and the field is of acme.parts.v1.Choice; write",
        ),
        (
            template(PARTS, labels={"from": {"$each": "$tools", "as": "x"}}),
            "request.labels.from: $each cannot stand here: it gives several items, and the field is of one string",
        ),
        (
            template(DELTAS, stop={"$json": ["x"]}),
            "request.stop: $json cannot stand here: the field is repeated; write a list, with $json in its items,",
        ),
        (
            {**DELTAS, "request": {"$case": "$choice", "none": {"messages": "$turns"}}},
            "request: $case cannot stand here: the whole request is one message; write an object of its fields,",
        ),
    ],
)
def test_a_name_or_a_key_that_is_misused_is_one_fault_with_its_reason(mapping: Entry, fault: str) -> None:
    assert [found[: len(fault)] for found in faults(mapping)] == [fault]


def test_what_follows_from_a_guessed_name_is_no_fault_of_its_own() -> None:
    """`$modle` is taken for `$model`, which a repeated field does not take; the client's author meant neither."""
    found = faults(template(DELTAS, stop="$modle"))
    assert found == ["request.stop: there is no name '$modle' here; did you mean '$model'?"]


def test_each_of_one_message_is_one_fault() -> None:
    wrong = copy.deepcopy(SINGLE)
    call = {"each": "message.function_call", "name": "name", "arguments": "arguments"}
    wrong["read"][0]["rules"][1]["call"] = call
    (fault,) = faults(wrong)
    said = "'function_call' is one message, which needs no `each`: name it in the paths ('message.function_call.FIELD')"
    assert fault == f"read[0].rules[1].call.each: {said}"
