import pytest

from adapters.text.backend.paths import look_up, parse_path
from adapters.text.backend.request_template import merged, names_in, render
from gateway.core.conversation import Json

VALUES: dict[str, Json] = {"$a": 1, "$list": ["x"], "$none": None, "$false": False}


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ({"k": "$a", "c": "plain", "n": 0, "f": False}, {"k": 1, "c": "plain", "n": 0, "f": False}),
        ({"k": "$none", "l": "$list"}, {"l": ["x"]}),
        ({"k": {"deep": "$none"}}, None),
        ({"k": {"deep": "$none", "c": 1}}, {"k": {"c": 1}}),
        ({"k": "$false"}, {"k": False}),
        (["$a", "$none", {"x": "$a"}, {"x": "$none"}], [1, {"x": 1}]),
        ({"g": {"$with": "$none", "type": "json"}}, None),
        ({"g": {"$with": "$a", "type": "json", "v": "$a"}}, {"g": {"type": "json", "v": 1}}),
        ({"k": None}, None),
    ],
)
def test_a_template_keeps_what_has_a_value(template: Json, rendered: Json) -> None:
    assert render(template, VALUES) == rendered


def test_names_are_found_wherever_they_stand() -> None:
    template: Json = {"a": "$x", "b": [{"c": "$y"}, "z", 1], "d": {"$with": "$w"}}
    assert set(names_in(template)) == {"$x", "$y", "$w"}


def test_merging_goes_into_objects_and_changes_neither_side() -> None:
    base: dict[str, Json] = {"a": {"b": 1, "c": 2}, "d": [1]}
    own: dict[str, Json] = {"a": {"b": 3}, "d": [], "e": None}
    assert merged(base, own) == {"a": {"b": 3, "c": 2}, "d": [], "e": None}
    assert base == {"a": {"b": 1, "c": 2}, "d": [1]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1),
        ("l[1].t", "x"),
        ("l[0]", None),
        ("l[9].t", None),
        ("a.b.c", None),
        ("a[0]", None),
        ("l.t", None),
        ("nothing", None),
        ("with space", 2),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, value: Json) -> None:
    document: Json = {"a": {"b": 1}, "l": [None, {"t": "x"}], "with space": 2}
    assert look_up(document, parse_path(path)) == value


def test_the_empty_path_is_the_document() -> None:
    assert look_up("x", parse_path("")) == "x"


@pytest.mark.parametrize("path", [".", "a.", "a[", "a[x]", "a[1]b", "[12345]", "a..b"])
def test_what_is_no_path_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(path)
