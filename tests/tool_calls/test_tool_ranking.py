import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import JsonObject, ToolSpec
from gateway.tool_calls.tool_ranking import rank_tools
from tests.sixty_tools import SIXTY, TASKS


def found(query: str, most: int = 5) -> list[str]:
    return [tool.name for tool in rank_tools(SIXTY, query, most)]


@pytest.mark.parametrize(("task", "name"), TASKS.items())
def test_the_words_of_a_task_find_its_function(task: str, name: str) -> None:
    assert name in found(task)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("mail_archive", "mail_archive"),
        ("use weather_forecast or mail_send", "weather_forecast"),
        ("refunds", "stripe_refund_payment"),
        ("pull requests", "github_merge_pull_request"),
    ],
)
def test_names_come_first_and_plurals_are_found(query: str, first: str) -> None:
    assert found(query)[0] == first


def test_a_name_in_one_word_and_the_names_of_parameters_are_found() -> None:
    parameters: JsonObject = {"type": "object", "properties": {"airportCode": {"type": "string"}}}
    tools = (ToolSpec("readFile", ""), ToolSpec("other", "", parameters))
    assert [tool.name for tool in rank_tools(tools, "read a file", 5)] == ["readFile"]
    assert [tool.name for tool in rank_tools(tools, "airport", 5)] == ["other"]


@pytest.mark.parametrize("query", ["", "zzz", "???", "\ud800", "x" * 100_000])
def test_words_that_no_function_has_find_none(query: str) -> None:
    assert found(query) == []


@given(st.text(max_size=200), st.integers(0, 10))
def test_a_search_is_deterministic_and_bounded(query: str, most: int) -> None:
    assert found(query, most) == found(query, most)
    assert len(found(query, most)) <= most


def test_of_equal_functions_the_first_is_better() -> None:
    tools = [ToolSpec(f"same_{letter}", "Reads mail") for letter in "abc"]
    assert [tool.name for tool in rank_tools(tools, "mail", 2)] == ["same_a", "same_b"]
    assert rank_tools([], "mail", 2) == ()
