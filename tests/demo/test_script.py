import msgspec
import pytest

from gateway.demo.dialogue import Call, Dialogue, OfferedTool, Result
from gateway.demo.script import reply
from gateway.types import Json


def tool(name: str, description: str = "", **properties: Json) -> OfferedTool:
    return OfferedTool(name, description, {"type": "object", "properties": properties, "required": list(properties)})


TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
WEATHER = tool("get_weather", "Get the current weather", city=TEXT)
TIME = tool("get_time", "Current time in a time zone", timezone=TEXT)
ADD = tool("add", "Add two numbers", a=NUMBER, b=NUMBER)
READ = tool("read_file", "Read a file", path=TEXT)
SEARCH = tool("search_web", "Search the web", query=TEXT)
EXECUTE = tool("Execute", "", command=TEXT)
ALL = (WEATHER, TIME, ADD, READ, SEARCH)


def rounds(
    question: str, tools: tuple[OfferedTool, ...] = ALL, parallel: bool = True
) -> list[list[tuple[str, object]]]:
    """Play a whole loop: every call gets a result, until the script answers."""
    dialogue = Dialogue(question, tools, parallel=parallel)
    played: list[list[tuple[str, object]]] = []
    while said := reply(dialogue).calls:
        played.append([(call.name, dict(call.arguments)) for call in said])
        results = tuple(Result(call.name, f"result {len(played)}") for call in said)
        dialogue = msgspec.structs.replace(dialogue, rounds=(*dialogue.rounds, results))
        assert len(played) < 30
    return played


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the weather in New York?", [[("get_weather", {"city": "New York"})]]),
        ("what's the weather in paris?", [[("get_weather", {"city": "paris"})]]),
        (
            "What's the weather in Paris and Rome?",
            [[("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]],
        ),
        (
            "What is the weather in Oslo and what time is it in Tokyo?",
            [[("get_weather", {"city": "Oslo"}), ("get_time", {"timezone": "Tokyo"})]],
        ),
        ("Please add 2 and 3", [[("add", {"a": 2, "b": 3})]]),
        ("What is 12 plus 30?", [[("add", {"a": 12, "b": 30})]]),
        (
            'First read config.json, then search the web for "this and that", finally add 1.5 and 2',
            [
                [("read_file", {"path": "config.json"})],
                [("search_web", {"query": "this and that"})],
                [("add", {"a": 1.5, "b": 2})],
            ],
        ),
        ("Check the weather in Oslo in five steps", [[("get_weather", {"city": "Oslo"})]] * 5),
        ("Add 1 and 2 in many steps", [[("add", {"a": 1, "b": 2})]]),
        ("Tell me a story in five steps", []),
        ("1. read a.txt\n2. read b.txt", [[("read_file", {"path": "a.txt"})], [("read_file", {"path": "b.txt"})]]),
        ("Write a haiku about the sea", []),
        ("hello", []),
    ],
)
def test_the_tools_that_fit_are_called_in_rounds(question: str, expected: list[list[tuple[str, object]]]) -> None:
    assert rounds(question) == expected


def test_without_parallel_calls_every_round_holds_one() -> None:
    assert [len(calls) for calls in rounds("weather in Paris and Rome", parallel=False)] == [1, 1]


def test_steps_that_are_wanted_count_single_calls_where_only_those_are_allowed() -> None:
    pages = tool("next_page", "", page={"type": "integer"})
    assert [calls[0][1] for calls in rounds("next page in three steps", (pages,))] == [
        {"page": 1},
        {"page": 2},
        {"page": 3},
    ]
    assert len(rounds("weather in Paris and Rome in three steps", parallel=False)) == 3


def test_values_go_to_one_call_of_a_tool_that_takes_many() -> None:
    greet = tool("greet", "", names={"type": "array", "items": TEXT})
    assert rounds("greet Anna, Ben and Cleo", (greet,)) == [[("greet", {"names": ["Anna", "Ben", "Cleo"]})]]
    assert rounds("greet Anna and be polite about it", (greet,)) == [[("greet", {"names": ["Anna"]})]]


def test_the_only_tool_is_called_even_when_no_word_fits_and_no_word_becomes_a_command() -> None:
    assert rounds("查看配置文件", (EXECUTE,)) == [[("Execute", {"command": "ls"})]]
    assert rounds("please remove everything", (EXECUTE,)) == [[("Execute", {"command": "ls"})]]
    assert rounds("run `cat config.json`", (EXECUTE,)) == [[("Execute", {"command": "cat config.json"})]]
    assert rounds("hello", (EXECUTE,)) == []


def test_results_are_quoted_and_errors_are_called_errors() -> None:
    one = Dialogue("weather in Paris?", (WEATHER,), ((Result("get_weather", "18 °C"),),))
    assert reply(one).text == "get_weather says: 18 °C"
    two = msgspec.structs.replace(one, rounds=((Result("get_weather", "Error: no such city"), Result("add", "5")),))
    assert reply(two).text == "Here is what I found:\n1. get_weather failed: Error: no such city\n2. add says: 5"
    assert reply(two).calls == ()
    empty = msgspec.structs.replace(one, rounds=((Result("get_weather", ""),),))
    assert reply(empty).text == "get_weather gave an empty result."


def test_a_reply_is_always_the_same_and_its_ids_are_its_own() -> None:
    dialogue = Dialogue("weather in Paris and Rome", (WEATHER,))
    again = msgspec.structs.replace(dialogue, turn=2)
    assert reply(dialogue) == reply(dialogue)
    ids = [call.id for asked in (dialogue, again) for call in reply(asked).calls]
    assert len(set(ids)) == len(ids) == 4


def test_tool_choice_is_kept() -> None:
    assert reply(Dialogue("weather in Paris", ALL, choice="none")).calls == ()
    (forced,) = reply(Dialogue("hello", ALL, choice="required", forced="add")).calls
    assert forced.name == "add"
    final = tool("final_result", "", answer=TEXT)
    done = Dialogue("weather in Paris", (WEATHER, final), ((Result("get_weather", "18"),),), choice="required")
    assert [call.name for call in reply(done).calls] == ["final_result"]


def test_it_thinks_only_when_asked() -> None:
    assert reply(Dialogue("weather in Paris", ALL)).reasoning == ""
    assert "get_weather" in reply(Dialogue("weather in Paris", ALL, reasoning=True)).reasoning
    assert reply(Dialogue("Think hard: hello")).reasoning != ""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ('Say "exactly this"', "exactly this"),
        ("Repeat after me: one\n  two", "one\n  two"),
        ("Please count to five", "1, 2, 3, 4, 5"),
        ("Write 3 words", "The gateway carries."),
    ],
)
def test_without_tools_it_answers_in_text(question: str, answer: str) -> None:
    said = reply(Dialogue(question))
    assert (said.text, said.calls) == (answer, ())


def test_any_question_gets_a_few_sentences() -> None:
    assert reply(Dialogue("Why is the sky blue?")).text.startswith('You said: "Why is the sky blue?". I am')
    assert reply(Dialogue("")).text.startswith("You said nothing.")
    assert Call("", "", {}) not in reply(Dialogue("")).calls
