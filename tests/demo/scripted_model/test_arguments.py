import pytest

from gateway.core.conversation import Json
from gateway.demo.scripted_model.arguments import build_arguments, build_value
from tests.fuzz.counted import Work, count_work, growth


def built(schema: Json, phrase: str, name: str = "value") -> Json:
    parameters: dict[str, Json] = {"type": "object", "properties": {name: schema}, "required": [name]}
    return build_arguments(parameters, phrase)[name]


@pytest.mark.parametrize(
    ("name", "schema", "phrase", "expected"),
    [
        ("city", {"type": "string"}, "the weather in New York", "New York"),
        ("label", {"type": "string"}, 'call it "blue moon"', "blue moon"),
        ("destination", {"type": "string"}, "Monday to Rome", "Rome"),
        ("city", {"type": "string"}, "Tomorrow in Rome", "Rome"),
        ("dirpath", {"type": "string"}, "list the files", "."),
        ("folder", {"type": "string"}, "list ./src/demo", "./src/demo"),
        ("pattern", {"type": "string"}, "search for swordfish", "swordfish"),
        ("pattern", {"type": "string"}, 'find all "*.py"', "*.py"),
        ("pattern", {"type": "string"}, "show me all", "*"),
        ("commands", {"type": "array", "items": {"type": "string"}}, "run the tests with Pytest", ["ls"]),
        ("commands", {"type": "array", "items": {"type": "string"}}, "run `a` and run `b`", ["a", "b"]),
        (
            "urls",
            {"type": "array", "items": {"type": "string"}},
            "https://a.b/1, https://a.b/2",
            ["https://a.b/1", "https://a.b/2"],
        ),
        ("query", {"type": "string"}, "find the best pizza", "find the best pizza"),
        ("path", {"type": "string"}, "open src/main.py please", "src/main.py"),
        ("command", {"type": "string"}, "delete all my files", "ls"),
        ("command", {"type": "string"}, "run `make test`", "make test"),
        ("expression", {"type": "string"}, "what is 2 * (3 + 4)?", "2 * (3 + 4)"),
        ("url", {"type": "string"}, "fetch https://example.org/a?b=1.", "https://example.org/a?b=1"),
        ("to", {"type": "string", "format": "email"}, "nothing", "someone@example.com"),
        ("start", {"type": "string", "format": "date"}, "nothing", "2026-01-31"),
        ("date", {"type": "string"}, "on 2026-05-04", "2026-05-04"),
        ("code", {"type": "string", "maxLength": 2}, "`abcdef`", "ab"),
        ("n", {"type": "integer"}, "give me 7 of them", 7),
        ("n", {"type": "integer"}, "give me three", 3),
        ("n", {"type": "integer"}, "give me some", 1),
        ("n", {"type": "integer", "default": 5}, "give me some", 5),
        ("n", {"type": "integer", "minimum": 10}, "give me 7", 10),
        ("n", {"type": "integer", "exclusiveMaximum": 5}, "give me 7", 4),
        ("n", {"type": "number"}, "exactly 1.5", 1.5),
        ("n", {"type": ["integer", "null"]}, "give me 4", 4),
        ("n", {"anyOf": [{"type": "null"}, {"type": "integer"}]}, "give me 4", 4),
        ("unit", {"enum": ["celsius", "fahrenheit"]}, "in Fahrenheit", "fahrenheit"),
        ("unit", {"enum": ["celsius", "fahrenheit"]}, "whatever", "celsius"),
        ("kind", {"const": "fixed"}, "whatever", "fixed"),
        ("verbose", {"type": "boolean"}, "tell me", True),
        ("verbose", {"type": "boolean"}, "do it without verbose output", False),
        ("nothing", {"type": "null"}, "x", None),
        ("names", {"type": "array", "items": {"type": "string"}}, "greet Anna and Ben", ["Anna", "Ben"]),
        ("values", {"type": "array", "items": {"type": "number"}}, "the sum of 1, 2 and 3.5", [1, 2, 3.5]),
        ("things", {"type": "array", "items": {"type": "integer"}, "minItems": 2}, "no numbers", [1, 1]),
        ("free", {}, 'say "this"', "this"),
        ("few", {"type": "array", "items": {"type": "string"}, "maxItems": 1}, "greet Anna and Ben", ["Anna"]),
        ("long", {"type": "string", "minLength": 4}, '"ab"', "ab.."),
        ("greeting", {"type": "string"}, "speak softly", "speak softly"),
    ],
)
def test_a_value_is_taken_from_the_phrase_and_fits_the_schema(
    name: str, schema: Json, phrase: str, expected: Json
) -> None:
    assert built(schema, phrase, name) == expected


def test_whole_numbers_are_integers_for_either_type() -> None:
    assert [type(built({"type": kind}, "give 3")) for kind in ("integer", "number")] == [int, int]


def test_required_parameters_are_there_and_optional_ones_only_when_spoken_of() -> None:
    properties: dict[str, Json] = {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    }
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "required": ["city"]}
    assert build_arguments(parameters, "weather in Rome") == {"city": "Rome"}
    assert build_arguments(parameters, "weather in Rome for 3 days in celsius") == {
        "city": "Rome",
        "days": 3,
        "unit": "celsius",
    }


def test_the_only_text_is_there_although_it_is_optional() -> None:
    text: dict[str, Json] = {"type": "object", "properties": {"input": {"type": "string"}}}
    assert build_arguments(text, "calculate `6*7`") == {"input": "6*7"}
    count: dict[str, Json] = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    assert build_arguments(count, "what is new?") == {}
    two: dict[str, Json] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert build_arguments(two, "what is new?") == {}


def test_an_optional_switch_is_set_only_where_all_of_its_name_is_said() -> None:
    properties: dict[str, Json] = {"command": {"type": "string"}, "run_in_background": {"type": "boolean"}}
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "required": ["command"]}
    assert build_arguments(parameters, "run the command `ls`") == {"command": "ls"}
    wanted = {"command": "ls", "run_in_background": True}
    assert build_arguments(parameters, "run the command `ls` in the background") == wanted


def test_a_number_goes_to_the_parameter_it_stands_beside() -> None:
    properties: dict[str, Json] = {"limit": {"type": "integer"}, "days": {"type": "integer"}}
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "required": ["limit", "days"]}
    assert build_arguments(parameters, "for 3 days, limit 20") == {"limit": 20, "days": 3}


def test_a_repeated_call_counts_on() -> None:
    properties: dict[str, Json] = {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 3, "default": 2}}
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "required": ["city"]}
    repeated = [build_arguments(parameters, "weather in Rome", step) for step in range(1, 5)]
    assert [found.get("days") for found in repeated] == [None, 2, 3, 3]
    assert {found["city"] for found in repeated} == {"Rome"}


def test_required_parameters_come_first_in_their_own_order() -> None:
    properties: dict[str, Json] = {"b": {"type": "integer"}, "c": {"type": "integer"}, "a": {"type": "integer"}}
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "required": ["c", "b", "gone"]}
    assert list(build_arguments(parameters, "take 1 and 2").items()) == [("c", 1), ("b", 2)]


def test_references_and_nested_objects_are_filled_and_recursion_ends() -> None:
    node: Json = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}, "all": {"$ref": "#/$defs/list"}},
        "required": ["n", "all"],
    }
    many: Json = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "required": ["root"],
        "$defs": {"node": node, "list": many},
    }
    root = build_arguments(parameters, "take 4")["root"]
    assert isinstance(root, dict) and root["n"] == 4 and isinstance(root["all"], list)


def test_all_of_is_merged() -> None:
    parts: list[Json] = [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"properties": {"b": {"type": "string"}}, "required": ["b"]},
    ]
    assert build_value({"allOf": parts}, "2 for Anna") == {"a": 2, "b": "Anna"}


@pytest.mark.parametrize("parameters", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_parameters_gets_an_empty_object(parameters: dict[str, Json]) -> None:
    assert build_arguments(parameters, "do it") == {}


@pytest.mark.full
def test_a_schema_that_leads_back_or_asks_for_much_is_answered_in_bounded_work() -> None:
    back: Json = {"$ref": "#/$defs/back"}
    endless: dict[str, Json] = {
        "type": "object",
        "properties": {
            "every": {"allOf": [back, back]},
            "child": {"$ref": "#"},
            "many": {"type": "array", "items": {"$ref": "#/$defs/many"}, "minItems": 10**9},
        },
        "required": ["every", "child", "many"],
        "$defs": {"back": {"allOf": [back, back]}, "many": {"type": "array", "items": back, "minItems": 10**9}},
    }
    work = count_work(lambda: build_arguments(endless, "do it"))
    assert work.steps < 2_000_000
    assert work.bytes < 100 * 2**20


def test_many_parts_of_all_of_are_merged_in_linear_work() -> None:
    def merging(n: int) -> Work:
        parts: list[Json] = [{f"x-{at}": at} for at in range(n)]
        return count_work(lambda: build_value({"allOf": parts}, "do it"))

    assert growth(merging(400), merging(1600)) < 6
