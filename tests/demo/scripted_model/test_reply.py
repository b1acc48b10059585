import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, PlannedCall, Result
from gateway.demo.scripted_model.plan import MOST_CALLS, MOST_ROUNDS
from gateway.demo.scripted_model.reply import reply


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
        ("Weather in Rome?", [[("get_weather", {"city": "Rome"})]]),
        ("Rome weather", [[("get_weather", {"city": "Rome"})]]),
        ("weather rome", [[("get_weather", {"city": "rome"})]]),
        ("Hi, temperature in Rome please", [[("get_weather", {"city": "Rome"})]]),
        ("Weather", [[("get_weather", {"city": "Rome"})]]),
        ("weather in Oslo, weather in Oslo, then weather in Oslo", [[("get_weather", {"city": "Oslo"})]]),
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


CITIES = ("Oslo", "Rome", "Paris", "Tokyo", "Lima", "Cairo", "Quito", "Delhi", "Accra", "Hanoi")


def test_a_long_question_is_answered_with_few_calls() -> None:
    wide = rounds("What is the weather in " + ", ".join(CITIES))
    long = rounds(", then ".join(f"check the weather in {city}" for city in CITIES))
    assert [len(calls) for calls in wide] == [MOST_CALLS]
    assert [len(calls) for calls in long] == [1] * MOST_ROUNDS


SHELL = tool("bash", "Run a Bash command.", command=TEXT)
VIEW = tool("view", "View files, images or directories.", path=TEXT)
READ_SHELL = tool("read_bash", "Reads the output of a Bash command.", shellId=TEXT, delay=NUMBER)


@pytest.mark.parametrize(
    ("question", "chosen"),
    [
        ("Read the file README.md", "view"),
        ("Run the command `cat README.md`", "bash"),
        ("Read what the shell a1 printed", "read_bash"),
    ],
)
def test_a_tool_for_something_that_the_question_does_not_mention_comes_last(question: str, chosen: str) -> None:
    assert [[name for name, _ in calls] for calls in rounds(question, (READ_SHELL, SHELL, VIEW))] == [[chosen]]


def test_a_tool_that_needs_an_id_is_called_where_no_other_fits() -> None:
    weather = tool("get_weather", "", city_id=TEXT)
    assert rounds("What is the weather in Rome?", (TIME, weather)) == [[("get_weather", {"city_id": "Rome"})]]


EDITORS = (
    tool("write", "Write a file", path=TEXT, content=TEXT),
    tool("Edit", "", file_path=TEXT, old_string=TEXT, new_string=TEXT),
    tool("editor", "", path=TEXT, new_text=TEXT),
    tool("write_to_file", "", target=TEXT),
    tool("str_replace_editor", "", command=TEXT, path=TEXT),
    tool("apply_patch", "", input=TEXT),
    tool("NotebookEdit", "", notebook_path=TEXT),
    tool("delete_file", "", target_file=TEXT),
    tool("move_file", "", source=TEXT, destination=TEXT),
    tool("createDirectory", "", dirPath=TEXT),
)


@pytest.mark.parametrize("offered", EDITORS, ids=[found.name for found in EDITORS])
def test_a_tool_that_changes_files_is_called_only_when_forced(offered: OfferedTool) -> None:
    asked = f"write a file: edit notes.md, create, delete, move, patch {offered.name}"
    assert rounds(asked, (offered,)) == []
    assert offered.name not in {name for calls in rounds(asked, (READ, offered)) for name, _ in calls}
    (forced,) = reply(Dialogue(asked, (offered,), choice="required", forced=offered.name)).calls
    assert forced.name == offered.name


@pytest.mark.parametrize(
    ("question", "folder", "path"),
    [
        ("read notes.md", "/srv/app", "/srv/app/notes.md"),
        ("read ./notes.md", "/srv/app", "/srv/app/notes.md"),
        ("read /etc/hosts", "/srv/app", "/etc/hosts"),
        ("read notes.md", "", "notes.md"),
    ],
)
def test_a_path_that_must_be_absolute_stands_in_the_users_folder(question: str, folder: str, path: str) -> None:
    about: Json = {"type": "string", "description": "The absolute path to the file"}
    tools = (tool("read_file", "", file_path=about, path=TEXT),)
    (call,) = reply(Dialogue(question, tools, folder=folder)).calls
    assert call.arguments == {"file_path": path, "path": question.removeprefix("read ")}


def test_a_tool_that_only_writes_elsewhere_is_called() -> None:
    mail = tool("write_email", "", recipient=TEXT, text=TEXT)
    assert [calls[0][0] for calls in rounds("write an email", (mail,))] == ["write_email"]


BASH = tool("bash", "Execute a bash command in the current working directory", command=TEXT)


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("Run `make test` in bash", "make test"),
        ('Execute the command "git status"', "git status"),
        ("Explain what the bash command `rm -rf build` does", "ls"),
        ("Never run the bash command `rm -rf build`", "ls"),
        ("Don't execute `rm -rf build` in bash", "ls"),
        ("Use bash to list the files in Docs", "ls"),
    ],
)
def test_only_what_shall_be_run_is_run(question: str, command: str) -> None:
    assert rounds(question, (BASH, READ)) == [[("bash", {"command": command})]]


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
    assert PlannedCall("", "", {}) not in reply(Dialogue("")).calls


FORMS = (
    "src/a.py\n```\nprint(1)\n```",
    "a.py\n~~~python\nprint(1)\n~~~",
    "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE",
    "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y",
    "*** Begin Patch\n*** Update File: a.py\n*** End Patch",
    "\u2028```\r```\x0b<<<<<<< SEARCH",
)
EDIT = re.compile(r"\s*(`{3}|~{3}|<{5,}|={5,}|>{5,}|diff |--- |\+\+\+ |@@|\*\*\* )")


@given(st.lists(st.sampled_from((*FORMS, "words", "say:", "\n", " ")), max_size=6).map("".join))
def test_nothing_it_writes_can_be_taken_for_an_edit(text: str) -> None:
    told = Dialogue("read a.py", (READ,), ((Result("read_file", text), Result("read_file", text)),))
    for dialogue in (Dialogue(text), Dialogue(f"Say: {text}"), told, msgspec.structs.replace(told, tools=())):
        lines = reply(dialogue).text.splitlines()
        assert [line for line in lines if EDIT.match(line)] == []


def test_a_quoted_form_of_an_edit_is_marked_as_a_quotation() -> None:
    told = Dialogue("read a.py", (READ,), ((Result("read_file", FORMS[0]),),))
    assert reply(told).text == "read_file says:\n> src/a.py\n> ```\n> print(1)\n> ```"
    assert reply(Dialogue("What does\n  this do?")).text.startswith('You said: "What does this do?"')
